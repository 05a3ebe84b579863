"""Embedding: texts to vectors, by one protocol and one engine, for two models (MiniLM, BGE-M3).

Not here: which text of a passage is embedded (`pipeline.passages.text`), and where vectors are searched
(`pipeline.index`).
"""
