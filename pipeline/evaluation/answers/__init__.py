"""How good answers to questions are: correct claims, gold claims that they hold, and gold passages that were shown.

Not here: how questions are answered (`pipeline.answering`), tables, and stages.
"""
