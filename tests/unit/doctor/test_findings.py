"""How checks are asked: a fault in one, or one that never ends, is told, and harms no other; no secret is shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure
from pipeline.ops.doctor.findings import Check, Finding, State, examine, ok
from pipeline.settings import load_settings

KEY, PASSWORD = "sk-doctor-sentinel", "pg-doctor-sentinel"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    address = f"postgresql://me:{PASSWORD}@127.0.0.1/runs"
    return Workspace(load_settings(_env_file=None, data=tmp_path, llm_api_key=KEY, dagster_pg_url=address))


def _fine(workspace: Workspace) -> Iterator[Finding]:
    yield ok("fine", "seen")


def test_a_check_that_fails_is_told_and_the_others_go_on(workspace: Workspace) -> None:
    def foreseen(workspace: Workspace) -> Iterator[Finding]:
        yield ok("first", "half of it")
        raise PermanentFailure("the file x is broken")

    def unforeseen(workspace: Workspace) -> Iterator[Finding]:
        raise ZeroDivisionError("by zero")
        yield

    found = examine(
        [Check("a", foreseen, "mend x"), Check("b", unforeseen, "mend y"), Check("c", _fine, "")], workspace
    )
    assert [(each.name, each.state, each.seen, each.way_out) for each in found] == [
        ("first", State.OK, "half of it", ""),
        ("a", State.PROBLEM, "the file x is broken", "mend x"),
        ("b", State.PROBLEM, "unforeseen ZeroDivisionError: by zero", "mend y"),
        ("fine", State.OK, "seen", ""),
    ]


def test_a_check_that_never_ends_is_left_behind(workspace: Workspace) -> None:
    ended = threading.Event()

    def hanging(workspace: Workspace) -> Iterator[Finding]:
        ended.wait()
        yield ok("late", "")

    found = examine([Check("drive", hanging, "see the mount", 0.1), Check("c", _fine, "")], workspace)
    ended.set()
    assert [(each.name, each.state) for each in found] == [("drive", State.PROBLEM), ("fine", State.OK)]
    assert found[0].way_out == "see the mount"


def test_no_finding_shows_a_secret(workspace: Workspace) -> None:
    def repeating(workspace: Workspace) -> Iterator[Finding]:
        yield Finding("a", State.PROBLEM, f"{KEY} is refused", f"not {KEY} at https://me:word@host/v1")
        raise RuntimeError(f"{PASSWORD} failed for postgresql://me:{PASSWORD}@127.0.0.1/runs")

    told = repr(examine([Check("b", repeating, "")], workspace))
    assert "sentinel" not in told
    assert "word" not in told
    assert "*** is refused" in told
