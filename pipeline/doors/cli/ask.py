"""The commands `citeloom ask` and `chat`: answers from the corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.doors.cli.common import AnsweringSystemOption, AsJson, MonthsOption, open_workspace
from pipeline.errors import CiteloomError, SettingError, exit_code_of

if TYPE_CHECKING:
    from pipeline.corpus.nouns import Passage

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
    months: MonthsOption = "all",
    show_work: ShowWorkOption = False,
    as_json: AsJson = False,
) -> int:
    """Answer a question from the corpus, with the passages that support each sentence; without a
    model, show the papers that it names, and the passages that are closest to it.

    Examples:
      citeloom ask "How does reciprocal rank fusion work?"
      citeloom ask "What is BGE-M3?" --system wikichat --show-work
    """
    if not question.strip():
        raise SettingError("the question is empty: write what you want to know")
    _Session(system, months, show_work=show_work, as_json=as_json).answer(question)
    return 0


def chat(
    system: AnsweringSystemOption = None,
    months: MonthsOption = "all",
    show_work: ShowWorkOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each answer.")
    ] = False,
) -> int:
    """Answer questions one after another, typed or piped. With a model a question may refer to
    earlier ones. Ctrl-D ends it.

    Examples:
      citeloom chat --show-work
      citeloom chat --system wikichat --months 2024-03
    """
    from pipeline.doors.cli.console import print_note

    session = _Session(system, months, show_work=show_work, as_json=as_json)
    if not sys.stdin.isatty():
        lines = _until_quit(_piped_lines(sys.stdin.buffer))
        return max(map(session.process_line, lines), default=0)
    print_note(f"{session.conversation.system} answers; {_CHAT_HELP}")
    for line in _until_quit(_typed_lines()):
        try:
            session.process_line(line)
        except KeyboardInterrupt:
            print_note(
                "interrupted; finished model calls are kept: ask again to continue from there"
            )
    return 0


class _Session:
    """Questions to one system, with what is printed of them."""

    def __init__(self, system: str | None, months: str, *, show_work: bool, as_json: bool) -> None:
        from pipeline.answering.session import open_conversation
        from pipeline.doors.cli.console import print_note
        from pipeline.llm.models import is_small_model
        from pipeline.ops.run_months import loading_note

        workspace = open_workspace()
        self.conversation = open_conversation(workspace, system, months)
        self._show_work, self._as_json = show_work, as_json
        if is_small_model(self.conversation.model):
            print_note(
                f"{self.conversation.system} asks {self.conversation.model}, the small model that"
                " citeloom carries: an answer takes two to three minutes on two cores, and most are"
                " wrong. CITELOOM_LLM_URL names a better model; without --system, the closest"
                " passages are shown in seconds"
            )
        print_note(loading_note(workspace))

    def process_line(self, line: str) -> int:
        """Answer a line of a chat, a question or a command; returns the exit code that it would
        have as a command of its own.

        The conversation goes on after a question that failed, which leaves no turn.
        """
        from pipeline.doors.cli.console import out, print_error, print_json

        text = line.strip()
        try:
            if text.startswith("/"):
                return self._run_command(text)
            if text:
                if not sys.stdin.isatty() and not self._as_json:
                    out.print(f"{_PROMPT}{text}", markup=False, soft_wrap=True)
                self.answer(text, is_line=True)
        except CiteloomError as error:
            if self._as_json:
                print_json({"error": type(error).__name__, "message": str(error)}, is_line=True)
            print_error(str(error))
            return exit_code_of(error)
        return 0

    def _run_command(self, text: str) -> int:
        from pipeline.doors.cli.console import print_note

        if text == "/reset":
            self.conversation.reset()
            print_note("forgotten; the next question stands alone")
        elif text == "/work":
            self._show_work = not self._show_work
            print_note("steps are shown" if self._show_work else "steps are hidden")
        elif text == "/help":
            print_note(_CHAT_HELP)
        else:
            print_note(f"{text} is not a command: {_CHAT_HELP}")
            return 2
        return 0

    def answer(self, question: str, *, is_line: bool = False) -> None:
        """Print the answer and its sources on standard output, steps, notes and costs on standard
        error. is_line: one of several, of which JSON takes one line.
        """
        from pipeline.answering.rendering import StepRenderer
        from pipeline.doors.cli.console import print_json, print_note, print_noun, spinner
        from pipeline.doors.present import answer_notes, as_json, cost_line
        from pipeline.llm.models import small_model_note

        render_step = StepRenderer()

        def observe(step: Mapping[str, Any], passages: Mapping[str, Passage]) -> None:
            show_step(step["stage"])
            if self._show_work:
                print_note(*render_step(step, passages))

        with spinner(f"answering with {self.conversation.system}") as show_step:
            answer = self.conversation.ask(question, observe)
        if self._as_json:
            work = as_json({"trace": answer.trace}) if self._show_work else {}
            print_json({**as_json(answer), **work}, is_line=is_line)
            return
        print_noun(answer)
        sys.stdout.flush()
        hint = "--show-work shows the steps" if answer.abstained and answer.queries else ""
        print_note(*answer_notes(answer), hint, small_model_note(answer.model), cost_line(answer))
        if is_line:
            typer.echo()


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
