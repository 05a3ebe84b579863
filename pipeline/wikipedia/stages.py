"""The stages `metadata` and `papers` of a Wikipedia snapshot.

Each dump has its own stages, since its files are arguments and no setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline.corpus.pages import LeftOut, RowBuilder
from pipeline.engine.process_pool import LostItem, count_workers, map_chunks, time_limit
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.tables import METADATA, PAPERS
from pipeline.wikipedia.article import grade_article, read_article
from pipeline.wikipedia.dump import Dump, Line, Page, read_page
from pipeline.wikipedia.sorting import newest_first, with_order

_LARGEST_INT32 = 2**31 - 1


def stages_of(dump: Dump) -> tuple[Stage, Stage]:
    """`metadata` and `papers` of a dump, for the month of its snapshot.

    Metadata is read in a separate pass, which parses no HTML.
    """
    build, digests = partial(_build, dump), partial(_digests, dump)
    return Stage(table=METADATA, build=build, inputs=digests), Stage(table=PAPERS, build=build, inputs=digests)


def _digests(dump: Dump, workspace: Workspace, month: str) -> Mapping[str, str]:
    return dump.digests()


def _build(dump: Dump, job: Job) -> Iterator[pa.RecordBatch]:
    """Compute the month: workers parse the lines, the rows are sorted, and the newest of each page is kept.

    Every line is a row or in the ledger. Raises PermanentFailure for an incomplete file, before anything is written.
    """
    folder = job.workspace.cache("wikipedia") / f"{job.stage.name}-{job.month}"
    return newest_first(_read_dump(dump, job), folder, job.stage.table.schema, partial(_leave_out_older, job))


def _leave_out_older(job: Job, page: str, revision: int) -> None:
    job.leave_out(page, "duplicate", f"revision {revision}: the newest one, or the first of several, is kept")


def _read_dump(dump: Dump, job: Job) -> Iterator[pa.RecordBatch]:
    job.notes["lines"] = 0
    read = partial(_read_lines, job.stage.name, job.settings.page_seconds)
    for lines, result in map_chunks(read, dump.chunks(), count_workers(job.settings.workers)):
        job.notes["lines"] += len(lines)
        if isinstance(result, LostItem):
            job.leave_out(lines[0].place, result.reason, result.describe(job.settings.page_seconds))
            continue
        batch, left_out = result
        for page in left_out:
            job.leave_out(*page)
        yield batch


def _read_lines(table: str, page_seconds: float, lines: Sequence[Line]) -> tuple[pa.RecordBatch, list[LeftOut]]:
    """Rows of `metadata` or `papers`, and what was left out, in a worker; a broken line does not affect the others.

    page_seconds: processor time that one page may take; one that takes more ends its worker.
    """
    import mwparserfromhtml  # noqa: F401 - loaded before the first page, whose time limit would include it

    schema, build_row = (PAPERS.schema, _paper_row) if table == PAPERS.name else (METADATA.schema, _metadata_row)
    rows = RowBuilder(with_order(schema))
    for line in lines:
        with rows.leaving_out(line.place, line.place):
            page = read_page(line)
            with rows.leaving_out(page.page_id, line.place), time_limit(page_seconds):
                rows.add(build_row(page) | {"revision": page.revision, "place": line.number})
    return rows.batch(), rows.left_out


def _metadata_row(page: Page) -> dict[str, Any]:
    revision = page.revision
    return {
        "arxiv_id": page.page_id,
        "version": revision if revision <= _LARGEST_INT32 else None,
        "title": page.title,
        "authors": [],
        "categories": [page.category],
        "primary_category": page.category,
        "published": _day(page.date_created),
        "updated": _day(page.date_modified),
        "source": "snapshot",
        "status": "present",
    }


def _day(moment: str | None) -> str | None:
    return moment[:10] if moment else None


def _paper_row(page: Page) -> dict[str, Any]:
    paper = read_article(page.html)
    quality = grade_article(paper)
    edited = (page.date_modified or "")[:4]
    return {
        **paper.as_row(),
        "arxiv_id": page.page_id,
        "subset": "unrated",
        "title": page.title,
        "title_source": "metadata",
        "authors_source": "none",
        "authors_differ": 0,
        "abstract": None,
        "abstract_source": "none",
        "categories": [page.category],
        "primary_category": page.category,
        "year": int(edited) if edited.isdecimal() else None,
        "grade": quality.grade,
        "grade_reasons": quality.reasons,
    }
