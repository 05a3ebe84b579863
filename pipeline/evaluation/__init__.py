"""Judging what was written, and showing it: ROUGE, G-Score, the report."""
