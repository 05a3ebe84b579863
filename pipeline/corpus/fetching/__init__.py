"""Pages of months that no zip has, asked of arXiv's own site one by one, into the folders of loose pages."""
