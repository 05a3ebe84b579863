"""The stages `dump_members` and `papers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.corpus.dump.catalogue import Dump, read_dump
from pipeline.corpus.dump.member import place_of
from pipeline.engine.progress import Notice, publish
from pipeline.engine.stage import CheckResult, Job, MonthCheck, Stage, Workspace
from pipeline.errors import (
    CiteloomError,
    MissingInput,
    PermanentFailure,
    SettingError,
    require_packages,
)
from pipeline.settings import Settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import Row
from pipeline.tables import DUMP_MEMBERS as MEMBERS_TABLE
from pipeline.tables import METADATA as METADATA_TABLE
from pipeline.tables import PAGES as PAGES_TABLE
from pipeline.tables import PAPERS as PAPERS_TABLE
from pipeline.tables import Table

if TYPE_CHECKING:
    from pipeline.corpus.pages import Parse, ParsedChunk, SelectedPage
    from pipeline.engine.process_pool import LostItem

# 8 MB of pages parse in 0.1 to 0.2 s: the 1 ms of handing a chunk over is nothing, and what is in
# flight stays small.
_CHUNK_BYTES = 8_000_000
# Chunks of small months are smaller, so that every core has its share, down to what a worker does
# in 20 ms.
_SMALLEST_CHUNK_BYTES = 1_000_000
_CHUNKS_PER_WORKER = 4
# Processor time that one page may take to parse, in seconds.
PAGE_SECONDS = 10.0
_LEDGER_REASONS = {"crashed": "parser_crashed"}
_READ_FAILURES = frozenset({"corrupt_member", "unreadable"})
# On another machine, or at another time, such a page may become a paper.
_MACHINE_FAILURES = frozenset({"too_slow", "out_of_memory", "parser_crashed", "unreadable"})
_PARSER_FAILURES = _MACHINE_FAILURES | {"parser_error"}
# If so many pages fail in the same way and none was parsed, the machine is at fault.
_FIRST_PAGES = 20
# What the settings or arXiv keep out is no failure to parse.
_UNWANTED = frozenset({"no_metadata", "withdrawn", "not_computer_science", "other_category"})
# Share of a month's papers or wanted pages. Of the 49 pages of which the grades were set, one is C
# and none is D.
_MOST_LOST, _MOST_LOW_GRADES, _MOST_CUT_OFF = 0.2, 0.5, 0.2
# A share of fewer says nothing.
FEWEST_PAGES = 20


def _require_zips_of_earlier_pages(job: Job, dump: Dump) -> None:
    """Raise MissingInput where the month's present file has pages of a zip that is broken now.

    Listed without them, the month's papers would leave the corpus and the index for what may be a
    download under way.
    """
    try:
        earlier = job.rows(MEMBERS_TABLE, ["zip"]) if dump.broken else []
    except CiteloomError:
        return  # there is no file yet, or none that can be read
    for name in sorted(dump.broken.keys() & {row["zip"] for row in earlier}):
        raise MissingInput(
            f"{dump.broken[name]}; {job.month} has pages of it, which stay until then: to go on"
            f" without them, run citeloom run --months {job.month} --select dump --force"
        )


def _require_pages(job: Job, dump: Dump) -> None:
    """Raise MissingInput where the month has no page, and a zip that may hold its pages is broken.

    Else a month that a user names would succeed, empty, and nothing would say why.
    """
    if dump.broken and job.month not in dump.months:
        raise MissingInput(
            f"the dump has no page of {job.month}, and a zip that may hold some cannot be used: "
            f"{next(iter(dump.broken.values()))}"
        )


def _parser_named(name: str) -> Parse:
    """The parser that CITELOOM_PARSER names. Raises SettingError for another name, or where a
    package of the reference parser is absent.
    """
    if name == "fast":
        from pipeline.corpus.parse import html

        return html.parse
    if name == "reference":
        require_packages("CITELOOM_PARSER=reference", "papers", "bs4", "mwparserfromhtml")
        from pipeline.corpus.parse import reference

        return reference.parse
    raise SettingError(f"CITELOOM_PARSER: there is no parser {name}: set it to fast or reference")


def _account_for(job: Job, parsed: ParsedChunk) -> pa.RecordBatch:
    """The rows of a chunk; failures go to the ledger, sums to the month's notes."""
    for arxiv_id, reason, detail in parsed.left_out:
        job.leave_out(arxiv_id, reason, detail)
    job.measured["pages"] += parsed.rows.num_rows
    job.measured["bytes_read"] += parsed.bytes_read
    job.measured["parsing_seconds"] += parsed.parsing_seconds
    job.notes["papers_with_other_titles"] += parsed.other_titles
    job.notes["papers_with_unlinked_affiliations"] += parsed.unlinked
    rows = parsed.rows
    for name in ("chars_seen", "chars_kept"):
        job.notes[name] += sum(rows.column(name).to_pylist())
    job.notes["papers_with_other_authors"] += sum(
        map(bool, rows.column("authors_differ").to_pylist())
    )
    job.notes["low_grades"] += sum(
        grade in ("C", "D") for grade in rows.column("grade").to_pylist()
    )
    job.notes["cut_off"] += rows.column("truncated").true_count
    return rows


def _leave_out_lost_page(job: Job, page: SelectedPage, lost: LostItem, page_seconds: float) -> None:
    """Record a page that ended its worker."""
    detail = f"{page.member.place}: {lost.describe(page_seconds)}"
    job.leave_out(page.member.arxiv_id, _LEDGER_REASONS.get(lost.reason, lost.reason), detail)


def _require_a_parsed_page(job: Job) -> None:
    """Raise PermanentFailure where no page was parsed yet, and many failed in the same way.

    A fault of this machine must not become an empty month with a long ledger.
    """
    if job.measured["pages"]:
        return
    failures = [row for row in job.ledger if row["reason"] in _PARSER_FAILURES]
    if len(failures) >= _FIRST_PAGES and len({row["reason"] for row in failures}) == 1:
        reason, detail = failures[0]["reason"], failures[0]["detail"]
        raise PermanentFailure(
            f"the first {len(failures):,} pages of {job.month} all failed alike ({reason}), so the"
            f" fault is not theirs: {detail}"
        )


def _require_the_listed_dump(job: Job) -> None:
    """Raise MissingInput where pages could not be read because the dump has changed since it was
    listed.

    In the ledger they would be lost for good: once the dump is as before, nothing would be out of
    date.
    """
    unread = [row["subject"] for row in job.ledger if row["reason"] in _READ_FAILURES]
    listed = job.workspace.root.provenance(MEMBERS_TABLE, job.month) if unread else None
    if listed and listed.inputs != DUMP_MEMBERS.inputs(job.workspace, job.month):
        raise MissingInput(
            f"the dump has changed since {job.month} was listed, and {len(unread):,} of its pages"
            f" can no longer be read, {unread[0]} first: run citeloom run --months {job.month} once"
            " the dump is whole"
        )


def _report_machine_failures(job: Job) -> None:
    count = sum(row["reason"] in _MACHINE_FAILURES for row in job.ledger)
    if count:
        pages = "page was" if count == 1 else "pages were"
        publish(
            Notice(
                f"{count:,} {pages} left out of papers of {job.month} because of this machine (too"
                " slow, out of memory, a crash of the parser, a disk error); the ledger names them;"
                f" to try them again, run citeloom run --months {job.month} --select papers --force"
            )
        )


def every_member_is_accounted_for(workspace: Workspace, month: str) -> CheckResult:
    """Every page of the dump is a paper, or in the ledger with its reason."""
    members, _ = _rows_and_left_out(workspace, MEMBERS_TABLE, month)
    papers, left_out = _rows_and_left_out(workspace, PAPERS_TABLE, month)
    return CheckResult(
        members == papers + left_out, {"members": members, "papers": papers, "left_out": left_out}
    )


def _rows_and_left_out(workspace: Workspace, table: Table, month: str) -> tuple[int, int]:
    written = workspace.root.provenance(table, month)
    return (written.rows, sum(written.left_out.values())) if written else (0, 0)


def most_pages_are_read_whole(workspace: Workspace, month: str) -> CheckResult:
    """At least 80 % of the wanted pages are papers; at most 50 % of these have grade C or D, 20 %
    break off. Fewer than 20 pages pass.
    """
    written = workspace.root.provenance(PAPERS_TABLE, month)
    if written is None or not written.rows:
        return CheckResult(True, {})
    lost = sum(count for reason, count in written.left_out.items() if reason not in _UNWANTED)
    not_parsed = lost / (written.rows + lost)
    low_grades, cut_off = (
        written.notes.get(name, 0) / written.rows for name in ("low_grades", "cut_off")
    )
    over = [
        f"{name} {share:.0%} (at most {bound:.0%})"
        for name, share, bound in (
            ("pages that are no papers", not_parsed, _MOST_LOST),
            ("papers of grade C or D", low_grades, _MOST_LOW_GRADES),
            ("papers that break off", cut_off, _MOST_CUT_OFF),
        )
        if share > bound
    ]
    few = written.rows + lost < FEWEST_PAGES
    what_to_do = f"citeloom status --months {month} says what was left out and why"
    return CheckResult(
        few or not over,
        {
            "parsed": round(1 - not_parsed, 4),
            "low_grades": round(low_grades, 4),
            "cut_off": round(cut_off, 4),
        },
        f"{'; '.join(over)}: {what_to_do}" if over and not few else "",
    )


class DumpMembers(Stage):
    """Pages of the ar5iv zips, from their central directories, and loose pages beside them."""

    table = MEMBERS_TABLE
    after = (PAGES_TABLE,)
    settings = ("subsets",)
    plain_name = "dump"
    kinds = ("parquet", "zip")

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        return {"dump": read_dump(workspace.settings).digest(month)}

    def build(self, job: Job) -> Iterator[Row]:
        dump = read_dump(job.settings)
        if not job.force:
            _require_zips_of_earlier_pages(job, dump)
            _require_pages(job, dump)
        for stray in dump.strays(job.month):
            job.leave_out(*stray)
        listed: Row | None = None
        for page in dump.pages(job.month).to_pylist():
            if listed is not None and listed["arxiv_id"] == page["arxiv_id"]:
                places = (place_of(row["zip"], row["member"]) for row in (page, listed))
                job.leave_out(page["arxiv_id"], "duplicate", " is left out for ".join(places))
                continue
            listed = page
            yield page


class Papers(Stage):
    """Computer-science papers, parsed from pages read in place in the zip, with what each lost.

    Other categories are left out before any HTML is read.
    """

    table = PAPERS_TABLE
    upstream = (MEMBERS_TABLE, METADATA_TABLE)
    settings = ("categories", "category_match", "parser")
    former_settings = {"page_errors": "keep"}  # noqa: RUF012
    version = 22
    kinds = ("parquet", "html")
    checks = (
        MonthCheck(every_member_is_accounted_for, blocking=True),
        MonthCheck(most_pages_are_read_whole, warning=True),
    )
    page_seconds = PAGE_SECONDS

    def outputs_exist(self, workspace: Workspace, month: str, written: Provenance) -> bool:
        """Whether no page is lacking because of an error of this machine's disk."""
        return "unreadable" not in written.left_out

    def parser(self, settings: Settings) -> Parse:
        """The parser that CITELOOM_PARSER names."""
        return _parser_named(settings.parser)

    def build(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Select pages by metadata, then have workers read and parse them.

        Rows are sorted by identifier, so that a reader can skip row groups. Members of one month
        lie in their zips by identifier too, in three zips; so the pages of a chunk are read in file
        order, and every zip forwards.
        """
        from pipeline.corpus.pages import ParseJob, chunk_pages, parse_pages, select_pages
        from pipeline.engine.process_pool import LostItem, count_workers, map_chunks

        settings = job.settings
        parse_job = ParseJob(
            settings.dump_dir, self.parser(settings), self.page_seconds, year=int(job.month[:4])
        )
        pages = select_pages(job)
        job.expect(len(pages))
        job.notes.update(
            chars_seen=0,
            chars_kept=0,
            papers_with_other_titles=0,
            papers_with_other_authors=0,
            papers_with_unlinked_affiliations=0,
            low_grades=0,
            cut_off=0,
        )
        job.measured.update(pages=0, bytes_read=0, parsing_seconds=0.0)
        workers = count_workers(settings.workers)
        share = sum(page.member.bytes for page in pages) // (workers * _CHUNKS_PER_WORKER)
        chunks = chunk_pages(pages, min(_CHUNK_BYTES, max(_SMALLEST_CHUNK_BYTES, share)))
        for chunk, parsed in map_chunks(partial(parse_pages, parse_job), chunks, workers):
            if isinstance(parsed, LostItem):
                _leave_out_lost_page(job, chunk[0], parsed, self.page_seconds)
            else:
                yield _account_for(job, parsed)
            _require_a_parsed_page(job)
        _require_the_listed_dump(job)
        _report_machine_failures(job)


DUMP_MEMBERS = DumpMembers()
PAPERS = Papers()
