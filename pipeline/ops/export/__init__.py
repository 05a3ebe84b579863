"""`citeloom export`: tables as a data set: Parquet files, a card, and their description in
Croissant.
"""
