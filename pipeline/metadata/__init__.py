"""What arXiv says of a paper, and which papers a paper cites."""
