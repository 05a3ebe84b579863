"""Answering questions from the corpus: arXivBot, WikiChat and the model alone, and their
prompts.
"""
