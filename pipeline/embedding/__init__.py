"""Embedding: texts to vectors, by one protocol and two engines (MiniLM from a package, BGE-M3 by FlagEmbedding).

Not here: which text of a passage is embedded (`pipeline.passages.text`), and where vectors are searched
(`pipeline.index`).
"""
