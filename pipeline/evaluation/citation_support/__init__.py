"""Citation support: whether what a section says of a cited work stands in that work, and measures of its citations."""
