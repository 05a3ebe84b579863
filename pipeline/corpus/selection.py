"""Selection of the pages of a month that become papers: by metadata, before any page is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.arxiv.category_filter import verdict
from pipeline.corpus.dump.member import Member
from pipeline.corpus.pages import SelectedPage
from pipeline.engine.stage import Job
from pipeline.errors import PermanentFailure
from pipeline.settings import Settings
from pipeline.storage.writing import Row
from pipeline.tables import DUMP_MEMBERS, METADATA, Table

_COLUMNS_THAT_DECIDE = ["arxiv_id", "categories", "primary_category", "status"]
_COLUMNS_OF_PAPERS = ["title", "abstract", "authors"]


@dataclass(frozen=True, slots=True)
class SelectionSize:
    """How much there is to read: pages, and their bytes once unpacked."""

    pages: int
    bytes: int


def measure_selection(job: Job) -> SelectionSize:
    """The size of the month's selection; every other page goes to the ledger with its reason."""
    pages = size = 0
    for member, metadata in _with_metadata(job, _COLUMNS_THAT_DECIDE):
        reason, detail = _objection(metadata, job.settings)
        if reason:
            job.leave_out(member["arxiv_id"], reason, detail)
        else:
            pages, size = pages + 1, size + member["bytes"]
    return SelectionSize(pages, size)


def select_pages(job: Job) -> Iterator[SelectedPage]:
    """The pages that `measure_selection` counted, by identifier; a few thousand rows of each table are in memory."""
    for member, metadata in _with_metadata(job, _COLUMNS_THAT_DECIDE + _COLUMNS_OF_PAPERS):
        if metadata is not None and not _objection(metadata, job.settings)[0]:
            yield SelectedPage(
                Member(**member),
                metadata["title"],
                metadata["abstract"],
                tuple(metadata["categories"] or ()),
                metadata["primary_category"],
                tuple(metadata["authors"] or ()),
            )


def chunk_pages(pages: Iterable[SelectedPage], most_bytes: int) -> Iterator[list[SelectedPage]]:
    """The pages in their order, in chunks of `most_bytes` unpacked; a page above that is a chunk of its own."""
    chunk: list[SelectedPage] = []
    size = 0
    for page in pages:
        if chunk and size + page.member.bytes > most_bytes:
            yield chunk
            chunk, size = [], 0
        chunk.append(page)
        size += page.member.bytes
    if chunk:
        yield chunk


def _objection(metadata: Mapping[str, Any] | None, settings: Settings) -> tuple[str, str]:
    """Why a page is not selected, as the ledger's reason and detail; an empty reason where it is."""
    if metadata is None or metadata["status"] == "absent":
        return "no_metadata", "no source of metadata knows the identifier"
    if metadata["status"] == "withdrawn":
        return "withdrawn", "its authors withdrew it"
    categories = metadata["categories"] or []
    fits, reason = verdict(categories, metadata["primary_category"] or "", settings)
    return ("", "") if fits else (reason, " ".join(categories))


def _with_metadata(job: Job, columns: list[str]) -> Iterator[tuple[Row, Row | None]]:
    """Each member of the month with its row of metadata: a merge join of both tables, each read once."""
    records = _rows_by_identifier(job, METADATA, columns)
    record = next(records, None)
    for member in _rows_by_identifier(job, DUMP_MEMBERS, None):
        while record is not None and record["arxiv_id"] < member["arxiv_id"]:
            record = next(records, None)
        yield member, record if record is not None and record["arxiv_id"] == member["arxiv_id"] else None
    for _ in records:  # to check the order of the rest
        pass


def _rows_by_identifier(job: Job, table: Table, columns: list[str] | None) -> Iterator[Row]:
    """The rows of a month. Raises PermanentFailure where they are not sorted by identifier."""
    before = ""
    for row in job.iterate(table, columns):
        if row["arxiv_id"] < before:
            raise PermanentFailure(
                f"{table.name} of {job.month} is not sorted by identifier ({row['arxiv_id']} comes after {before}): "
                f"run citeloom run --months {job.month} --select {table.name} --force"
            )
        before = row["arxiv_id"]
        yield row
