"""The command `citeloom demo`: the sample corpus through every stage, and what came out of it."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.doors.cli.common import AsJson
from pipeline.doors.cli.run import print_report_address, run_and_report, show_run
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

# Of the sample: a task whose cited papers are in the corpus, and a question that one paper answers.
_TASK = "2404.90001#S2"
_QUESTION = "How much memory is saved by keeping vectors in eight bits or in one?"
# The small model copies its prompt where it reads or writes more.
_WORKS_READ, _TOKENS_WRITTEN = 2, 96
_TAG = re.compile(r"</?[a-z_ ]+>")


def demo(
    with_model: Annotated[
        bool,
        typer.Option(
            "--with-model",
            help="Also show a few sentences by the small model that citeloom carries: a minute.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run the sample corpus through every stage, without a language model, and show notes on
    related work, an answer and the report.

    Examples:
      citeloom demo
      citeloom demo --with-model
      CITELOOM_DATA=demo-data citeloom demo --json
    """
    from pipeline.doors.cli.console import out, run_table
    from pipeline.engine.stage import Workspace
    from pipeline.ops.preflight import mark_demo
    from pipeline.ops.run_months import known_months
    from pipeline.related_work.task_reader import in_corpus
    from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT, load_settings
    from pipeline.stages import STAGES

    settings = load_settings(
        dump_dir=SAMPLE_DUMP, metadata_snapshot=SAMPLE_SNAPSHOT, qdrant_url=None
    )
    if with_model and as_json:
        raise SettingError("--with-model prints a text: leave --json out")
    if with_model and not settings.bundled_llm:
        raise SettingError(
            "--with-model is for the small model that citeloom carries: unset CITELOOM_LLM_URL and"
            " CITELOOM_MODELS"
        )
    workspace = Workspace(settings)
    mark_demo(workspace)
    report = run_and_report(workspace, known_months(workspace, "all"), STAGES, force=force)
    if as_json or report.failures:
        show_run(workspace, report, as_json=as_json)
        return report.exit_code
    out.print(run_table(report.outcomes))
    task = _task(workspace)
    if task is not None:
        cited = [item["arxiv_id"] for item in task["references"] if in_corpus(item)]
        _print_texts(workspace, task, cited)
        if with_model:
            _print_text_of_model(workspace, task["description"], cited[:_WORKS_READ])
    print_report_address(workspace)
    out.print("Try it:", *_next_commands(workspace), sep="\n  ", soft_wrap=True)
    return 0


def _task(workspace: Workspace) -> Mapping[str, Any] | None:
    """The task that is shown; None where the settings leave it out."""
    from pipeline import tables

    rows = workspace.root.rows(tables.RELATED_WORK_TASKS, "2024-04")
    return next((row for row in rows if row["task_id"] == _TASK), None)


def _print_texts(workspace: Workspace, task: Mapping[str, Any], cited: Sequence[str]) -> None:
    """Print notes for a related-work section and an answer, of sentences of the papers."""
    from pipeline.answering.session import open_conversation
    from pipeline.doors.cli.console import out, print_error, print_noun, spinner
    from pipeline.errors import CiteloomError
    from pipeline.related_work.relate import relate
    from pipeline.related_work.systems import NOTES

    try:
        with spinner("the works of a section are listed, and a question is answered"):
            notes = relate(workspace, task["description"], cited, NOTES).markdown
            answer = open_conversation(workspace, "passages").ask(_QUESTION)
    except CiteloomError as error:  # another process may use the index
        print_error(f"notes and an answer cannot be shown: {error}")
        return
    _print_heading(f"Related work of “{task['title']}”, from the papers that it cites")
    out.print(notes, markup=False, highlight=False)
    _print_heading(f"Question: {_QUESTION}")
    print_noun(answer)
    out.print()


def _print_text_of_model(workspace: Workspace, description: str, cited: Sequence[str]) -> None:
    """Print what the small model writes on some of the papers that a paper of this text cites."""
    from pipeline.doors.cli.console import out, print_error, print_note
    from pipeline.engine.stage import Workspace
    from pipeline.errors import CiteloomError
    from pipeline.llm.models import BUNDLED_MODEL, small_model_note
    from pipeline.related_work.relate import relate

    print_note(f"{BUNDLED_MODEL} reads two papers and writes: under a minute on two free cores")
    brief = Workspace(workspace.settings.model_copy(update={"draft_tokens": _TOKENS_WRITTEN}))
    started = time.perf_counter()
    try:
        text = relate(brief, description, cited, f"zero_shot@{BUNDLED_MODEL}").summary.text
    except CiteloomError as error:
        print_error(f"{BUNDLED_MODEL} could not write: {error}")
        return
    _print_heading(f"A section by {BUNDLED_MODEL}, on {len(cited)} of the papers")
    out.print(whole_sentences(text), markup=False, highlight=False)
    seconds = time.perf_counter() - started
    print_note(f"{small_model_note(BUNDLED_MODEL)}; {seconds:.0f} s")
    out.print()


def whole_sentences(text: str) -> str:
    """A model's text without tags and without the sentence that was cut off at its end."""
    plain = _TAG.sub("", text).strip()
    end = max(plain.rfind(sign) for sign in ".!?")
    return plain[: end + 1]


def _print_heading(text: str) -> None:
    from pipeline.doors.cli.console import out

    out.print(text, style="bold", markup=False, highlight=False)


def _next_commands(workspace: Workspace) -> list[str]:
    """Commands that work as printed, in this folder and on this data root."""
    program = Path(sys.argv[0])
    if program.is_absolute() and program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    data = shlex.quote(str(workspace.settings.data_root))
    citeloom = (
        f"CITELOOM_DATA={data} {program}" if workspace.settings.data is not None else str(program)
    )
    return [
        f'{citeloom} search "retrieval for scientific questions"',
        f'{citeloom} ask "How does reciprocal rank fusion work?"',
        f"{citeloom} serve",
    ]
