"""Check the citations of a draft against the papers that it cites: what `citeloom check` does."""
