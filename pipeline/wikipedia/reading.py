"""Lines of a dump to rows of `metadata` or `papers`, in a worker process. A broken line does not affect the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pipeline.corpus.pages import LeftOut, RowBuilder
from pipeline.engine.process_pool import time_limit
from pipeline.tables import METADATA, PAPERS, Table
from pipeline.wikipedia.article import grade_article, read_article
from pipeline.wikipedia.dump import Line
from pipeline.wikipedia.page import Page, read_page
from pipeline.wikipedia.sorting import with_order

BuildRow = Callable[[Page], dict[str, Any]]
Rows = tuple[pa.RecordBatch, list[LeftOut]]
"""The rows of some lines, and what was left out of them."""

_LARGEST_INT32 = 2**31 - 1


def metadata_rows(lines: Sequence[Line]) -> Rows:
    """Rows of `metadata`; the HTML is not parsed."""
    return _read(METADATA, _metadata_row, lines)


def paper_rows(page_seconds: float, lines: Sequence[Line]) -> Rows:
    """Rows of `papers`. page_seconds: processor time that one page may take; one that takes more ends its worker."""
    import mwparserfromhtml  # noqa: F401 - loaded before the first page, whose time limit would include it

    def build_row(page: Page) -> dict[str, Any]:
        with time_limit(page_seconds):
            return _paper_row(page)

    return _read(PAPERS, build_row, lines)


def _read(table: Table, build_row: BuildRow, lines: Sequence[Line]) -> Rows:
    rows = RowBuilder(with_order(table.schema))
    for line in lines:
        with rows.leaving_out(line.place, line.place):
            page = read_page(line)
            with rows.leaving_out(page.page_id, line.place):
                rows.add(build_row(page) | {"revision": page.version.identifier, "place": line.number})
    return rows.batch(), rows.left_out


def _metadata_row(page: Page) -> dict[str, Any]:
    revision = page.version.identifier
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
