"""Packages, models' files, and Dagster's home."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import pytest

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.ops.doctor import installed, models
from pipeline.ops.doctor.findings import Finding, State
from pipeline.settings import load_settings
from resources.dagster_home import dagster_home, open_instance
from tests.waiting_run import waiting_run


def workspace(folder: Path, **settings: object) -> Workspace:
    return Workspace(load_settings(_env_file=None, data=folder, **settings))


def one(found: Iterable[Finding]) -> Finding:
    (finding,) = found
    return finding


def test_packages_of_another_version_than_the_tried_one_are_named(tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(f"# tried\ntorch=={version('torch').partition('+')[0]}\nhttpx==0.1\nnot-installed==1.0\n")
    found = one(installed.packages(workspace(tmp_path), pins))
    assert found.state is State.WARNING
    assert found.seen == f"1 of other versions than tried: httpx {version('httpx')} (tried: 0.1)"
    pins.write_text(f"httpx=={version('httpx')}\n")
    assert one(installed.packages(workspace(tmp_path), pins)).state is State.OK
    assert one(installed.packages(workspace(tmp_path), tmp_path / "none")).state is State.NOT_ASKED


def test_what_citeloom_needs_is_known_to_be_there() -> None:
    names = {each.name for each in installed.needed("citeloom")}
    assert {"dagster", "qdrant-client", "torch"} <= names
    assert "pytest" not in names  # of an extra


def test_a_folder_that_lacks_files_of_bge_m3_is_refused_and_a_hub_name_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"lacks config\.json"):
        list(models.embedding_model(workspace(tmp_path, embedder="bge-m3", embedder_path=str(tmp_path))))
    absent = one(models.embedding_model(workspace(tmp_path, embedder="bge-m3", embedder_path="nobody/none")))
    assert (absent.state, "not in the hub's cache" in absent.seen) == (State.WARNING, True)
    assert one(models.embedding_model(workspace(tmp_path))).state is State.OK


def test_a_device_that_torch_cannot_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        list(models.gpu(workspace(tmp_path, embedder_device="cuda:99")))


def test_runs_whose_process_is_gone_and_stores_of_an_older_schema_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace(tmp_path)
    assert "not there yet" in one(installed.dagster(place)).seen
    monkeypatch.setenv("DAGSTER_HOME", "")  # dagster_home sets it, and the test puts it back
    home = dagster_home(place)
    open_instance(home).dispose()
    with waiting_run(home):
        assert one(installed.dagster(place)).state is State.OK
    finding = one(installed.dagster(place))
    with open_instance(home) as instance:
        (run,) = instance.get_runs()
        assert (finding.state, run.run_id in finding.seen) == (State.WARNING, True)
        instance.report_run_failed(run)
    assert one(installed.dagster(place)).state is State.OK
    _make_older(home / "history" / "runs.db")
    older = one(installed.dagster(place))
    assert (older.state, "older schema (runs)" in older.seen) == (State.PROBLEM, True)


def _make_older(store: Path) -> None:
    """Stamp a store with the schema before the newest, as a Dagster of that time would have left it."""
    with contextlib.closing(sqlite3.connect(store)) as opened, opened:
        opened.execute("update alembic_version set version_num = 'f495c27d5019'")
