"""Whether cited works support what a section says of them, and measures of its citations."""
