"""When: what starts runs."""
