"""How well a search finds the papers that sentences cite: queries, pool, rankings, measures."""
