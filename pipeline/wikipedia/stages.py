"""The stages `metadata` and `papers` of a Wikipedia snapshot.

Each dump has its own stages, since its files are arguments and no setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pipeline.engine.process_pool import LostItem, count_workers, map_chunks
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.tables import METADATA, PAPERS
from pipeline.wikipedia.dump import Dump, Line
from pipeline.wikipedia.reading import Rows, metadata_rows, paper_rows
from pipeline.wikipedia.sorting import NewestFirst

Work = Callable[[Sequence[Line]], Rows]


def stages_of(dump: Dump) -> tuple[Stage, Stage]:
    """`metadata` and `papers` of a dump, for the month of its snapshot.

    Metadata is read in a separate pass, which parses no HTML.
    """
    return (
        Stage(table=METADATA, build=_Build(dump, _listing), inputs=partial(_digests, dump)),
        Stage(table=PAPERS, build=_Build(dump, _parsing), inputs=partial(_digests, dump)),
    )


def _digests(dump: Dump, workspace: Workspace, month: str) -> Mapping[str, str]:
    return dump.digests()


def _listing(job: Job) -> Work:
    return metadata_rows


def _parsing(job: Job) -> Work:
    return partial(paper_rows, job.settings.page_seconds)


@dataclass(frozen=True, slots=True)
class _Build:
    """Computes the month: workers parse the lines, the rows are sorted, and the newest of each page is kept.

    Every line is a row or in the ledger. Raises PermanentFailure for an incomplete file, before anything is written.
    """

    dump: Dump
    work: Callable[[Job], Work]

    def __call__(self, job: Job) -> Iterator[pa.RecordBatch]:
        folder = job.workspace.cache("wikipedia") / f"{job.stage.name}-{job.month}"
        with NewestFirst(folder, job.stage.table.schema, partial(_leave_out_older, job)) as sorted_rows:
            job.notes["lines"] = 0
            for batch in self._read(job):
                sorted_rows.add(batch)
            yield from sorted_rows.rows()

    def _read(self, job: Job) -> Iterator[pa.RecordBatch]:
        workers = count_workers(job.settings.workers)
        for lines, result in map_chunks(self.work(job), self.dump.chunks(), workers):
            job.notes["lines"] += len(lines)
            if isinstance(result, LostItem):
                job.leave_out(lines[0].place, result.reason, result.describe(job.settings.page_seconds))
                continue
            batch, left_out = result
            for page in left_out:
                job.leave_out(*page)
            yield batch


def _leave_out_older(job: Job, page: str, revision: int) -> None:
    job.leave_out(page, "duplicate", f"revision {revision}: the newest one, or the first of several, is kept")
