"""The command `citeloom questions review`: review of drafted questions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import AsJsonNotText, MonthsOption, open_workspace
from pipeline.errors import SettingError

IntoOption = Annotated[
    Path | None, typer.Option(help="Question set that accepted drafts are added to; by default CITELOOM_QUESTIONS.")
]
AcceptOption = Annotated[list[str] | None, typer.Option(metavar="ID", help="Accept the draft of this id; repeatable.")]
RejectOption = Annotated[list[str] | None, typer.Option(metavar="ID", help="Reject the draft of this id; repeatable.")]


def review(
    months: MonthsOption = "all",
    into: IntoOption = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="List rejected drafts too.")] = False,
    accept: AcceptOption = None,
    reject: RejectOption = None,
    accept_all: Annotated[bool, typer.Option("--accept-all", help="Accept every waiting draft.")] = False,
    as_json: AsJsonNotText = False,
) -> int:
    """List drafted questions with their claims and passages; accept them into a question set, or reject them.

    Examples:
      citeloom questions review --into questions.jsonl
      citeloom questions review --into questions.jsonl --accept 2405.00001-summary-0c1d2e3f4a5b
    """
    from pipeline.answering import draft_review
    from pipeline.cli.console import print_json, print_note

    workspace = open_workspace()
    file = into or workspace.settings.questions  # never the shipped set, unless --into names it
    if file is None:
        raise SettingError("--into names no question set: give a file, which may be new, or set CITELOOM_QUESTIONS")
    accepted_ids, rejected_ids = accept or [], reject or []
    drafts = draft_review.read_drafts(workspace, months)
    unknown = [name for name in (*accepted_ids, *rejected_ids) if name not in drafts]
    if unknown:
        raise SettingError(f"there is no draft {', '.join(unknown)}: citeloom questions review lists them")
    if both := sorted({*accepted_ids} & {*rejected_ids}):
        raise SettingError(f"--accept and --reject both name {', '.join(both)}: leave one of them")
    in_set = {question.id for question in draft_review.read_set(file)} & drafts.keys()
    new = [name for name in drafts if name not in in_set]
    earlier_rejected = draft_review.read_rejected(workspace)
    waiting = [name for name in new if name not in earlier_rejected]

    if accepted_ids or rejected_ids or accept_all:
        if accept_all:
            accepted_ids += [name for name in waiting if name not in rejected_ids]
        added = draft_review.accept(workspace, file, [drafts[name] for name in accepted_ids])
        present = [name for name in accepted_ids if name not in added]
        if rejected_ids:
            draft_review.reject(workspace, [drafts[name] for name in rejected_ids])
        if as_json:
            print_json({"file": file, "added": added, "there": present, "rejected": rejected_ids})
        else:
            typer.echo("\n".join(added), nl=bool(added))
            print_note(f"{len(added)} added to {file}, {len(present)} were in it, {len(rejected_ids)} rejected")
        return 0

    listed = [drafts[name] for name in (new if rejected else waiting)]
    papers = draft_review.papers_of(workspace, listed)
    if as_json:
        documents = [draft_review.draft_json(draft, papers) for draft in listed]
        counts = {"in_set": len(in_set), "rejected": len(new) - len(waiting)}
        print_json({"file": file, **counts, "drafts": documents})
        return 0
    for draft in listed:
        typer.echo("\n".join([*draft_review.draft_lines(draft, papers), ""]))
    sys.stdout.flush()
    print_note(f"{len(waiting)} drafts wait; {len(in_set)} are in {file}, {len(new) - len(waiting)} are rejected")
    return 0
