"""Workspaces for the doctor's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import DoctorFinding, FindingState
from pipeline.settings import load_settings

MakeWorkspace = Callable[..., Workspace]
OK, WARNING, PROBLEM, NOT_CHECKED = (
    FindingState.OK, FindingState.WARNING, FindingState.PROBLEM, FindingState.NOT_CHECKED,
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> MakeWorkspace:
    """Makes a workspace on an empty data root, under the given settings."""
    return lambda **settings: Workspace(
        load_settings(_env_file=None, **{"data": tmp_path / "data", **settings})
    )


def one(findings: Iterable[DoctorFinding]) -> DoctorFinding:
    (finding,) = findings
    return finding
