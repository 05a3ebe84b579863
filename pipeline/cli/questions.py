"""The commands `citeloom questions`: drafts for a person to accept, question sets checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJsonNotText, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings

if TYPE_CHECKING:
    from pipeline.answering.drafting_review import Draft
    from pipeline.answering.reviewing import Desk, Reviewed


IntoOption = Annotated[
    Path | None, typer.Option(help="Question set that accepted drafts are added to; else CITELOOM_QUESTIONS.")
]
AcceptOption = Annotated[list[str] | None, typer.Option(help="Accept the draft of this id, unasked; once for each.")]
RejectOption = Annotated[list[str] | None, typer.Option(help="Reject the draft of this id, unasked; once for each.")]


def review(
    months: MonthsOption = "all",
    into: IntoOption = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Show those again that were rejected.")] = False,
    accept: AcceptOption = None,
    reject: RejectOption = None,
    accept_all: Annotated[bool, typer.Option("--accept-all", help="Accept every draft that waits, unasked.")] = False,
    as_json: AsJsonNotText = False,
) -> int:
    """Go through drafted questions: accept them into a question set, edit or reject them."""
    from pipeline.answering.drafting_review import waiting

    workspace = Workspace(load_settings())
    file = _into(into, workspace.settings)
    if accept or reject or accept_all:
        return _decide(workspace, file, months, accept or [], reject or [], accept_all=accept_all, as_json=as_json)
    found = waiting(workspace, months, file, rejected_too=rejected)
    if as_json:
        _print_drafts(workspace, file, found.drafts, found.in_set, found.rejected)
        return 0
    told = f"{len(found.drafts)} drafts wait; {found.in_set} are in {file} already, {found.rejected} were rejected"
    return _go_through(workspace, file, found.drafts, told)


def _into(into: Path | None, settings: Settings) -> Path:
    """The set of accepted questions; never the shipped one, unless somebody names it."""
    file = into or settings.questions
    if file is None:
        raise SettingError("--into names no question set: give a file, which may be new, or set CITELOOM_QUESTIONS")
    return file


def _go_through(workspace: Workspace, file: Path, drafts: Sequence[Draft], told: str) -> int:
    from pipeline.answering.reviewing import HELP, Review
    from pipeline.cli.console import print_note

    print_note(told)
    if not drafts:
        return 0
    if not sys.stdin.isatty():
        raise SettingError(
            "citeloom questions review asks at a terminal, and standard input is none: give --json to list the drafts, "
            "then --accept ID and --reject ID, or --accept-all"
        )
    print_note(HELP)
    talk = Review(workspace, file, _desk())
    try:
        talk.go_through(drafts)
    finally:
        print_note(_summary(talk.reviewed, len(drafts)))
    return 0


def _summary(done: Reviewed, drafts: int) -> str:
    left = drafts - done.accepted - done.rejected
    return f"{done.accepted} accepted, {done.rejected} rejected, {left} still wait"


def _desk() -> Desk:
    """The terminal, and the editor of VISUAL or EDITOR."""
    from pipeline.answering.reviewing import Desk

    return Desk(_ask, _edit, typer.echo)


def _ask(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        typer.echo()
        return None


def _edit(text: str) -> str | None:
    import click

    try:
        return click.edit(text, extension=".yaml")
    except click.ClickException as error:
        raise SettingError(f"{error.format_message()}: set EDITOR to an editor that is there") from None


def _decide(
    workspace: Workspace,
    file: Path,
    months: str,
    accepted: Sequence[str],
    rejected: Sequence[str],
    *,
    accept_all: bool,
    as_json: bool,
) -> int:
    """Accept and reject drafts by their ids, nothing where one of the ids is of no draft."""
    from pipeline.answering.drafting_review import accept, read_drafts, reject, waiting
    from pipeline.cli.console import print_json, print_note

    known = {draft.question.id: draft.question for draft in read_drafts(workspace, months)}
    _check_ids(accepted, rejected, known)
    wanted = [known[each] for each in accepted]
    if accept_all:
        wanted += [
            each.question for each in waiting(workspace, months, file).drafts if each.question.id not in rejected
        ]
    done = accept(workspace, file, wanted)
    if rejected:
        reject(workspace, [known[each] for each in rejected])
    if as_json:
        print_json({"file": file, "added": done.added, "there": done.there, "rejected": list(rejected)})
    else:
        typer.echo("\n".join(done.added), nl=bool(done.added))
        print_note(f"{len(done.added)} added to {file}, {len(done.there)} were there, {len(rejected)} rejected")
    return 0


def _check_ids(accepted: Sequence[str], rejected: Sequence[str], known: object) -> None:
    strange = [each for each in (*accepted, *rejected) if each not in known]  # type: ignore[operator]
    if strange:
        raise SettingError(f"there is no draft {', '.join(strange)}: citeloom questions review --json lists them")
    both = sorted({*accepted} & {*rejected})
    if both:
        raise SettingError(f"--accept and --reject both name {', '.join(both)}: leave one of them")


def _print_drafts(workspace: Workspace, file: Path, drafts: Sequence[Draft], in_set: int, rejected: int) -> None:
    from pipeline.answering.drafting_review import Shelf
    from pipeline.answering.reviewing import draft_json
    from pipeline.cli.console import print_json

    shelf = Shelf(workspace)
    told = [draft_json(draft, shelf) for draft in drafts]
    print_json({"file": file, "in_set": in_set, "rejected": rejected, "drafts": told})


def check(
    file: Annotated[Path | None, typer.Argument(help="Question set; else the one of the settings.")] = None,
    as_json: AsJsonNotText = False,
) -> int:
    """Read a question set, and say what it holds and what of it the corpus does not have."""
    from pipeline.answering.question_rows import set_file
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.answers.set_check import check_set, lines, notes

    workspace = Workspace(load_settings())
    place = file or set_file(workspace.settings)
    if place is None:
        raise SettingError("there is no question set: give a file, or set CITELOOM_QUESTIONS")
    found = check_set(workspace, place)
    if as_json:
        print_json(found.as_json())
        return 0
    for line in lines(found):
        typer.echo(line)
    sys.stdout.flush()
    for note in notes(found):
        print_note(note)
    return 0
