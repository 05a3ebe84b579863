"""Keep a corpus up to date: which months and stages are due, and what changed."""
