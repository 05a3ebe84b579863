"""The values of `--fail-on`. Importing it is cheap, so that `--help` can list them."""

FAILURES = (
    "number_not_found",
    "not_about_paper",
    "not_supported",
    "missing",
    "not_found",
    "suspicious",
    "differs",
    "withdrawn",
    "retracted",
)
"""Verdicts on citations (`not_supported` is a model's), statuses of references, and `missing`
bibliography entries.
"""
FORMER_FAILURES = {"contradicted": "number_not_found, or not_supported with a language model"}
"""Values that were removed → what to give instead."""
