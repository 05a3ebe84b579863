"""Embedding: texts to vectors, by one protocol and one engine, for two models (MiniLM, BGE-M3)."""
