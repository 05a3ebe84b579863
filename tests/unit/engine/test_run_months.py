"""The loop over months: a month that cannot be read fails alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.engine.failures import check_name, record_failure
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import MissingInput
from pipeline.ops.run_months import run_months
from pipeline.settings import load_settings
from pipeline.storage.writing import Row
from pipeline.tables import KEY_ELEMENTS
from tests.object_store import BUCKET, ObjectStore

MONTHS = ("2024-03", "2024-04", "2024-05")


def build_nothing(job: Job) -> Iterable[Row]:
    """A month without rows."""
    return ()


def test_a_month_whose_status_the_store_does_not_give_fails_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(KEY_ELEMENTS, build_nothing)
    with ObjectStore() as store:
        for name, value in (store.variables | {"AWS_MAX_ATTEMPTS": "1"}).items():
            monkeypatch.setenv(name, value)
        workspace = Workspace(
            load_settings(data=f"s3://{BUCKET}/root", local=tmp_path, _env_file=None)
        )
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
