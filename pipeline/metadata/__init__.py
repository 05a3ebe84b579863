"""What arXiv says of a paper, and which papers a paper cites. Not here: anything read from a paper's page."""
