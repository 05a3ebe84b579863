"""One OpenAI-compatible client with a cache, the bundled model's server, prompt files."""
