"""Tasks of other data sets as task files."""
