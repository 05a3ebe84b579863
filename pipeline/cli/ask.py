"""The commands `citeloom ask` and `chat`: questions to the corpus, one or a conversation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.options import AsJsonNotText
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, exit_code_of
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from pipeline.answering.asking import Conversation, Reply, Watch
    from pipeline.answering.retrieving import Found


SystemOption = Annotated[str, typer.Option(help="Which system answers: arxivbot, wikichat, or direct, without papers.")]
MonthsOption = Annotated[
    str, typer.Option(help="Only papers of a month (2024-03), of a range (2024-03..2024-05), or all.")
]
ShowWork = Annotated[bool, typer.Option("--show-work", help="Tell each step as it is done: queries, passages, claims.")]

_HELP = "/reset forgets what was said, /work tells the steps or stops it, /quit or Ctrl-D ends"
_PROMPT = "> "


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know, in a sentence.")],
    system: SystemOption = "arxivbot",
    months: MonthsOption = "all",
    show_work: ShowWork = False,
    as_json: AsJsonNotText = False,
) -> int:
    """Answer a question from the corpus, each sentence with the passages that it rests on."""
    from pipeline.answering.asking import open_conversation
    from pipeline.answering.telling import as_json as document
    from pipeline.cli.console import print_json

    talk = open_conversation(Workspace(load_settings()), system, months)
    reply = _ask(talk, question, system, show_work=show_work)
    if as_json:
        print_json(document(reply, steps=show_work))
    else:
        _print_answer(reply)
    return 0


def chat(
    system: SystemOption = "arxivbot",
    months: MonthsOption = "all",
    show_work: ShowWork = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on a line for each answer.")] = False,
) -> int:
    """Answer questions one after another, typed or piped; each may lean on those before it. Ctrl-D ends it."""
    from pipeline.answering.asking import open_conversation
    from pipeline.cli.console import print_note

    talk = open_conversation(Workspace(load_settings()), system, months)
    chatting = _Chat(talk, system, show_work=show_work, as_json=as_json)
    if not sys.stdin.isatty():
        return max(map(chatting.take, _until_quit(_piped(sys.stdin.buffer))), default=0)
    print_note(f"{system} answers; {_HELP}")
    for line in _until_quit(_typed()):
        try:
            chatting.take(line)
        except KeyboardInterrupt:
            print_note("interrupted; what was answered on the way is kept: ask again to go on from there")
    return 0


class _Chat:
    """A conversation at a prompt: what is typed is a question or a command."""

    def __init__(self, talk: Conversation, system: str, *, show_work: bool, as_json: bool) -> None:
        self._talk, self._system = talk, system
        self._show_work, self._as_json = show_work, as_json

    def take(self, line: str) -> int:
        """Answer a line; the exit code that it would have as a command of its own.

        A conversation goes on after a question that could not be answered, which leaves no turn.
        """
        text = line.strip()
        try:
            if not text:
                return 0
            if text.startswith("/"):
                return self._command(text)
            self._answer(text)
        except CiteloomError as error:
            self._print_failure(error)
            return exit_code_of(error)
        finally:
            _let_go()
        return 0

    def _command(self, text: str) -> int:
        from pipeline.answering.telling import line_of
        from pipeline.cli.console import print_note

        if text == "/reset":
            self._talk.reset()
            print_note("forgotten; the next question stands alone")
        elif text == "/work":
            self._show_work = not self._show_work
            print_note("steps are told" if self._show_work else "steps are not told")
        else:
            print_note(_HELP if text == "/help" else f"{line_of(text)} is no command: {_HELP}")
        return 0 if text in ("/reset", "/work", "/help") else 2

    def _answer(self, question: str) -> None:
        from pipeline.answering.telling import as_json, line_of

        if not sys.stdin.isatty() and not self._as_json:
            typer.echo(f"{_PROMPT}{line_of(question)}")
        reply = _ask(self._talk, question, self._system, show_work=self._show_work)
        if self._as_json:
            _print_line(as_json(reply, steps=self._show_work))
        else:
            _print_answer(reply)
            typer.echo()

    def _print_failure(self, error: CiteloomError) -> None:
        from pipeline.cli.console import print_error

        if self._as_json:
            _print_line({"error": type(error).__name__, "message": str(error)})
        print_error(str(error))


def _ask(talk: Conversation, question: str, system: str, *, show_work: bool) -> Reply:
    from pipeline.cli.console import waiting

    with waiting(f"{system} reads and answers") as step:
        return talk.ask(question, _watch(step, show_work=show_work))


def _watch(waiting: Callable[[str], None], *, show_work: bool) -> Watch:
    """Tells how far it is; with `show_work`, also each step on standard error, where it leaves the answer alone."""
    from pipeline.answering.telling import step_lines
    from pipeline.cli.console import print_note

    def watch(step: Mapping[str, Any], passages: Mapping[str, Found]) -> None:
        waiting(step["stage"])
        if show_work:
            for line in step_lines(step, passages):
                print_note(line)

    return watch


def _print_answer(reply: Reply) -> None:
    """The answer and its sources on standard output, what there is to know beside it on standard error."""
    from pipeline.answering.telling import answer_lines, answer_notes, cost_line
    from pipeline.cli.console import print_note

    for line in answer_lines(reply):
        typer.echo(line)
    sys.stdout.flush()
    for note in (*answer_notes(reply), cost_line(reply)):
        print_note(note)


def _print_line(value: Mapping[str, Any]) -> None:
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, default=str))


def _let_go() -> None:
    """Release the embedded index, which one process at a time may hold: a conversation waits for its user."""
    from pipeline.index.opening import close_indexes

    close_indexes()


def _piped(lines: Iterable[bytes]) -> Iterator[str]:
    """The lines of a pipe, each as it comes; bytes that are no UTF-8 are told of where the question is read."""
    for number, line in enumerate(lines):
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix("\ufeff") if number == 0 else text


def _typed() -> Iterator[str]:
    """The lines of a terminal, until Ctrl-D."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # gives `input` its line editing and history
    sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            typer.echo(err=True)
            return


def _until_quit(lines: Iterable[str]) -> Iterator[str]:
    return takewhile(lambda line: line.strip() != "/quit", lines)
