"""Workspaces for the doctor's tests."""

import pytest

from pipeline.ops.doctor.findings import FindingState
from tests.workspaces import make_workspace

OK, WARNING, PROBLEM, NOT_CHECKED = (
    FindingState.OK, FindingState.WARNING, FindingState.PROBLEM, FindingState.NOT_CHECKED,
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path):
    """Makes a workspace on an empty data root, under the given settings."""
    return lambda data=tmp_path / "data", **settings: make_workspace(data, **settings)


def one(findings):
    (finding,) = findings
    return finding
