"""The stage `papers`: a month's pages go out to the workers, their rows come back in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pipeline.corpus import html
from pipeline.corpus.members import DUMP_MEMBERS
from pipeline.corpus.pages import Parse, Parsed, Reading, Wanted, parse_pages
from pipeline.corpus.wanted import Extent, chunks, decide, wanted
from pipeline.engine import progress
from pipeline.engine.process_pool import LostItem, count_workers, map_chunks
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import MissingInput, SettingError
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.tables import DUMP_MEMBERS as MEMBERS_TABLE
from pipeline.tables import METADATA as METADATA_TABLE
from pipeline.tables import PAPERS as PAPERS_TABLE

# 8 MB of pages parse in 0.1 to 0.2 s: the 1 ms of handing a chunk over is nothing, and what is under way stays small.
_CHUNK_BYTES = 8_000_000
# Small months are cut finer, so that every core has its share, down to what a worker does in 20 ms.
_SMALLEST_CHUNK_BYTES = 1_000_000
_CHUNKS_PER_WORKER = 4
_REASONS = {"crashed": "parser_crashed"}
_UNREAD = frozenset({"corrupt_member", "unreadable"})
# On another machine, or at another time, such a page may well be kept.
_LOST = frozenset({"too_slow", "out_of_memory", "parser_crashed", "unreadable"})


@dataclass(frozen=True, slots=True)
class PaperBuilder:
    """Computes a month of `papers`; a parser other than the one that CITELOOM_PARSER names is for tests."""

    parse: Parse | None = None

    def __call__(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Decide by metadata first, then have what is left read and parsed, in order of identifier.

        Rows are by identifier, which lets a reader skip row groups. Members of one month lie in their zips by
        identifier too, in three zips; so the pages of a chunk are read in file order, and every zip forwards.
        """
        reading = _reading(job, self.parse or _parser_named(job.settings.parser))
        extent = decide(job)
        job.expect(extent.pages)
        job.notes.update(chars_seen=0, chars_kept=0)
        job.measured.update(pages=0, bytes_read=0, parsing_seconds=0.0)
        workers = count_workers(job.settings.workers)
        cut = chunks(wanted(job), _chunk_bytes(extent, workers))
        for chunk, parsed in map_chunks(partial(parse_pages, reading), cut, workers):
            if isinstance(parsed, LostItem):
                _leave_out_lost(job, chunk[0], parsed)
            else:
                yield from _account(job, parsed)
        _require_the_listed_dump(job)
        _tell_of_lost(job)


def _reading(job: Job, parse: Parse) -> Reading:
    settings = job.settings
    return Reading(settings.dump_dir, parse, settings.page_errors, settings.page_seconds, int(job.month[:4]))


def _parser_named(name: str) -> Parse:
    """The parser that CITELOOM_PARSER names. Raises SettingError for a name that none has."""
    if name == "fast":
        return html.parse
    if name == "reference":
        from pipeline.corpus import reference

        return reference.parse
    raise SettingError(f"CITELOOM_PARSER: there is no parser {name}: set it to fast or reference")


def _chunk_bytes(extent: Extent, workers: int) -> int:
    return min(_CHUNK_BYTES, max(_SMALLEST_CHUNK_BYTES, extent.bytes // (workers * _CHUNKS_PER_WORKER)))


def _account(job: Job, parsed: Parsed) -> Iterator[pa.RecordBatch]:
    """The rows of a chunk, once what came of it is written down."""
    for arxiv_id, reason, detail in parsed.left_out:
        job.leave_out(arxiv_id, reason, detail)
    job.measured["pages"] += parsed.pages
    job.measured["bytes_read"] += parsed.bytes_read
    job.measured["parsing_seconds"] += parsed.parsing_seconds
    for batch in parsed.batches():
        for name in ("chars_seen", "chars_kept"):
            job.notes[name] += sum(batch.column(name).to_pylist())
        yield batch


def _leave_out_lost(job: Job, page: Wanted, lost: LostItem) -> None:
    """Write down a page that ended its worker; what depends on the machine is marked so."""
    limit = ""
    if lost.reason == "too_slow":
        limit = f" {job.settings.page_seconds:g} s of processor time (CITELOOM_PAGE_SECONDS)"
        job.notes["page_seconds"] = job.settings.page_seconds
    detail = f"{page.member.place}: {lost.detail}{limit}; on another machine it may go well"
    job.leave_out(page.member.arxiv_id, _REASONS.get(lost.reason, lost.reason), detail)


def _require_the_listed_dump(job: Job) -> None:
    """Raise MissingInput where pages could not be read because the dump is not the one that was listed any more.

    Left out for that, they would be missed for good: with the dump as it was before, nothing would be out of date.
    """
    unread = [row["subject"] for row in job.ledger if row["reason"] in _UNREAD]
    listed = read_provenance(job.workspace.root.file(MEMBERS_TABLE, job.month)) if unread else None
    if listed and listed.inputs != DUMP_MEMBERS.inputs(job.workspace, job.month):
        raise MissingInput(
            f"the dump has changed since {job.month} was listed, and {len(unread):,} of its pages cannot be read any "
            f"more, {unread[0]} first: run citeloom run --months {job.month} once the dump is whole"
        )


def _tell_of_lost(job: Job) -> None:
    lost = sum(row["reason"] in _LOST for row in job.ledger)
    if lost:
        pages = "page was" if lost == 1 else "pages were"
        progress.noted(
            f"{lost:,} {pages} left out of papers of {job.month} for what this machine could not do (too slow, out of "
            "memory, a crash of the parser, an error of the disk); the ledger names them; to try them again, run "
            f"citeloom run --months {job.month} --select papers --force"
        )


def _could_keep_no_more(workspace: Workspace, month: str, provenance: Provenance) -> bool:
    """Whether no page was left out that the disk would not give, or as too slow where it would have more time now."""
    seconds = provenance.notes.get("page_seconds", float("inf"))
    return bool(workspace.settings.page_seconds <= seconds) and "unreadable" not in provenance.left_out


PAPERS = Stage(
    table=PAPERS_TABLE,
    build=PaperBuilder(),
    upstream=(MEMBERS_TABLE, METADATA_TABLE),
    settings=("categories", "category_match", "parser", "page_errors"),
    version=6,
    outputs_exist=_could_keep_no_more,
)
