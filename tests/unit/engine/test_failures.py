"""Records of failures, and how far a failed month is run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engine.failures import (
    Failure,
    all_failures,
    forget_run_stages,
    note_run_stages,
    read_run_stages,
    record_failure,
)
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.ops.retry import plan_of
from pipeline.settings import load_settings
from pipeline.stages import STAGES, choose_stages
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(load_settings(data=tmp_path))


def hold(workspace: Workspace, stage: str, month: str) -> None:
    """A month of a stage's table, empty."""
    table = next(each.table for each in STAGES if each.name == stage)
    with MonthWriter(table, workspace.root.file(table, month)) as writer:
        writer.commit(Provenance(stage, month, table.version, 1, "0", "", {}, {}))


def named(plan: list[tuple[list[str], list[object]]]) -> list[tuple[list[str], list[str]]]:
    return [(months, [stage.name for stage in stages]) for months, stages in plan]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TransientFailure("no answer"), "temporary"),
        (PermanentFailure("a broken zip"), "fix the cause first"),
        (SettingError("a wrong setting"), "fix the cause first"),
        (IndexError("out of range"), "unexpected"),
    ],
)
def test_a_failure_says_whether_a_rerun_can_clear_it(workspace: Workspace, error: Exception, said: str) -> None:
    record_failure(workspace, "papers", "2024-03", error)
    (failure,) = all_failures(workspace.root)
    assert said in failure.kind
    assert (failure.stage, failure.month) == ("papers", "2024-03")
    assert str(error) in failure.message


def test_a_damaged_note_is_listed_all_the_same(workspace: Workspace) -> None:
    record_failure(workspace, "papers", "2024-03", PermanentFailure("x"))
    (workspace.root.path / "failures" / "papers-2024-03.json").write_bytes(b"[1")
    (failure,) = all_failures(workspace.root)
    assert "is damaged" in failure.message


def test_a_failed_check_counts_as_its_stage(workspace: Workspace) -> None:
    record_failure(workspace, "check-embeddings", "2024-03", PermanentFailure("its check does not hold"))
    (failure,) = all_failures(workspace.root)
    assert (failure.stage, failure.of) == ("check-embeddings", "embeddings")


def test_a_month_is_run_as_far_as_its_failed_run_was_to_go(workspace: Workspace) -> None:
    note_run_stages(workspace.root, "2024-03", ["papers", "passages"])
    failures = [Failure("papers", "2024-03", "x", "y")]
    assert named(plan_of(workspace, failures)) == [(["2024-03"], ["papers", "passages"])]
    forget_run_stages(workspace.root, "2024-03")
    assert read_run_stages(workspace.root, "2024-03") == []


def test_a_month_of_the_page_is_run_as_far_as_other_months_went(workspace: Workspace) -> None:
    for stage in ("dump_members", "metadata", "papers", "passages"):
        hold(workspace, stage, "2024-04")
    failures = [Failure("papers", "2024-03", "x", "y")]
    assert named(plan_of(workspace, failures)) == [(["2024-03"], ["papers", "passages"])]


def test_months_with_the_same_stages_are_run_together(workspace: Workspace) -> None:
    for month in ("2024-03", "2024-05"):
        note_run_stages(workspace.root, month, [stage.name for stage in choose_stages("passages")])
    note_run_stages(workspace.root, "2024-04", ["dump_members"])
    failures = [Failure("dump_members", month, "x", "y") for month in ("2024-03", "2024-04", "2024-05")]
    assert named(plan_of(workspace, failures)) == [
        (["2024-04"], ["dump_members"]),
        (["2024-03", "2024-05"], ["dump_members", "metadata", "papers", "passages"]),
    ]
