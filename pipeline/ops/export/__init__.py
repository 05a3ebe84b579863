"""`citeloom export`: tables as a data set in Hugging Face's layout, with Parquet files and a card."""
