"""Keeping a corpus up to date: which months and stages are due (`plan`), running them, and what it
changed.
"""
