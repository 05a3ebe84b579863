"""Wikipedia as a corpus: a wiki's HTML dump into the tables `metadata` and `papers`, where passages begin.

Not here: passages, vectors, the index and answers, which read those tables as they read arXiv's.
"""
