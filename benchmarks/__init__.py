"""One script per claim, each against what a user would pick instead, in one interleaved run."""
