"""The loop over months: a month that cannot be read fails alone."""

from pipeline.engine.failures import check_name, record_failure
from pipeline.engine.finish import ALL_MONTHS
from pipeline.engine.stage import Stage
from pipeline.errors import MissingInput
from pipeline.ops.run_months import run_months
from pipeline.tables import KEY_ELEMENTS
from tests.object_store import BUCKET, ObjectStore
from tests.workspaces import make_workspace

MONTHS = ("2024-03", "2024-04", "2024-05")


class Finishing(Stage):
    """A stage without rows that counts the calls of `finish`, which fail while there is an error."""

    table = KEY_ELEMENTS

    def __init__(self):
        self.calls = 0
        self.error = None

    def build(self, job):
        return ()

    def finish(self, workspace):
        self.calls += 1
        if self.error is not None:
            raise self.error


def test_a_month_whose_status_the_store_does_not_give_fails_and_the_others_go_on(
    tmp_path, monkeypatch
):
    stage = Finishing()
    with ObjectStore() as store:
        for name, value in (store.variables | {"AWS_MAX_ATTEMPTS": "1"}).items():
            monkeypatch.setenv(name, value)
        workspace = make_workspace(f"s3://{BUCKET}/root", local=tmp_path)
        record_failure(
            workspace, check_name(stage.name), MONTHS[1], MissingInput("an earlier failure")
        )
        refused = f"/root/failures/{check_name(stage.name)}-{MONTHS[1]}.json"
        store.before = lambda method, path, query: method == "GET" and path.endswith(refused)
        report = run_months(workspace, MONTHS, [stage])
        assert [(stage_name, month) for stage_name, month, _ in report.failures] == [
            ("run", MONTHS[1])
        ]
        assert f"{refused.rsplit('/', 1)[-1]} cannot be reached" in report.failures[0][2]
        assert [outcome.month for outcome in report.outcomes] == [MONTHS[0], MONTHS[2]]
        assert report.exit_code == 1
        assert f"run-{MONTHS[1]}.json" in store.objects("root/failures/")
        store.before = lambda method, path, query: None
        assert run_months(workspace, MONTHS, [stage]).failures == []
        assert f"run-{MONTHS[1]}.json" not in store.objects("root/failures/")


def test_a_stage_is_finished_once_after_its_months_and_not_where_none_was_computed(tmp_path):
    workspace = make_workspace(tmp_path)
    stage = Finishing()
    run_months(workspace, MONTHS, [stage])
    assert stage.calls == 1
    run_months(workspace, MONTHS, [stage])
    assert stage.calls == 1


def test_a_finish_that_failed_or_was_left_out_is_made_up_for_by_the_next_command(tmp_path):
    workspace = make_workspace(tmp_path)
    stage = Finishing()
    stage.error = MissingInput("no room")
    run_months(workspace, MONTHS, [stage], finish=False)
    assert stage.calls == 0
    report = run_months(workspace, MONTHS, [stage])
    assert report.failures == [(stage.name, ALL_MONTHS, "no room")]
    stage.error = None
    assert run_months(workspace, [], [stage]).failures == []
    assert run_months(workspace, [], [stage]).failures == []
    assert stage.calls == 2
