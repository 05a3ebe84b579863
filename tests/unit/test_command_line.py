"""The command line before a command runs: help, wrong arguments, completion; what its tables and
progress show; and what ends a command from outside: SIGTERM, and files that the system refuses.
"""

import errno
import inspect
import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
import typer
from rich.table import Table

from pipeline.doors.cli.app import GROUPS, PANELS, app
from pipeline.doors.cli.console import make_table, out, print_error, print_json, print_note
from pipeline.doors.cli.demo import whole_sentences
from pipeline.doors.cli.exit_codes import run_command
from pipeline.doors.cli.status import status_report
from pipeline.errors import SettingError
from pipeline.text import UNSAFE
from tests.cases import cases, cases_beside
from tests.command import invoke

pytestmark = pytest.mark.slow

COMMANDS = [
    *((name,) for commands in PANELS.values() for name in commands),
    *((group, name) for group, (_, commands) in GROUPS.items() for name in commands),
]


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


@cases_beside("typed", "completed")
def test_a_shell_completes_commands_stages_and_systems(typed, completed):
    shell = {
        "_CITELOOM_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = invoke(prog_name="citeloom", env=shell)
    assert done.stdout.split() == completed


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


def test_sigterm_ends_a_command_as_ctrl_c_does(tmp_path, capsys):
    before = signal.getsignal(signal.SIGTERM)

    def work():
        half = tmp_path / "half"
        half.touch()
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            half.unlink()
        return 0

    assert run_command(work) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_line_of_an_error_is_longer_than_a_title_may_be(capsys):
    def work():
        raise SettingError(f"{'x' * 120_000} is no month\n--from is no day")

    assert run_command(work) == 2
    assert len(message := capsys.readouterr().err) < 3_000
    assert "--from is no day" in message


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_file_that_the_system_refuses_is_named_with_a_way_out(number, capsys):
    def work():
        raise OSError(number, os.strerror(number), "/data/papers/2024-03.parquet")

    assert run_command(work) == 1
    message = capsys.readouterr().err
    assert "/data/papers/2024-03.parquet cannot be used" in message
    assert "CITELOOM_DATA" in message
    assert "traceback" not in message


def test_a_reader_that_ends_early_ends_the_command_quietly():
    code = (
        "import sys; from pipeline.doors.cli.exit_codes import run_command;"
        "sys.exit(run_command(lambda: [print('x' * 100, flush=True) for _ in range(10_000)]))"
    )
    shell = f'"{sys.executable}" -c "{code}" | head -1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", shell], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (141, "x" * 100 + "\n", "")
