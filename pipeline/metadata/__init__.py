"""Which arXiv papers a bibliography cites."""
