"""The commands `citeloom ask` and `chat`: answers from the corpus."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.doors.cli.common import AnsweringSystemOption, AsJsonNotText, open_workspace
from pipeline.errors import CiteloomError, SettingError, exit_code_of

if TYPE_CHECKING:
    from pipeline.answering.session import Conversation, StepObserver
    from pipeline.corpus.nouns import Answer, Passage
    from pipeline.engine.stage import Workspace

PapersOfOption = Annotated[
    str,
    typer.Option(
        "--months",
        metavar="MONTHS",
        help="Only papers of a month (2024-03), a range (2024-03..2024-05), or all.",
    ),
]
ShowWorkOption = Annotated[
    bool,
    typer.Option("--show-work", help="Print each step when it is done: queries, passages, claims."),
]

_CHAT_HELP = "/reset forgets the conversation, /work shows or hides the steps, /quit or Ctrl-D ends"
_PROMPT = "> "


def ask(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What you want to know, in a sentence.")
    ],
    system: AnsweringSystemOption = None,
    months: PapersOfOption = "all",
    show_work: ShowWorkOption = False,
    as_json: AsJsonNotText = False,
) -> int:
    """Answer a question from the corpus, with the passages that support each sentence; without a
    model, show the passages that are closest to it.

    Examples:
      citeloom ask "How does reciprocal rank fusion work?"
      citeloom ask "What is BGE-M3?" --system wikichat --show-work
    """
    if not question.strip():
        raise SettingError("the question is empty: write what you want to know")

    from pipeline.answering.session import open_conversation
    from pipeline.doors.cli.console import print_json

    workspace = open_workspace()
    conversation = open_conversation(workspace, system, months)
    _warn_of_small_model(conversation)
    _say_how_much_is_loaded(workspace)
    answer = _answer(conversation, question, show_work=show_work)
    if as_json:
        print_json(_json(answer, show_work=show_work))
    else:
        _print_answer(answer)
    return 0


def chat(
    system: AnsweringSystemOption = None,
    months: PapersOfOption = "all",
    show_work: ShowWorkOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each answer.")
    ] = False,
) -> int:
    """Answer questions one after another, typed or piped. A question may refer to earlier ones;
    without a model only one for facts, such as "who wrote it?". Ctrl-D ends it.

    Examples:
      citeloom chat --show-work
      citeloom chat --system wikichat --months 2024-03
    """
    from pipeline.answering.session import open_conversation
    from pipeline.doors.cli.console import print_note

    workspace = open_workspace()
    conversation = open_conversation(workspace, system, months)
    _warn_of_small_model(conversation)
    _say_how_much_is_loaded(workspace)
    session = _ChatSession(conversation, show_work=show_work, as_json=as_json)
    if not sys.stdin.isatty():
        return max(
            map(session.process_line, _until_quit(_piped_lines(sys.stdin.buffer))), default=0
        )
    print_note(f"{conversation.system} answers; {_CHAT_HELP}")
    for line in _until_quit(_typed_lines()):
        try:
            session.process_line(line)
        except KeyboardInterrupt:
            print_note(
                "interrupted; finished model calls are kept: ask again to continue from there"
            )
    return 0


def _warn_of_small_model(conversation: Conversation) -> None:
    """Say before the bundled model answers that it is slow and mostly wrong."""
    from pipeline.doors.cli.console import print_note
    from pipeline.llm.models import is_small_model

    if is_small_model(conversation.model):
        print_note(
            f"{conversation.system} asks {conversation.model}, the small model that citeloom"
            " carries: an answer takes two to three minutes on two cores, and most are wrong."
            " CITELOOM_LLM_URL names a better model; without --system, the closest passages are"
            " shown in seconds"
        )


def _say_how_much_is_loaded(workspace: Workspace) -> None:
    from pipeline.doors.cli.console import print_note
    from pipeline.ops.run_months import loading_note

    note = loading_note(workspace)
    if note:
        print_note(note)


class _ChatSession:
    """A conversation at a prompt: each line is a question or a command."""

    def __init__(self, conversation: Conversation, *, show_work: bool, as_json: bool) -> None:
        self._conversation = conversation
        self._show_work, self._as_json = show_work, as_json

    def process_line(self, line: str) -> int:
        """Answer a line; returns the exit code that it would have as a command of its own.

        The conversation goes on after a question that failed, which leaves no turn.
        """
        text = line.strip()
        try:
            if not text:
                return 0
            if text.startswith("/"):
                return self._run_command(text)
            self._answer(text)
        except CiteloomError as error:
            self._print_failure(error)
            return exit_code_of(error)
        return 0

    def _run_command(self, text: str) -> int:
        from pipeline.answering.rendering import terminal_line
        from pipeline.doors.cli.console import print_note

        if text == "/reset":
            self._conversation.reset()
            print_note("forgotten; the next question stands alone")
        elif text == "/work":
            self._show_work = not self._show_work
            print_note("steps are shown" if self._show_work else "steps are hidden")
        elif text == "/help":
            print_note(_CHAT_HELP)
        else:
            print_note(f"{terminal_line(text)} is not a command: {_CHAT_HELP}")
            return 2
        return 0

    def _answer(self, question: str) -> None:
        from pipeline.answering.rendering import terminal_line

        if not sys.stdin.isatty() and not self._as_json:
            typer.echo(f"{_PROMPT}{terminal_line(question)}")
        answer = _answer(self._conversation, question, show_work=self._show_work)
        if self._as_json:
            _print_json_line(_json(answer, show_work=self._show_work))
        else:
            _print_answer(answer)
            typer.echo()

    def _print_failure(self, error: CiteloomError) -> None:
        from pipeline.doors.cli.console import print_error

        if self._as_json:
            _print_json_line({"error": type(error).__name__, "message": str(error)})
        print_error(str(error))


def _answer(conversation: Conversation, question: str, *, show_work: bool) -> Answer:
    from pipeline.doors.cli.console import spinner

    with spinner(f"{conversation.system} reads and answers") as show_step:
        return conversation.ask(question, _step_printer(show_step, show_work=show_work))


def _step_printer(show_step: Callable[[str], None], *, show_work: bool) -> StepObserver:
    """A callback after each step: it updates the spinner and, with `show_work`, prints the step."""
    from pipeline.answering.rendering import StepRenderer
    from pipeline.doors.cli.console import print_note

    render_step = StepRenderer()

    def print_step(step: Mapping[str, Any], passages: Mapping[str, Passage]) -> None:
        show_step(step["stage"])
        if show_work:
            for line in render_step(step, passages):
                print_note(line)

    return print_step


def _json(answer: Answer, *, show_work: bool) -> dict[str, Any]:
    """The answer as JSON values. show_work: with its trace."""
    from pipeline.doors.present import as_json

    return {**as_json(answer), **(as_json({"trace": answer.trace}) if show_work else {})}


def _print_answer(answer: Answer) -> None:
    """Print the answer and its sources on standard output, notes and costs on standard error."""
    from pipeline.doors.cli.console import print_note, print_noun
    from pipeline.doors.present import answer_notes, cost_line
    from pipeline.llm.models import small_model_note

    print_noun(answer)
    sys.stdout.flush()
    notes = list(answer_notes(answer))
    if answer.abstained and answer.queries:
        notes.append("--show-work shows the steps")
    notes += [small_model_note(answer.model), cost_line(answer)]
    for note in notes:
        if note:
            print_note(note)


def _print_json_line(value: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, default=str))


def _piped_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """The lines of a pipe as they arrive; bytes that are not UTF-8 are refused later."""
    for number, line in enumerate(lines):
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix("\ufeff") if number == 0 else text


def _typed_lines() -> Iterator[str]:
    """The lines typed at a terminal, until Ctrl-D."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives `input` line editing and history
    sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            typer.echo(err=True)
            return


def _until_quit(lines: Iterable[str]) -> Iterator[str]:
    return takewhile(lambda line: line.strip() != "/quit", lines)
