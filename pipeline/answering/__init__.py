"""Answers to questions from the corpus, by arXivBot, WikiChat, the model alone or quotations."""
