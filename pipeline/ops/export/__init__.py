"""`citeloom export`: tables as Parquet files, a card, and a Croissant description."""
