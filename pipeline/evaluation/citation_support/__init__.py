"""Citation support: whether what a section says of a cited work stands in that work, and measures of its citations.

Not here: what a system's own judge found while it wrote (`pipeline.related_work.support`), and G-Score, which marks a
section as a whole.
"""
