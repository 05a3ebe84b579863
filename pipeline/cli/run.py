"""The commands `citeloom run` and `demo`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.common import (
    AsJson,
    MonthsOption,
    SelectOption,
    UntilOption,
    open_workspace,
    split_names,
)
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from pipeline.engine.stage import Stage, Workspace
    from pipeline.ops.run_months import RunReport


def run(
    months: MonthsOption = "all",
    until: UntilOption = None,
    select: SelectOption = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Only the months that have a failure; citeloom status --failed lists them.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    as_json: AsJson = False,
) -> int:
    """Build the corpus: read the dump, index it, write and score, wherever a month is missing or
    out of date.

    With --failed and without --until and --select, months go through the failed stages and those
    that any month has.

    Examples:
      citeloom run --until index
      citeloom run --months 2024-03 --select papers,passages --force
      citeloom run --failed
    """
    selected = split_names(select)
    if until is not None and select is not None:
        raise SettingError("--until and --select exclude each other: give one of them")
    if select is not None and not selected:
        raise SettingError("--select names no stage: give one or more, comma-separated")

    from pipeline.cli.console import print_note
    from pipeline.ops.run_months import RunReport, failed_stages, failures_in, known_months
    from pipeline.stages import choose_stages

    stages = choose_stages(until, selected)
    workspace = open_workspace()
    if failed:
        failures = failures_in(workspace, months)
        months_to_run = sorted({failure.month for failure in failures})
        if until is None and select is None:
            stages = failed_stages(workspace, failures)
    else:
        months_to_run = known_months(workspace, months)
    if not months_to_run:
        print_note(f"no failure is recorded in {workspace.root.path}")
    report = RunReport()
    if months_to_run:
        report = run_and_report(workspace, months_to_run, stages, force=force)
    if months_to_run or as_json:
        show_run(workspace, report, as_json=as_json)
    return report.exit_code


def demo(
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run the sample corpus to a report without a language model, then show two texts by the small
    bundled one.

    Examples:
      citeloom demo
      CITELOOM_DATA=demo-data citeloom demo --json
    """
    from pipeline.cli.console import out
    from pipeline.engine.stage import Workspace
    from pipeline.ops.preflight import mark_demo
    from pipeline.ops.run_months import known_months
    from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT, load_settings
    from pipeline.stages import STAGES

    workspace = Workspace(
        load_settings(dump_dir=SAMPLE_DUMP, metadata_snapshot=SAMPLE_SNAPSHOT, qdrant_url=None)
    )
    mark_demo(workspace)
    months = known_months(workspace, "all")
    report = run_and_report(workspace, months, STAGES, force=force)
    show_run(workspace, report, as_json=as_json)
    if not as_json and not report.failures:
        if workspace.settings.bundled_llm:
            _print_machinery(workspace)
        out.print(
            "Try it:\n" + "\n".join(f"  {command}" for command in _next_commands(workspace)),
            soft_wrap=True,
        )
    return report.exit_code


def _print_machinery(workspace: Workspace) -> None:
    """Print a section by ChatCite and an answer by arXivBot, both by the bundled model.

    Prints nothing where the newest month has no task or no question. A second call takes both from
    the cache.
    """
    from pipeline import tables
    from pipeline.cli.console import out, print_error, spinner
    from pipeline.errors import CiteloomError
    from pipeline.llm.models import BUNDLED_MODEL, small_model_note

    month = workspace.root.months(tables.RELATED_WORK_TASKS)[-1]
    tasks = workspace.root.rows(tables.RELATED_WORK_TASKS, month)
    questions = workspace.root.rows(tables.QUESTIONS, month)
    if not tasks or not questions:
        return
    task = min(tasks, key=lambda row: str(row["task_id"]))
    question = min(questions, key=lambda row: str(row["question_id"]))
    start = time.perf_counter()
    try:
        with spinner(f"ChatCite and arXivBot write with {BUNDLED_MODEL}"):
            texts = _write_texts(workspace, task, question["question"], BUNDLED_MODEL)
    except CiteloomError as error:
        print_error(f"the bundled model could not show ChatCite and arXivBot: {error}")
        return
    seconds = time.perf_counter() - start
    for heading, text in texts.items():
        out.print(f"{heading}\n  {text}\n", markup=False, highlight=False)
    out.print(
        f"({small_model_note(BUNDLED_MODEL)}; {seconds:.0f} s)\n", markup=False, highlight=False
    )


def _write_texts(
    workspace: Workspace, task: Mapping[str, Any], question: str, model: str
) -> dict[str, str]:
    """Heading → a section by ChatCite, and an answer by arXivBot."""
    from pipeline.answering.session import open_conversation
    from pipeline.related_work.relate import relate
    from pipeline.related_work.task_reader import in_corpus

    # ChatCite takes 1 + 2·references steps one after another, of several seconds each.
    references = [
        reference["arxiv_id"] for reference in task["references"] if in_corpus(reference)
    ][:2]
    related = relate(workspace, task["description"], references, f"chatcite@{model}")
    reply = open_conversation(workspace, f"arxivbot@{model}").ask(question)
    return {
        f"ChatCite on {task['title']}": related.summary.text,
        f"arXivBot: {question}": reply.answer.text,
    }


def _next_commands(workspace: Workspace) -> list[str]:
    """Commands that work as printed, in this folder and on this data root."""
    import shlex
    import sys
    from pathlib import Path

    program = Path(sys.argv[0])
    if program.is_absolute() and program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    data = shlex.quote(str(workspace.settings.data_root))
    citeloom = (
        f"CITELOOM_DATA={data} {program}" if workspace.settings.data is not None else str(program)
    )
    return [
        f'{citeloom} search "retrieval for scientific questions"',
        f'{citeloom} ask "How is retrieval evaluated without labels?"',
        f"{citeloom} serve",
    ]


def run_and_report(
    workspace: Workspace, months: Sequence[str], stages: Sequence[Stage], *, force: bool = False
) -> RunReport:
    """Run months through some stages, with progress shown, Dagster and the webhook notified.

    Raises SettingError where a setting does not suit the stages, before anything runs.
    """
    from pipeline.cli.console import showing
    from pipeline.cli.dagster_reporter import reporting_to_dagster
    from pipeline.ops.preflight import check
    from pipeline.ops.run_months import run_months
    from pipeline.ops.webhook import notify_of_failures

    check(workspace, stages)
    with showing(workspace.root), reporting_to_dagster(workspace):
        report = run_months(workspace, months, stages, force=force)
    notify_of_failures(workspace.settings, report.failures)
    return report


def show_run(workspace: Workspace, report: RunReport, *, as_json: bool) -> None:
    """Print what a run did: a row a stage, its failures, and where the report lies."""
    from pipeline.cli.console import out, print_error, print_json, run_table

    page = workspace.root.path / "reports" / "index.html"
    failures = [
        dict(zip(("stage", "month", "message"), failure, strict=True))
        for failure in report.failures
    ]
    if as_json:
        print_json(
            {
                "outcomes": report.outcomes,
                "failures": failures,
                "report": str(page) if page.exists() else None,
            }
        )
        return
    out.print(run_table(report.outcomes))
    if failures:
        names = ", ".join(f"{failure['stage']} of {failure['month']}" for failure in failures)
        print_error(
            f"{len(failures)} failed (messages above): {names}; fix the cause and repeat the"
            " command"
        )
    if page.exists():
        out.print(f"Report: {page}", soft_wrap=True)
