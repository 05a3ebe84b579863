"""The asset `references`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.metadata.references import REFERENCES

references = stage_asset(
    REFERENCES,
    group="corpus",
    description="Bibliography items, resolved to arXiv papers by identifier, by DOI, then by title and year.",
)
