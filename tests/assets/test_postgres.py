"""Dagster's runs in Postgres, by one setting: they are recorded there, and the password is nowhere in the data root."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import dagster as dg
import pytest

from assets.jobs import sweep
from pipeline.definitions import run_in_process
from pipeline.engine.liveness import alive
from pipeline.errors import SettingError, TransientFailure
from pipeline.ops.run_months import dagster_home
from pipeline.stages import stage_named
from tests.assets.conftest import MONTHS, Place
from tests.postgres import PASSWORD, postgres


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a Postgres of this module's own."""
    with postgres() as found:
        yield found


@pytest.mark.slow
def test_runs_are_kept_in_postgres_and_the_password_nowhere(empty: Place, url: str) -> None:
    place = empty.with_settings(dagster_pg_url=url)
    with place.entered():
        home = dagster_home(place.workspace())
        assert run_in_process([stage_named("dump_members")], MONTHS[0], home).succeeded
        with dg.DagsterInstance.from_config(str(home)) as instance:
            (run,) = instance.get_runs()
            assert run.status is dg.DagsterRunStatus.SUCCESS
            assert type(instance.run_storage).__name__ == "PostgresRunStorage"
            assert PASSWORD not in str(run)
            assert PASSWORD not in str([entry.to_json() for entry in instance.all_logs(run.run_id)])
            assert PASSWORD not in str(instance.get_ref())
    files = [file for file in place.root.rglob("*") if file.is_file()]
    assert not list(place.root.rglob("runs.db"))
    assert [file for file in files if PASSWORD.encode() in file.read_bytes()] == []


@pytest.mark.slow
def test_a_run_of_another_machine_is_not_taken_for_dead(empty: Place, url: str) -> None:
    """Only what this machine has seen to live can be seen to be gone: the others' lock files are not here."""
    from pipeline.definitions import defs

    place = empty.with_settings(dagster_pg_url=url)
    with place.entered():
        home = dagster_home(place.workspace())
        assert sweep(home) == []
        with dg.DagsterInstance.from_config(str(home)) as instance:
            job = defs.resolve_job_def("refresh_corpus")
            theirs, ours = (instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED) for _ in range(2))
            with alive(home, ours.run_id):
                assert sweep(home) == []
            (home / "running" / f"{ours.run_id}.lock").touch()
            assert sweep(home) == [ours.run_id]
            found = instance.get_run_by_id(theirs.run_id)
            assert found is not None
            assert found.status is dg.DagsterRunStatus.STARTED


def test_an_address_that_is_none_is_refused_without_its_password(empty: Place) -> None:
    place = empty.with_settings(dagster_pg_url=f"mysql://citeloom:{PASSWORD}@127.0.0.1/runs")
    with place.entered(), pytest.raises(SettingError, match="CITELOOM_DAGSTER_PG_URL") as refused:
        dagster_home(place.workspace())
    assert PASSWORD not in str(refused.value)


@pytest.mark.slow
def test_a_postgres_that_does_not_answer_is_named_without_its_password(
    empty: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place = empty.with_settings(dagster_pg_url=f"postgresql://citeloom:{PASSWORD}@127.0.0.1:1/runs")
    with place.entered(), caplog.at_level(logging.DEBUG), pytest.raises(TransientFailure, match="refused") as refused:
        sweep(dagster_home(place.workspace()))
    assert "CITELOOM_DAGSTER_PG_URL" in str(refused.value)
    assert PASSWORD not in str(refused.value) + caplog.text
