"""When: what starts runs. Not here: what they do (`assets`), and jobs (`pipeline.jobs`)."""
