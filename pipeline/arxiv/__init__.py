"""arXiv: categories, and metadata from its snapshot, OAI-PMH and API."""
