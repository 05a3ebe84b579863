"""Judging what was written, and showing it: ROUGE, G-Score, the report. Not here: writing related work or answers."""
