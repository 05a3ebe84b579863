"""Settings, packages, models' files, and Dagster's home."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.ops.doctor import environment, models
from pipeline.ops.doctor.environment import invalid_settings, refused_settings, unread_settings
from pipeline.ops.doctor.findings import FindingState
from resources.dagster_home import InstanceState
from tests.unit.doctor.conftest import NOT_CHECKED, OK, PROBLEM, WARNING, MakeWorkspace, one


def test_packages_of_another_version_than_the_tried_one_are_named(workspace: MakeWorkspace, tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(f"# tried\ntorch=={version('torch').partition('+')[0]}\nhttpx==0.1\nnot-installed==1.0\n")
    found = one(environment.packages(workspace(), pins))
    assert found.state is WARNING
    assert found.seen == f"1 in other versions than tested: httpx {version('httpx')} (tested: 0.1)"
    pins.write_text(f"httpx=={version('httpx')}\n")
    assert one(environment.packages(workspace(), pins)).state is OK
    assert one(environment.packages(workspace(), tmp_path / "none")).state is NOT_CHECKED


def test_what_citeloom_needs_is_known_to_be_there() -> None:
    names = {each.name for each in environment.requirements_of("citeloom")}
    assert {"dagster", "qdrant-client", "torch"} <= names
    assert "pytest" not in names  # of an extra


def test_a_folder_that_lacks_files_of_bge_m3_is_refused_and_a_hub_name_is_not_fetched(
    workspace: MakeWorkspace, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match=r"lacks config\.json"):
        list(models.embedding_model(workspace(embedder="bge-m3", embedder_path=str(tmp_path))))
    absent = one(models.embedding_model(workspace(embedder="bge-m3", embedder_path="nobody/none")))
    assert (absent.state, "not in the hub's cache" in absent.seen) == (WARNING, True)
    assert one(models.embedding_model(workspace())).state is OK


def test_a_device_that_torch_cannot_use_is_refused(workspace: MakeWorkspace) -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        list(models.gpu(workspace(embedder_device="cuda:99")))


def test_a_home_that_does_not_exist_yet_is_not_opened(workspace: MakeWorkspace) -> None:
    def unopened(place: Workspace) -> InstanceState:
        raise AssertionError

    assert one(environment.dagster(workspace(), unopened)).state is OK


@pytest.mark.parametrize(
    ("state", "states", "named"),
    [
        (InstanceState((), (), {}, ()), [OK], "0 active runs"),
        (InstanceState(("a-run",), (), {"gpu": ("a-run",)}, ()), [OK], "gpu by a-run"),
        (InstanceState(("a-run",), ("dead-run",), {}, ()), [WARNING], "dead-run"),
        (InstanceState((), (), {"gpu": ("gone",)}, ()), [WARNING], "gpu by gone"),
        (InstanceState((), (), {}, ("runs",)), [PROBLEM], "runs"),
    ],
)
def test_dead_runs_pools_without_a_run_and_outdated_databases_are_reported(
    workspace: MakeWorkspace, tmp_path: Path, state: InstanceState, states: list[FindingState], named: str
) -> None:
    (tmp_path / "data" / "dagster").mkdir(parents=True)
    (tmp_path / "data" / "dagster" / "dagster.yaml").touch()
    findings = list(environment.dagster(workspace(), lambda place: state))
    assert [finding.state for finding in findings] == states
    assert named in findings[0].seen


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"llm_api_key": "k"}, "CITELOOM_LLM_API_KEY has no effect without CITELOOM_LLM_URL"),
        (
            {"qdrant_api_key": "k", "qdrant_shards": 2},
            "CITELOOM_QDRANT_API_KEY, CITELOOM_QDRANT_SHARDS has no effect without",
        ),
        ({"embedder_path": "/m"}, "CITELOOM_EMBEDDER_PATH has no effect without CITELOOM_EMBEDDER=bge-m3"),
    ],
)
def test_a_setting_that_nothing_reads_is_told(workspace: MakeWorkspace, settings: dict[str, object], told: str) -> None:
    (found,) = unread_settings(workspace(**settings))
    assert found.state is WARNING
    assert found.seen.startswith(told)


def test_settings_that_belong_together_are_not_told(workspace: MakeWorkspace) -> None:
    llm = {"llm_model": "m", "llm_url": "https://host/v1", "llm_api_key": "k"}
    together = workspace(embedder="bge-m3", embedder_path="BAAI/bge-m3", **llm)
    assert one(unread_settings(together)).state is OK
    assert one(unread_settings(workspace(qdrant_api_key=""))).state is OK


def test_what_a_stage_would_refuse_is_told_once(workspace: MakeWorkspace) -> None:
    found = list(refused_settings(workspace(systems="chatcite,nobody", llm_budget_money=5.0)))
    assert all(each.state is PROBLEM for each in found)
    assert ["nobody" in found[0].seen, "PRICE" in found[-1].seen, len(found)] == [True, True, 2]


def test_settings_that_cannot_be_read_are_a_finding_for_each_line() -> None:
    found = list(invalid_settings(SettingError("CITELOOM_A: wrong\nCITELOOM_B: wrong")))
    assert [each.seen for each in found] == ["CITELOOM_A: wrong", "CITELOOM_B: wrong"]
