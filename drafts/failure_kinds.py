"""The values of `--fail-on`. Importing it is cheap, so that `--help` can list them."""

FAILURES = (
    "number_not_found",
    "not_about_paper",
    "contradicted",
    "not_supported",
    "missing",
    "not_found",
    "suspicious",
    "differs",
    "withdrawn",
    "retracted",
)
"""Verdicts on citations (`contradicted` and `not_supported` are a model's), statuses of references,
and `missing` bibliography entries.
"""
