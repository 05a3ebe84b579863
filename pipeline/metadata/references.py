"""The stage `references`. Not here: how a reference is resolved (`resolution.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline import tables
from pipeline.metadata.resolution import Catalogue, Resolution, split_dois
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Row, read_provenance


def build_references(job: Job) -> Iterator[Row]:
    """One row for each bibliography item of the month's papers, in the order of the papers and of their items."""
    catalogue = _catalogue(job)
    resolved: Counter[str] = Counter()
    for paper in job.iterate(tables.PAPERS, ["arxiv_id", "bibliography"]):
        for ordinal, item in enumerate(paper["bibliography"] or ()):
            resolution = catalogue.resolve(item, paper["arxiv_id"])
            resolved[resolution.by or "not_resolved"] += 1
            yield _reference(paper["arxiv_id"], ordinal, item, resolution)
    job.notes["resolved_by"] = dict(sorted(resolved.items()))


def _reference(citing: str, ordinal: int, item: Mapping[str, Any], resolution: Resolution) -> Row:
    copied = {name: item[name] for name in ("key", "raw", "title", "authors", "year", "venue")}
    return copied | {
        "arxiv_id": citing,
        "ordinal": ordinal,
        "doi": next(iter(split_dois(item["doi"])), None),
        "cited_arxiv_id": resolution.arxiv_id,
        "resolved_by": resolution.by,
    }


def _catalogue(job: Job) -> Catalogue:
    catalogue, root = Catalogue(), job.workspace.root
    columns = ["arxiv_id", "title", "authors", "doi", "published"]
    for month in _months_until(job.workspace, job.month):
        catalogue.add(root.iterate(tables.METADATA, month, columns), month)
    return catalogue


def _months_until(workspace: Workspace, month: str) -> list[str]:
    return [other for other in workspace.root.months(tables.METADATA) if other <= month]


def _earlier_metadata(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What earlier months' metadata is: a paper cites what was there before it."""
    digests = {}
    for other in _months_until(workspace, month):
        provenance = read_provenance(workspace.root.file(tables.METADATA, other))
        if provenance is not None and other != month:
            digests[f"metadata/{other}"] = provenance.rows_sha256
    return digests


REFERENCES = Stage(
    table=tables.REFERENCES,
    build=build_references,
    upstream=(tables.PAPERS, tables.METADATA),
    inputs=_earlier_metadata,
)
