"""Settings, packages, models' files, and Dagster's home."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pytest

from assets.jobs import HomeState, examine, sweep
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.ops.doctor import environment, models
from pipeline.ops.doctor.environment import invalid_settings, refused_settings, unread_settings
from pipeline.ops.doctor.findings import Finding, FindingState
from pipeline.ops.run_months import dagster_home
from pipeline.settings import load_settings


def workspace(folder: Path, **settings: object) -> Workspace:
    return Workspace(load_settings(_env_file=None, data=folder, **settings))


def settings_only(**settings: object) -> Workspace:
    return Workspace(load_settings(_env_file=None, **settings))


def state_of(place: Workspace) -> HomeState:
    return examine(dagster_home(place))


def one(found: Iterable[Finding]) -> Finding:
    (finding,) = found
    return finding


def test_packages_of_another_version_than_the_tried_one_are_named(tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(f"# tried\ntorch=={version('torch').partition('+')[0]}\nhttpx==0.1\nnot-installed==1.0\n")
    found = one(environment.packages(workspace(tmp_path), pins))
    assert found.state is FindingState.WARNING
    assert found.seen == f"1 in other versions than tested: httpx {version('httpx')} (tested: 0.1)"
    pins.write_text(f"httpx=={version('httpx')}\n")
    assert one(environment.packages(workspace(tmp_path), pins)).state is FindingState.OK
    assert one(environment.packages(workspace(tmp_path), tmp_path / "none")).state is FindingState.NOT_ASKED


def test_what_citeloom_needs_is_known_to_be_there() -> None:
    names = {each.name for each in environment.requirements_of("citeloom")}
    assert {"dagster", "qdrant-client", "torch"} <= names
    assert "pytest" not in names  # of an extra


def test_a_folder_that_lacks_files_of_bge_m3_is_refused_and_a_hub_name_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"lacks config\.json"):
        list(models.embedding_model(workspace(tmp_path, embedder="bge-m3", embedder_path=str(tmp_path))))
    absent = one(models.embedding_model(workspace(tmp_path, embedder="bge-m3", embedder_path="nobody/none")))
    assert (absent.state, "not in the hub's cache" in absent.seen) == (FindingState.WARNING, True)
    assert one(models.embedding_model(workspace(tmp_path))).state is FindingState.OK


def test_a_device_that_torch_cannot_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        list(models.gpu(workspace(tmp_path, embedder_device="cuda:99")))


def test_a_run_whose_process_is_gone_is_told_and_left_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace(tmp_path)
    assert "does not exist yet" in one(environment.dagster(place, state_of)).seen
    monkeypatch.setenv("DAGSTER_HOME", "")  # dagster_home sets it, and the test puts it back
    home = dagster_home(place)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        run = instance.create_run_for_job(dg.job(name="gone")(lambda: None))
        instance.report_dagster_event(dg.DagsterEvent("PIPELINE_START", job_name="gone"), run.run_id)
    (home / "running").mkdir()
    (home / "running" / f"{run.run_id}.lock").touch()
    found = one(environment.dagster(place, state_of))
    assert (found.state, run.run_id in found.seen) == (FindingState.WARNING, True)
    assert sweep(home) == [run.run_id]
    assert one(environment.dagster(place, state_of)).state is FindingState.OK
    _make_older(home / "history" / "runs.db")
    older = one(environment.dagster(place, state_of))
    assert (older.state, "older schema (runs)" in older.seen) == (FindingState.PROBLEM, True)


def _make_older(store: Path) -> None:
    """Stamp a store with the schema before the newest, as a Dagster of that time would have left it."""
    with contextlib.closing(sqlite3.connect(store)) as opened, opened:
        opened.execute("update alembic_version set version_num = 'f495c27d5019'")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"judge_api_key": "k"}, "CITELOOM_JUDGE_API_KEY has no effect without CITELOOM_JUDGE_URL"),
        (
            {"qdrant_api_key": "k", "qdrant_shards": 2},
            "CITELOOM_QDRANT_API_KEY, CITELOOM_QDRANT_SHARDS has no effect without",
        ),
        ({"embedder_path": "/m"}, "CITELOOM_EMBEDDER_PATH has no effect without CITELOOM_EMBEDDER=bge-m3"),
        ({"second_judge_url": "http://localhost/v1"}, "CITELOOM_SECOND_JUDGE_URL has no effect without"),
    ],
)
def test_a_setting_that_nothing_reads_is_told(settings: dict[str, object], told: str) -> None:
    (found,) = unread_settings(settings_only(**settings))
    assert found.state is FindingState.WARNING
    assert found.seen.startswith(told)


def test_settings_that_belong_together_are_not_told() -> None:
    judge = {"judge_model": "m", "judge_url": "https://host/v1", "judge_api_key": "k", "judge_price_read": 1.0}
    together = settings_only(embedder="bge-m3", embedder_path="BAAI/bge-m3", **judge)
    assert one(unread_settings(together)).state is FindingState.OK
    assert one(unread_settings(settings_only(qdrant_api_key=""))).state is FindingState.OK


def test_what_a_stage_would_refuse_is_told_once() -> None:
    found = list(refused_settings(settings_only(systems="chatcite,nobody", llm_budget_money=5.0)))
    assert all(each.state is FindingState.PROBLEM for each in found)
    assert ["nobody" in found[0].seen, "PRICE" in found[-1].seen, len(found)] == [True, True, 2]


def test_settings_that_cannot_be_read_are_a_finding_for_each_line() -> None:
    found = list(invalid_settings(SettingError("CITELOOM_A: wrong\nCITELOOM_B: wrong")))
    assert [each.seen for each in found] == ["CITELOOM_A: wrong", "CITELOOM_B: wrong"]
