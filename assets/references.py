"""The asset `references`. Not here: how an item is resolved (`pipeline.metadata.resolution`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.metadata.references import REFERENCES

references = stage_asset(
    REFERENCES,
    group="corpus",
    description="Bibliography items, resolved to arXiv papers by identifier, by DOI, then by title and year.",
)
