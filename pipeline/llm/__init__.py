"""One OpenAI-compatible client with a cache, the embedded model's server, prompt files."""
