"""How good answers to questions are: correct claims, gold claims that they hold, and gold passages
that were shown.
"""
