"""Paper → passages: packing, splitting, and the text that is embedded."""
