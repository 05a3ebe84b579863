"""Wikipedia as a corpus: a wiki's HTML dump into the tables `metadata` and `papers`, where passages begin."""
