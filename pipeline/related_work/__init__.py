"""Related-work sections: tasks, ChatCite, its baselines, and their prompts.

Not here: how a model is reached (`pipeline.llm`), and how a section is scored (`pipeline.evaluation`).
"""
