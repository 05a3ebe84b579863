"""Which pages of a month become papers: metadata decides, before any page is read. Never reads a page itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.arxiv.category_filter import verdict
from pipeline.corpus.dump.member import Member
from pipeline.corpus.pages import Wanted
from pipeline.engine.stage import Job
from pipeline.errors import PermanentFailure
from pipeline.settings import Settings
from pipeline.storage.writing import Row
from pipeline.tables import DUMP_MEMBERS, METADATA, Table

_DECIDING = ["arxiv_id", "categories", "primary_category", "status"]
_TOLD = ["title", "abstract"]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is to read: pages, and their bytes once unpacked."""

    pages: int
    bytes: int


def decide(job: Job) -> Extent:
    """How much of the month is wanted; the rest goes to the ledger, each page with its reason."""
    pages = size = 0
    for member, about in _joined(job, _DECIDING):
        reason, detail = _objection(about, job.settings)
        if reason:
            job.leave_out(member["arxiv_id"], reason, detail)
        else:
            pages, size = pages + 1, size + member["bytes"]
    return Extent(pages, size)


def wanted(job: Job) -> Iterator[Wanted]:
    """The pages that `decide` counted, by identifier. Neither table is held: a few thousand rows at a time."""
    for member, about in _joined(job, _DECIDING + _TOLD):
        if about is not None and not _objection(about, job.settings)[0]:
            yield Wanted(
                Member(**member),
                about["title"],
                about["abstract"],
                tuple(about["categories"] or ()),
                about["primary_category"],
            )


def chunks(pages: Iterable[Wanted], most_bytes: int) -> Iterator[list[Wanted]]:
    """The pages in their order, in chunks of `most_bytes` unpacked; a page above that is a chunk of its own."""
    chunk: list[Wanted] = []
    size = 0
    for page in pages:
        if chunk and size + page.member.bytes > most_bytes:
            yield chunk
            chunk, size = [], 0
        chunk.append(page)
        size += page.member.bytes
    if chunk:
        yield chunk


def _objection(about: Mapping[str, Any] | None, settings: Settings) -> tuple[str, str]:
    """Why a page is not wanted, as the ledger's reason and detail; an empty reason where it is."""
    if about is None or about["status"] == "absent":
        return "no_metadata", "no source of metadata knows the identifier"
    if about["status"] == "withdrawn":
        return "withdrawn", "its authors withdrew it"
    categories = about["categories"] or []
    fits, reason = verdict(categories, about["primary_category"] or "", settings)
    return ("", "") if fits else (reason, " ".join(categories))


def _joined(job: Job, columns: list[str]) -> Iterator[tuple[Row, Row | None]]:
    """Each member of the month with its row of metadata: both tables are read forwards once, side by side."""
    known = _in_order(job, METADATA, columns)
    about = next(known, None)
    for member in _in_order(job, DUMP_MEMBERS, None):
        while about is not None and about["arxiv_id"] < member["arxiv_id"]:
            about = next(known, None)
        yield member, about if about is not None and about["arxiv_id"] == member["arxiv_id"] else None
    for _ in known:  # to see that they are in order to the end
        pass


def _in_order(job: Job, table: Table, columns: list[str] | None) -> Iterator[Row]:
    """The rows of a month. Raises PermanentFailure where they do not go by identifier, as both stages write them."""
    before = ""
    for row in job.iterate(table, columns):
        if row["arxiv_id"] < before:
            raise PermanentFailure(
                f"{table.name} of {job.month} is not in the order of identifiers ({row['arxiv_id']} comes after "
                f"{before}): run citeloom run --months {job.month} --select {table.name} --force"
            )
        before = row["arxiv_id"]
        yield row
