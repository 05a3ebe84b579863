"""`citeloom run --parallel` and `retry-failed`: the same tables, every failure told, an end to all processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.running.parallel import heaviest_first
from pipeline.stages import choose_stages
from tests.assets.conftest import MONTHS, Place, digests, make_place
from tests.assets.processes import is_alive, start, wait_until
from tests.monthly_dump import cut_short, write_monthly_dump
from tests.scripted_llm import ScriptedLlm

pytestmark = pytest.mark.slow

MORE = "ar5iv-2405-more.zip"
UNTIL = "references"


@pytest.fixture
def monthly(tmp_path: Path) -> Path:
    """A dump of one zip a month, but for one page of 2024-05, which lies in MORE."""
    folder = write_monthly_dump(tmp_path / "monthly")
    with zipfile.ZipFile(folder / "ar5iv-2405.zip") as old:
        name, page = "error/2405/2405.90004.html", old.read("error/2405/2405.90004.html")
    with zipfile.ZipFile(folder / MORE, "w") as new:
        new.writestr(name.replace("90004", "90014"), page)
    return folder


def month_processes(run: subprocess.Popen[str]) -> list[int]:
    """The processes of a run that work on months."""
    found = []
    for file in Path(f"/proc/{run.pid}/task").glob("*/children"):
        with suppress(FileNotFoundError):
            found += [int(child) for child in file.read_text().split()]
    return [child for child in found if b"month_process" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_a_bad_month_is_told_and_once_retried_all_tables_are_those_of_a_serial_run(
    tmp_path: Path, monthly: Path, llm: ScriptedLlm
) -> None:
    """References look back at earlier months, so they show that what follows the processes is in order too."""
    at_once, serial = (
        make_place(tmp_path / name, dump_dir=monthly, llm_url=llm.url, llm_model="scripted")
        for name in ("at_once", "serial")
    )
    assert at_once.invoke("run", "--until", "dump_members").exit_code == 0
    whole = cut_short(monthly / MORE)
    done = at_once.citeloom("run", "--until", UNTIL, "--parallel", "2", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert [(each["stage"], each["month"]) for each in told["failures"]] == [
        ("dump", "all months"), ("dump_members", "2024-05"),
    ]  # fmt: skip
    assert [(each["month"], each["stage"]) for each in told["outcomes"]] == [
        (month, stage.name) for month in MONTHS[:2] for stage in choose_stages(UNTIL)
    ]
    lines = [line.partition(":")[0] for line in done.stderr.splitlines() if line.startswith("2024-")]
    assert sorted(lines) == sorted(f"{each['month']} {each['stage']}" for each in told["outcomes"])

    (failed,) = json.loads(at_once.invoke("retry-failed", "--list", "--json").stdout)["failed"]
    assert (failed["stage"], failed["month"]) == ("dump_members", "2024-05")
    assert "until what it names is mended" in failed["kind"]
    (monthly / MORE).write_bytes(whole)
    again = at_once.invoke("retry-failed", "--json")
    assert (again.exit_code, json.loads(again.stdout)["still_failed"]) == (0, [])
    # The ledger of the first month named the broken zip: no failure, but out of date now.
    for place in (at_once, serial):
        assert place.invoke("run", "--until", UNTIL).exit_code == 0
    assert digests(at_once.root) == digests(serial.root)
    assert len(digests(serial.root)) == 2 * len(MONTHS) * len(choose_stages(UNTIL))


def test_a_process_that_is_killed_fails_its_month_alone(empty: Place) -> None:
    run = start(empty, "run", "--until", "metadata", "--parallel", "2")
    wait_until(lambda: len(month_processes(run)) == 2)
    os.kill(month_processes(run)[0], signal.SIGKILL)
    _, said = run.communicate(timeout=240)
    assert run.returncode == 1
    (error,) = [line for line in said.splitlines() if line.startswith("error: run of 2024-")]
    assert "its process was killed, most likely for want of memory" in error
    assert len(list(empty.root.glob("metadata/*.parquet"))) == len(MONTHS) - 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_every_process(empty: Place, number: signal.Signals) -> None:
    run = start(empty, "run", "--until", "passages", "--parallel", "2")
    wait_until(lambda: len(month_processes(run)) == 2)
    children = month_processes(run)
    os.kill(run.pid, number)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "Traceback" not in said
    wait_until(lambda: not any(map(is_alive, children)))


def test_months_with_more_pages_come_first(empty: Place, dump: Path) -> None:
    with zipfile.ZipFile(dump / "ar5iv-04-2024-more-errors.zip", "w") as more:
        for number in range(20, 30):
            more.writestr(f"error/2405/2405.900{number}.html", "<html><body>new</body></html>")
    settings = empty.with_settings(dump_dir=dump).workspace().settings
    assert heaviest_first(settings, MONTHS) == ["2024-05", "2024-03", "2024-04"]
