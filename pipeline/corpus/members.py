"""The stage `dump_members`. Not here: reading zips (`zips.py`), which members become papers (`stages.py`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from pipeline.corpus.zips import Directory, Member, Stray, directories
from pipeline.settings import SUBSETS
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import DUMP_MEMBERS as MEMBERS_TABLE
from pipeline.tables import Row


def _members_of(found: list[Directory], month: str) -> list[Member]:
    """The month's members by id, and for one id in the order in which the first is kept."""
    members = [member for directory in found for member in directory.members(month)]
    return sorted(members, key=lambda one: (one.arxiv_id, SUBSETS.index(one.subset), one.zip, one.member))


def _strays_of(found: list[Directory], month: str) -> list[Stray]:
    """Entries that are no readable pages: under the month they claim, or under the dump's first."""
    months = sorted({month for directory in found for month in directory.places})
    first = next(iter(months), None)
    strays = [stray for directory in found for stray in directory.strays]
    return [stray for stray in strays if (stray.month if stray.month in months else first) == month]


def _list_members(job: Job) -> Iterator[Row]:
    found = directories(job.settings)
    for stray in _strays_of(found, job.month):
        job.leave_out(f"{stray.zip}:{stray.name}", stray.reason, stray.detail)
    kept: Member | None = None
    for member in _members_of(found, job.month):
        if kept is not None and kept.arxiv_id == member.arxiv_id:
            detail = f"{member.zip}:{member.member} is left out for {kept.zip}:{kept.member}"
            job.leave_out(member.arxiv_id, "duplicate", detail)
            continue
        kept = member
        yield _member_row(member)


def _member_row(member: Member) -> Row:
    return {name: getattr(member, name) for name in MEMBERS_TABLE.schema.names}


def _directory_digest(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What the zips say of the month: a zip that was copied or touched is still the same, one that changed is not."""
    found = directories(workspace.settings)
    digest = hashlib.sha256()
    for member in _members_of(found, month):
        digest.update(repr(tuple(_member_row(member).values())).encode())
    for stray in _strays_of(found, month):
        digest.update(f"{stray.zip}:{stray.name}".encode())
    return {"dump": digest.hexdigest()}


DUMP_MEMBERS = Stage(table=MEMBERS_TABLE, build=_list_members, settings=("subsets",), inputs=_directory_digest)
