"""Answering questions from the corpus: arXivBot, WikiChat and the model alone, and their prompts.

Not here: how passages are found (`pipeline.index`), how a model is reached (`pipeline.llm`), and how an answer is
graded (`pipeline.evaluation`).
"""
