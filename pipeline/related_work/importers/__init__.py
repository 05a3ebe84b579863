"""Tasks of other data sets as task files: DeepScholar-Bench and the folder layout of NudtRwG."""
