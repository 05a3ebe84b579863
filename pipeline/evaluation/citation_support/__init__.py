"""Citation support: whether what a section says of a cited work is in that work, and measures of
its citations.
"""
