"""The commands `citeloom questions`: review of drafted questions, and checks of question sets."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJsonNotText, MonthsOption, check_file
from pipeline.cli.workspace import open_workspace
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from pipeline.answering.drafting_review import Draft
    from pipeline.engine.stage import Workspace


IntoOption = Annotated[
    Path | None, typer.Option(help="Question set that accepted drafts are added to; by default CITELOOM_QUESTIONS.")
]
AcceptOption = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Accept the draft of this id without asking; repeatable.")
]
RejectOption = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Reject the draft of this id without asking; repeatable.")
]


def review(
    months: MonthsOption = "all",
    into: IntoOption = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Show rejected drafts again.")] = False,
    accept: AcceptOption = None,
    reject: RejectOption = None,
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="Accept every waiting draft without asking.")
    ] = False,
    as_json: AsJsonNotText = False,
) -> int:
    """Review drafted questions: accept them into a question set, edit or reject them.

    Examples:
      citeloom questions review --into questions.jsonl
      citeloom questions review --into questions.jsonl --accept-all
    """
    from pipeline.answering.drafting_review import Shelf, waiting
    from pipeline.answering.reviewing import draft_json
    from pipeline.cli.console import print_json, print_note

    workspace = open_workspace()
    file = into or workspace.settings.questions  # never the shipped set, unless somebody names it
    if file is None:
        raise SettingError("--into names no question set: give a file, which may be new, or set CITELOOM_QUESTIONS")
    if accept or reject or accept_all:
        return _decide(workspace, file, months, accept or [], reject or [], accept_all=accept_all, as_json=as_json)
    queue = waiting(workspace, months, file, rejected_too=rejected)
    if as_json:
        shelf = Shelf(workspace)
        drafts = [draft_json(draft, shelf) for draft in queue.drafts]
        print_json({"file": file, "in_set": queue.in_set, "rejected": queue.rejected, "drafts": drafts})
        return 0
    print_note(f"{len(queue.drafts)} drafts wait; {queue.in_set} are in {file} already, {queue.rejected} were rejected")
    if queue.drafts:
        _review_at_terminal(workspace, file, queue.drafts)
    return 0


def _review_at_terminal(workspace: Workspace, file: Path, drafts: Sequence[Draft]) -> None:
    """Show one draft after another and ask what to do with it, in the terminal and the editor of VISUAL or EDITOR."""
    from pipeline.answering.reviewing import HELP, Desk, Review
    from pipeline.cli.console import print_note

    if not sys.stdin.isatty():
        raise SettingError(
            "citeloom questions review needs a terminal, and standard input is none: give --json to list the drafts, "
            "then --accept ID and --reject ID, or --accept-all"
        )
    print_note(HELP)
    session = Review(workspace, file, Desk(_prompt, _edit, typer.echo))
    try:
        session.go_through(drafts)
    finally:
        done = session.reviewed
        waiting = len(drafts) - done.accepted - done.rejected
        print_note(f"{done.accepted} accepted, {done.rejected} rejected, {waiting} still wait")


def _prompt(text: str) -> str | None:
    try:
        return input(text)
    except EOFError:
        typer.echo()
        return None


def _edit(text: str) -> str | None:
    import click

    try:
        return click.edit(text, extension=".yaml")
    except click.ClickException as error:
        raise SettingError(f"{error.format_message()}: set EDITOR to an editor that is installed") from None


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
    """Accept and reject drafts by their ids; nothing if one of the ids is unknown."""
    from pipeline.answering.drafting_review import accept, read_drafts, reject, waiting
    from pipeline.cli.console import print_json, print_note

    known = {draft.question.id: draft.question for draft in read_drafts(workspace, months)}
    _check_ids(accepted, rejected, known)
    questions = [known[identifier] for identifier in accepted]
    if accept_all:
        drafts = waiting(workspace, months, file).drafts
        questions += [draft.question for draft in drafts if draft.question.id not in rejected]
    done = accept(workspace, file, questions)
    if rejected:
        reject(workspace, [known[identifier] for identifier in rejected])
    if as_json:
        print_json({"file": file, "added": done.added, "there": done.there, "rejected": list(rejected)})
    else:
        typer.echo("\n".join(done.added), nl=bool(done.added))
        print_note(f"{len(done.added)} added to {file}, {len(done.there)} were there, {len(rejected)} rejected")
    return 0


def _check_ids(accepted: Sequence[str], rejected: Sequence[str], known: Collection[str]) -> None:
    unknown = [identifier for identifier in (*accepted, *rejected) if identifier not in known]
    if unknown:
        raise SettingError(f"there is no draft {', '.join(unknown)}: citeloom questions review --json lists them")
    both = sorted({*accepted} & {*rejected})
    if both:
        raise SettingError(f"--accept and --reject both name {', '.join(both)}: leave one of them")


def check(
    file: Annotated[Path | None, typer.Argument(help="Question set; by default that of the settings.")] = None,
    as_json: AsJsonNotText = False,
) -> int:
    """Check a question set: what it holds, and which of its papers and phrases the corpus lacks.

    Examples:
      citeloom questions check
      citeloom questions check questions.jsonl --json
    """
    check_file("FILE", file)

    from pipeline.answering.question_rows import set_file
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.answers.set_check import check_set, lines, notes

    workspace = open_workspace()
    question_set = file or set_file(workspace.settings)
    if question_set is None:
        raise SettingError("there is no question set: give a file, or set CITELOOM_QUESTIONS")
    check = check_set(workspace, question_set)
    if as_json:
        print_json(check.as_json())
        return 0
    for line in lines(check):
        typer.echo(line)
    sys.stdout.flush()
    for note in notes(check):
        print_note(note)
    return 0
