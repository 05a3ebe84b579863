"""The stage `dump_members`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline.corpus.dump.catalogue import Dump, read_dump
from pipeline.corpus.dump.member import place_of
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import CiteloomError, MissingInput
from pipeline.storage.writing import Row
from pipeline.tables import DUMP_MEMBERS as MEMBERS_TABLE


def _list_members(job: Job) -> Iterator[Row]:
    dump = read_dump(job.settings)
    if not job.force:
        _refuse_to_lose_pages(job, dump)
        _refuse_to_find_nothing(job, dump)
    for stray in dump.strays(job.month):
        job.leave_out(stray.place, stray.reason, stray.detail)
    kept: Row | None = None
    for page in dump.pages(job.month).to_pylist():
        if kept is not None and kept["arxiv_id"] == page["arxiv_id"]:
            detail = f"{place_of(page['zip'], page['member'])} is left out for {place_of(kept['zip'], kept['member'])}"
            job.leave_out(page["arxiv_id"], "duplicate", detail)
            continue
        kept = page
        yield page


def _refuse_to_lose_pages(job: Job, dump: Dump) -> None:
    """Raise MissingInput where the month as it stands has pages of a zip that is broken now.

    Listed without them, the month's papers would leave the corpus and the index for what may be a download under way.
    """
    broken = {one.zip: one.message for one in dump.broken}
    try:
        before = job.rows(MEMBERS_TABLE, ["zip"]) if broken else []
    except CiteloomError:
        return  # there is nothing yet, or nothing that could be read
    for name in sorted(broken.keys() & {row["zip"] for row in before}):
        raise MissingInput(
            f"{broken[name]}; {job.month} has pages of it, which stay until then: to go on without them, run citeloom "
            f"run --months {job.month} --select dump_members --force"
        )


def _refuse_to_find_nothing(job: Job, dump: Dump) -> None:
    """Raise MissingInput where the month has no page, and a zip that may hold its pages is broken.

    Else a month that is asked for by its name would succeed, empty, with nothing on its page that says why.
    """
    if dump.broken and job.month not in dump.months:
        raise MissingInput(
            f"the dump has no page of {job.month}, and a zip that may hold some cannot be used: "
            f"{dump.broken[0].message}"
        )


def _directory_digest(workspace: Workspace, month: str) -> Mapping[str, str]:
    return {"dump": read_dump(workspace.settings).digest(month)}


DUMP_MEMBERS = Stage(table=MEMBERS_TABLE, build=_list_members, settings=("subsets",), inputs=_directory_digest)
