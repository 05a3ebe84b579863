"""Starting runs from the command line and from a launcher, in this process and in others.

Not here: what a stage does (`pipeline.stages` and the domains), and which stages there are (`pipeline.registry`).
"""
