"""Tables as a data set in Hugging Face's layout, for other people's tools: Parquet files and a card.

Not here: how any table is made; and nothing is computed but what a card counts.
"""
