"""How well a search finds what papers cite, measured without a labeller: queries, pool, rankings,
metrics, picture.
"""
