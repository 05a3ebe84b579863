"""Talking to a language model: one OpenAI-compatible client with a cache, the embedded server, prompt files.

Not here: what is asked (`related_work`, `evaluation`), or what an answer means there.
"""
