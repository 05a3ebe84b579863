"""Workspaces for the doctor's tests."""

import pytest

from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import FindingState
from pipeline.settings import load_settings

OK, WARNING, PROBLEM, NOT_CHECKED = (
    FindingState.OK, FindingState.WARNING, FindingState.PROBLEM, FindingState.NOT_CHECKED,
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path):
    """Makes a workspace on an empty data root, under the given settings."""
    return lambda **settings: Workspace(
        load_settings(_env_file=None, **{"data": tmp_path / "data", **settings})
    )


def one(findings):
    (finding,) = findings
    return finding
