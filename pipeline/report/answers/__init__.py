"""The report's pages of answers: the arXivBot report's Table 1 with ours beside it, and a page of each question.

Only tables in, views out.
"""
