"""How well a search finds what papers cite, measured without a labeller: queries, pool, rankings, metrics, picture.

Not here: the search that users ask (`pipeline.index`), and the models whose vectors it compares.
"""
