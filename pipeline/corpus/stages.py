"""The stage `papers`. Not here: reading zips, parsing pages, the category rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.corpus import html
from pipeline.corpus.paper import PageError, Paper
from pipeline.corpus.zips import Member, MemberError, MemberReader
from pipeline.errors import SettingError
from pipeline.metadata.categories import verdict
from pipeline.stages import Job, Stage
from pipeline.tables import DUMP_MEMBERS as MEMBERS_TABLE
from pipeline.tables import METADATA as METADATA_TABLE
from pipeline.tables import PAPERS as PAPERS_TABLE
from pipeline.tables import Row

_DECIDING = ["arxiv_id", "title", "abstract", "categories", "primary_category", "status"]


def _parse_papers(job: Job) -> Iterator[Row]:
    """Decide by metadata first, then read and parse what is left, in order of identifier.

    That is the order within a zip's month too, so that every zip is read forwards, and no more than one page is held.
    """
    metadata = {row["arxiv_id"]: row for row in job.rows(METADATA_TABLE, _DECIDING)}
    parse = _parser(job.settings.parser)
    measured = {"pages": 0, "bytes_read": 0, "parsing_seconds": 0.0}
    notes = {"chars_seen": 0, "chars_kept": 0}
    job.measured.update(measured)
    with MemberReader(job.settings.dump_dir) as reader:
        for row in sorted(job.rows(MEMBERS_TABLE), key=lambda row: row["arxiv_id"]):
            about = metadata.get(row["arxiv_id"])
            if not _is_wanted(job, row["arxiv_id"], about):
                continue
            paper = _read_paper(job, Member(**row), reader, parse)
            if paper is None or about is None:
                continue
            notes = {name: notes[name] + getattr(paper, name) for name in notes}
            job.notes.update(notes)
            yield _paper_row(row, about, paper, int(job.month[:4]))
        job.measured["bytes_read"] = reader.bytes_read


def _is_wanted(job: Job, arxiv_id: str, about: Mapping[str, Any] | None) -> bool:
    """The decision that needs no page, with its reason in the ledger where it is no."""
    if about is None or about["status"] == "absent":
        job.leave_out(arxiv_id, "no_metadata", "no source of metadata knows the identifier")
        return False
    if about["status"] == "withdrawn":
        job.leave_out(arxiv_id, "withdrawn", "its authors withdrew it")
        return False
    categories = about["categories"] or []
    wanted, reason = verdict(categories, about["primary_category"] or "", job.settings)
    if not wanted:
        job.leave_out(arxiv_id, reason, " ".join(categories))
    return wanted


def _read_paper(job: Job, member: Member, reader: MemberReader, parse: Callable[[bytes], Paper]) -> Paper | None:
    started = time.perf_counter()
    try:
        page = reader.read(member)
        started = time.perf_counter()
        paper = parse(page)
    except (MemberError, PageError) as error:
        job.leave_out(member.arxiv_id, error.reason, f"{member.zip}:{member.member}: {error.detail}")
        return None
    job.measured["parsing_seconds"] += time.perf_counter() - started
    job.measured["pages"] += 1
    return paper


def _paper_row(member: Row, about: Mapping[str, Any], paper: Paper, year: int) -> Row:
    title, abstract = paper.title or about["title"], paper.abstract or about["abstract"]
    return {
        **paper.as_row(),
        "arxiv_id": member["arxiv_id"],
        "subset": member["subset"],
        "title": title,
        "title_source": "heading" if paper.title else "metadata" if title else "none",
        "abstract": abstract,
        "abstract_source": "page" if paper.abstract else "metadata" if abstract else "none",
        "categories": about["categories"],
        "primary_category": about["primary_category"],
        "year": year,
    }


def _parser(name: str) -> Callable[[bytes], Paper]:
    if name == "fast":
        return html.parse
    if name == "reference":
        from pipeline.corpus import reference

        return reference.parse
    raise SettingError(f"CITELOOM_PARSER: there is no parser {name}: set it to fast or reference")


PAPERS = Stage(
    table=PAPERS_TABLE,
    build=_parse_papers,
    upstream=(MEMBERS_TABLE, METADATA_TABLE),
    settings=("categories", "category_match", "parser"),
    version=2,
)
