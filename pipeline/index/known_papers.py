"""Papers of arXiv's metadata, of the snapshot and of the data root's own table, by identifier,
title or DOI.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipeline import tables
from pipeline.arxiv.record import Record
from pipeline.arxiv.snapshot import Snapshot
from pipeline.corpus.references.lookups import metadata_titles
from pipeline.corpus.references.title_index import (
    SCHEMA,
    VERSION,
    TitleCandidate,
    TitleIndex,
    replace_titles,
)
from pipeline.engine.month_index import MonthIndex
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput
from pipeline.identity.identifiers import group_by_month
from pipeline.identity.titles import doi_key, title_keys, title_words, window_keys
from pipeline.index.papers import rows_of_papers

_COLUMNS = [field.name for field in fields(Record)]
# A snapshot of all archives lacks few numbers; one of a single archive has half of them at most.
_SHARE_OF_WHOLE_MONTH = 0.95


class KnownPapers:
    """Look-ups by identifier, and by title or DOI. Raises as the snapshot and the tables do.

    retractions: the file of Retraction Watch, if the settings name one. The titles of a snapshot
    are indexed at the first use: 2.7 million records take some minutes once.
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
        self.retractions = workspace.settings.retractions
        self._indexes = [metadata_titles(workspace)]
        if self._snapshot is not None:
            titles = MonthIndex(
                workspace=workspace,
                name="snapshot_titles",
                version=VERSION,
                schema=SCHEMA,
                replace_month=replace_titles,
                source=_SnapshotSource(self._snapshot),
            )
            self._indexes.append(titles)

    def candidates(
        self, works: Sequence[tuple[Collection[str], Collection[str]]]
    ) -> list[list[TitleCandidate]]:
        """For each (spellings of its title, DOIs) the papers with one of the DOIs, most of the
        longest words of a title, or four words in a row with its longest, ordered by identifier.
        """
        keys = {}
        for number, (titles, dois) in enumerate(works):
            of_work = list(map(doi_key, dois))
            for words in map(title_words, titles):
                of_work += [*title_keys(words), *window_keys(words).tolist()]
            if of_work:
                keys[number] = np.array(of_work, np.uint64)
        papers: list[dict[str, TitleCandidate]] = [{} for _ in works]
        for index in self._indexes:
            with index.open() as connection:
                for number, candidates in TitleIndex(connection).candidates(keys):
                    papers[number] |= {paper.arxiv_id: paper for paper in candidates}
        return [[of_work[name] for name in sorted(of_work)] for of_work in papers]

    def records(self, ids: Collection[str]) -> Mapping[str, Record]:
        """arXiv's records of these papers, of the snapshot where both sources have one."""
        records: dict[str, Record] = {}
        for row in rows_of_papers(self._root, tables.METADATA, ids, _COLUMNS):
            if row["status"] != "absent":
                records[row["arxiv_id"]] = Record.from_row(row)
        if self._snapshot is not None:
            records |= self._snapshot.find(ids)
        return records

    def impossible_ids(self, ids: Collection[str]) -> set[str]:
        """Those of some ids without records that arXiv has not given to any paper.

        arXiv numbers papers in order, so a snapshot with nearly all numbers up to the highest of a
        month has all its papers; one of a part of arXiv says nothing. Higher numbers of the newest
        month may have been given since.
        """
        impossible = set[str]()
        if self._snapshot is None or not ids:
            return impossible
        months = self._snapshot.months()
        by_month = group_by_month(ids)
        for month in by_month.keys() & set(months):
            of_month = [_split_number(name) for name in self._snapshot.identifiers(month)]
            for name in by_month[month]:
                series, number = _split_number(name)
                numbers = [other for other_series, other in of_month if other_series == series]
                highest = max(numbers, default=0)
                is_whole = len(numbers) >= _SHARE_OF_WHOLE_MONTH * highest > 0
                if is_whole and (number < highest or month != months[-1]):
                    impossible.add(name)
        return impossible


def _split_number(arxiv_id: str) -> tuple[str, int]:
    """`2101.00042` as (`2101.`, 42), `cs/9901007` as (`cs/9901`, 7)."""
    digits = 3 if "/" in arxiv_id else len(arxiv_id.partition(".")[2])
    return arxiv_id[:-digits], int(arxiv_id[-digits:])


@dataclass(frozen=True, slots=True)
class _SnapshotSource:
    """The records of a snapshot, as the source of an index."""

    snapshot: Snapshot

    def digests(self) -> Mapping[str, str]:
        """The version of the file, for each month that it has."""
        return dict.fromkeys(self.snapshot.months(), self.snapshot.version)

    def rows(self, month: str) -> Iterator[Mapping[str, Any]]:
        """The records of a month, as rows of metadata."""
        records = self.snapshot.find(self.snapshot.identifiers(month))
        return (record.as_row() for record in records.values())

    def is_gone(self, month: str) -> bool:
        """Always: the snapshot is one file."""
        return True
