"""Paper → passages: packing, splitting, and the text that is embedded. Not here: how a page becomes a Paper."""
