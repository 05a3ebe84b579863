"""Static pages on a month and on all months: data read from the tables, grids and figures of it,
and pages.
"""
