"""arXiv's identifiers, months and categories."""
