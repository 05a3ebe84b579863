"""Talking to a language model: one OpenAI-compatible client with a cache, the embedded server,
prompt files.
"""
