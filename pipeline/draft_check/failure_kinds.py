"""The values of `--fail-on`. Importing it is cheap, so that `--help` can list them."""

FAILURES = (
    "contradicted",
    "not_supported",
    "missing",
    "not_found",
    "suspicious",
    "differs",
    "withdrawn",
    "retracted",
)
"""Verdicts, statuses of references, and `missing` bibliography entries."""
