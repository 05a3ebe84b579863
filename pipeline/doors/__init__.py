"""What people and programs use the corpus by: command line, pages, JSON API, MCP."""
