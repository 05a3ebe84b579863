"""The command line before a command runs: help, wrong arguments, completion; and what its tables
and progress show.
"""

import inspect
import json
import os
import shlex
import subprocess
import sys

import pytest
import typer
from rich.console import Console
from rich.table import Table

from pipeline import tables
from pipeline.doors.cli.app import GROUPS, PANELS, app
from pipeline.doors.cli.console import (
    make_table,
    out,
    print_error,
    print_failures,
    print_json,
    print_note,
)
from pipeline.doors.cli.demo import whole_sentences
from pipeline.doors.cli.status import status_report
from pipeline.stage_names import STAGE_NAMES, plain_name
from pipeline.stages import STAGES
from pipeline.text import UNSAFE
from tests.cases import cases, cases_beside
from tests.command import invoke

pytestmark = pytest.mark.slow

COMMANDS = [
    *((name,) for commands in PANELS.values() for name in commands),
    *((group, name) for group, (_, commands) in GROUPS.items() for name in commands),
]
HEAVY = {
    "dagster", "torch", "pyarrow", "qdrant_client", "openai", "numpy", "pydantic",
    "pipeline.settings", "pipeline.stages", "pipeline.engine.stage",
}  # fmt: skip


def modules_after(folder, *arguments):
    """The exit code of a command in a process of its own, and the modules that it has loaded."""
    program = (
        "import json, sys\n"
        "from pipeline.doors.cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    print(json.dumps([end.code or 0, list(sys.modules)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, set(modules)


@cases_beside("arguments", "code")
def test_help_and_wrong_arguments_import_no_heavy_package(tmp_path, arguments, code):
    ended, modules = modules_after(tmp_path, *arguments)
    assert (ended, modules & HEAVY) == (code, set())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_a_command_has_two_examples_that_it_accepts(words):
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    _, _, examples = inspect.cleandoc(command.help or "").partition("Examples:\n")
    calls = [shlex.split(line.partition("citeloom ")[2]) for line in examples.splitlines()]
    assert len(calls) >= 2
    for call in calls:
        assert call[: len(words)] == list(words)
        command.make_context(command.name, call[len(words) :])


def test_help_of_run_lists_every_stage():
    shown = invoke("run", "--help").stdout
    assert [stage.name for stage in STAGES if plain_name(stage.name) not in shown] == []


@cases_beside("typed", "completed")
def test_a_shell_completes_commands_stages_and_systems(typed, completed):
    shell = {
        "_CITELOOM_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = invoke(prog_name="citeloom", env=shell)
    assert done.stdout.split() == completed


def test_the_papers_of_an_empty_data_root_name_the_command_that_reads_them(tmp_path):
    done = invoke("papers", env={"CITELOOM_DATA": str(tmp_path / "data")})
    assert (done.exit_code, done.stdout) == (0, "Nothing found.\n")
    assert "citeloom run --months all" in " ".join(done.stderr.split())


@cases("unit/cases.toml", "an_argument_that_names_no_file_ends_with_2", "command")
@pytest.mark.parametrize("kind", ["absent", "folder", "n" * 300])
def test_an_argument_that_names_no_file_ends_with_2_and_names_it(
    command, kind, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    done = invoke(*command.split(), kind)
    assert (done.exit_code, kind in done.stderr) == (2, True), done.output


@cases_beside("arguments", "suggested")
def test_an_unknown_stage_or_system_ends_with_2_and_a_suggestion(
    arguments, suggested, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft.md").write_text("A draft about retrieval.")
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert f"did you mean {suggested}" in done.stderr.replace("\n", " ")


def status_row(stage, month, state="done", off=""):
    rows = None if state == "missing" else 10
    return {
        "month": month,
        "stage": stage,
        "state": state,
        "rows": rows,
        "written_at": None if rows is None else 0.0,
        "left_out": {},
        "off": off,
        "failure": None,
    }


def printed(rows, width=80):
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        for part in status_report(rows):
            console.print(part)
    return capture.get().splitlines()


def test_no_column_of_a_table_wider_than_the_terminal_is_cut_off(capsys):
    table = make_table("t", ())
    for heading in ("stage", "money"):
        table.add_column(heading, min_width=out.width)
    table.add_row("answers", "115.59")
    out.print(table)
    assert "115.59" in capsys.readouterr().out


def test_no_text_steers_the_terminal(capsys):
    steering = "\x1b[2J\x07\x7f\x9b31m\u202e"
    table = make_table("t", ("column",))
    table.add_row(steering)
    out.print(table)
    out.print(steering, markup=False)
    print_note(steering)
    print_error(steering)
    print_json({"text": steering})
    printed = capsys.readouterr()
    assert not UNSAFE.search(printed.out + printed.err)
    assert json.loads(printed.out[printed.out.index("{") :]) == {"text": steering}


def test_status_at_80_columns_shows_whole_names_of_the_stages_that_a_month_has_reached():
    name = max(map(plain_name, STAGE_NAMES), key=len)
    months = [f"2024-{number:02}" for number in range(1, 7)]
    rows = [status_row(name, month) for month in months]
    rows += [
        status_row("passages", months[0], off="not wanted"),
        status_row("embeddings", months[0], "stale"),
        status_row("report", months[0], "missing"),
    ]
    lines = printed(rows)
    text = "\n".join(lines)
    assert (name in text, "embeddings" in text) == (True, True)
    assert ("passages" in text, "report" in text, "missing ·" in text) == (False, False, False)
    assert any(all(month in line for month in months) for line in lines)
    assert all(len(line) <= 80 and "…" not in line for line in lines)


def test_status_of_many_months_counts_missing_stages_up_to_the_last_that_a_month_has():
    months = [f"2024-{number:02}" for number in range(1, 13)] + ["2025-01"]
    rows = [status_row("papers", month) for month in months]
    rows += [
        status_row("passages", month, "done" if month == months[0] else "missing")
        for month in months
    ]
    rows += [
        status_row(stage, month, "missing") for stage in ("scores", "report") for month in months
    ]
    tables = [part for part in status_report(rows) if isinstance(part, Table)]
    (table,) = tables
    missing = next(list(column.cells) for column in table.columns if column.header == "missing")
    assert [cell.split("]")[1].split("[")[0] for cell in missing] == ["0", *["1"] * 12]


def test_what_a_stage_that_left_has_in_the_data_root_disturbs_nothing_and_is_named_as_deletable(
    tmp_path,
):
    folders = ["retrieval_scores", "ledger/retrieval_scores"]
    for folder in (*folders, "failures"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in folders:
        (tmp_path / folder / "2024-03.parquet").write_bytes(b"PAR1 of another version")
    (tmp_path / "failures/retrieval_scores-2024-03.json").write_text('{"message": "no endpoint"}')
    environment = {"CITELOOM_DATA": str(tmp_path)}
    done = invoke("status", "--json", env=environment)
    status = json.loads(done.stdout)
    assert (done.exit_code, {row["failure"] for row in status["stages"]}) == (0, {None})
    assert list(status["deletable"]) == folders
    printed = invoke("status", env=environment).stdout
    assert f"Can be deleted: {', '.join(folders)}" in printed


def test_a_text_of_the_small_model_has_no_tags_and_ends_with_a_sentence():
    assert whole_sentences("<related_work>It reads. It writes.</reference> And the") == (
        "It reads. It writes."
    )


def test_failures_are_named_by_stage_with_their_months(capsys):
    months = [f"2024-{month:02}" for month in range(1, 9)]
    failures = [(tables.PAPERS.name, month, "broken") for month in months]
    print_failures([*failures, (tables.PASSAGES.name, "2024-01", "broken")])
    assert (
        "9 failed (messages above): papers of 8 months from 2024-01 to 2024-08; passages of 2024-01;"
        in capsys.readouterr().err
    )
    print_failures([])
    assert capsys.readouterr().err == ""
