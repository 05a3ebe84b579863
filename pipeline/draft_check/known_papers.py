"""Papers of arXiv's metadata: of the snapshot, and of the data root's own table."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import partial

import numpy as np

from pipeline import tables
from pipeline.arxiv.identifiers import month_of
from pipeline.arxiv.record import Record
from pipeline.arxiv.snapshot import Snapshot
from pipeline.arxiv.titles import doi_key, title_keys, title_words
from pipeline.corpus.references.title_index import (
    TitleCandidate,
    TitleIndex,
    month_digests,
    open_title_index,
    title_file,
)
from pipeline.engine.progress import StageAdvanced, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput

_COLUMNS = [field.name for field in fields(Record)]
_NEWEST = "9999-12"


class KnownPapers:
    """Look-ups by identifier, and by title or DOI. Raises as the snapshot and the tables do.

    The titles of a snapshot are written to the data root's cache at the first use: 2.7 million
    records take some minutes once.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root
        self._snapshot = Snapshot.of(workspace)
        if self._snapshot is None and not workspace.root.months(tables.METADATA):
            raise MissingInput(
                f"the data root {workspace.root.path} has no metadata to check references against:"
                " set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or run citeloom run --until"
                " metadata"
            )
        self._indexes: list[TitleIndex] = []
        if month_digests(workspace, _NEWEST):
            self._indexes.append(open_title_index(workspace, _NEWEST))
        if self._snapshot is not None:
            self._indexes.append(_snapshot_titles(workspace, self._snapshot))

    def candidates(
        self, works: Sequence[tuple[str | None, Sequence[str]]]
    ) -> list[list[TitleCandidate]]:
        """For each (title, DOIs) the papers with one of the DOIs or most of the title's words.

        The papers of each are ordered by identifier.
        """
        keys = {}
        for number, (title, dois) in enumerate(works):
            of_work = [*map(doi_key, dois), *title_keys(title_words(title or ""))]
            if of_work:
                keys[number] = np.array(of_work, np.uint64)
        papers: list[dict[str, TitleCandidate]] = [{} for _ in works]
        for index in self._indexes:
            for number, candidates in index.candidates(keys):
                papers[number].update({paper.arxiv_id: paper for paper in candidates})
        return [[of_work[name] for name in sorted(of_work)] for of_work in papers]

    def records(self, ids: Collection[str]) -> Mapping[str, Record]:
        """arXiv's records of these papers, of the snapshot where both sources have one."""
        by_month = defaultdict(set)
        for name in ids:
            by_month[month_of(name) or ""].add(name)
        records: dict[str, Record] = {}
        for month in sorted(by_month.keys() & set(self._root.months(tables.METADATA))):
            names = by_month[month]
            for row in self._root.rows_with(tables.METADATA, month, "arxiv_id", names, _COLUMNS):
                if row["status"] != "absent":
                    records[row["arxiv_id"]] = Record.from_row(row)
        if self._snapshot is not None:
            records |= self._snapshot.find(ids)
        return records


def _snapshot_titles(workspace: Workspace, snapshot: Snapshot) -> TitleIndex:
    folder = workspace.cache("snapshot_titles")
    version = hashlib.sha256(snapshot.version.encode()).hexdigest()
    months = snapshot.months()
    files = []
    for number, month in enumerate(months, start=1):
        publish(StageAdvanced("titles of the snapshot", month, number, len(months)))
        files.append(title_file(folder, month, version, partial(_rows, snapshot, month)))
    return TitleIndex(files)


def _rows(snapshot: Snapshot, month: str) -> list[Mapping[str, object]]:
    return [record.as_row() for record in snapshot.find(snapshot.identifiers(month)).values()]
