"""Static pages on a month and on all months, made from the tables."""
