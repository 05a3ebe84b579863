"""Search page, JSON API and MCP server over a data root; read-only."""
