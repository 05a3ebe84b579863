"""Tables as a data set in Hugging Face's layout, for other people's tools: Parquet files and a card."""
