"""From arXiv's sources to pages: archives, the main file, the converter and its sandbox."""
