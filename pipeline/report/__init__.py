"""Static pages on a month and on all months, made from the tables."""

VERSION = 3
"""Of the stage `report`; the page over all months is made from it too."""
