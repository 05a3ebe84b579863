"""Dagster's runs in Postgres, by one setting: they are recorded there, and the password is nowhere
in the data root.
"""

import dagster as dg
import pytest

from pipeline.errors import SettingError
from resources.dagster_home import dagster_home
from tests.assets.conftest import MONTHS
from tests.postgres import PASSWORD, postgres


def test_runs_and_months_of_the_command_line_are_in_postgres_and_the_password_nowhere(empty):
    with postgres() as url:
        place = empty.with_settings(dagster_pg_url=url)
        result = place.run_in_dagster(["dump_members"], MONTHS[0])
        assert result.success
        done = place.invoke("run", "--months", MONTHS[1], "--until", "dump_members")
        assert done.exit_code == 0, done.stderr
        with place.dagster() as instance:
            assert type(instance.run_storage).__name__ == "PostgresRunStorage"
            run = instance.get_run_by_id(result.run_id)
            assert run.status is dg.DagsterRunStatus.SUCCESS
            wanted = dg.AssetRecordsFilter(dg.AssetKey("dump_members"))
            records = instance.fetch_materializations(wanted, limit=10).records
            assert {record.partition_key for record in records} == set(MONTHS[:2])
            events = [entry.to_json() for entry in instance.all_logs(run.run_id)]
            assert PASSWORD not in str((run, records, events, instance.get_ref()))
    files = [file for file in place.root.rglob("*") if file.is_file()]
    assert [file for file in files if PASSWORD.encode() in file.read_bytes()] == []
    assert not list(place.root.rglob("*.db"))


def test_an_address_that_is_none_is_refused_without_its_password(empty):
    place = empty.with_settings(dagster_pg_url=f"mysql://citeloom:{PASSWORD}@127.0.0.1/runs")
    with place.entered(), pytest.raises(SettingError, match="CITELOOM_DAGSTER_PG_URL") as refused:
        dagster_home(place.workspace())
    assert PASSWORD not in str(refused.value)
