"""Pages of months that no zip has, asked of arXiv's own site one by one, into the folders of loose pages.

Not here: reading such a folder (`pipeline/corpus/dump/loose.py`), and how fast arXiv may be asked
(`pipeline/metadata/pace.py`).
"""
