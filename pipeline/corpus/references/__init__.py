"""Resolution of bibliography items to the arXiv papers that they cite."""
