"""Records of failures."""

import pytest

from pipeline.engine.checks import run_checks
from pipeline.engine.failures import RUN, all_failures, record_failure
from pipeline.engine.stage import CheckResult, MonthCheck
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.stages import lookup_stage
from tests.workspaces import altered, make_workspace


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path)


@pytest.mark.parametrize(
    ("name", "stage", "error", "said"),
    [
        (RUN, RUN, TransientFailure("no answer"), "temporary"),
        ("papers", "papers", PermanentFailure("a broken zip"), "fix the cause first"),
        ("papers", "papers", SettingError("a wrong setting"), "fix the cause first"),
        ("check-papers", "papers", IndexError("out of range"), "unexpected"),
    ],
)
def test_a_failure_says_whether_a_rerun_can_clear_it(workspace, name, stage, error, said):
    record_failure(workspace, name, "2024-03", error)
    (failure,) = all_failures(workspace.root)
    assert said in failure.kind
    assert (failure.stage, failure.stage_name, failure.month) == (name, stage, "2024-03")
    assert str(error) in failure.message


def test_a_failure_of_a_stage_that_no_longer_exists_is_not_listed(workspace):
    record_failure(workspace, "question_drafts", "2024-03", PermanentFailure("x"))
    assert all_failures(workspace.root) == []


def test_a_damaged_note_is_listed_all_the_same(workspace):
    record_failure(workspace, "papers", "2024-03", PermanentFailure("x"))
    (workspace.root.path / "failures" / "papers-2024-03.json").write_bytes(b"[1")
    (failure,) = all_failures(workspace.root)
    assert "is damaged" in failure.message


def test_a_check_that_could_not_be_evaluated_is_no_failure_once_it_passes(workspace):
    record_failure(
        workspace, "check-index_receipts", "2024-03", TransientFailure("the server is down")
    )
    check = MonthCheck(lambda workspace, month: CheckResult(True, {}), warning=True)
    stage = altered(lookup_stage("index_receipts"), checks=(check,))
    assert run_checks(stage, workspace, "2024-03")
    assert list(all_failures(workspace.root)) == []
