"""Settings that are none, that nothing reads, or that stages would refuse."""

from __future__ import annotations

import pytest

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.ops.doctor.findings import State
from pipeline.ops.doctor.given import as_findings, refused, unread
from pipeline.settings import load_settings


def workspace(**settings: object) -> Workspace:
    return Workspace(load_settings(_env_file=None, **settings))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"judge_api_key": "k"}, "CITELOOM_JUDGE_API_KEY given without CITELOOM_JUDGE_URL"),
        ({"qdrant_api_key": "k", "qdrant_shards": 2}, "CITELOOM_QDRANT_API_KEY, CITELOOM_QDRANT_SHARDS given without"),
        ({"embedder_path": "/m"}, "CITELOOM_EMBEDDER_PATH given without CITELOOM_EMBEDDER=bge-m3"),
        ({"second_judge_url": "http://localhost/v1"}, "CITELOOM_SECOND_JUDGE_URL given without"),
    ],
)
def test_a_setting_that_nothing_reads_is_told(settings: dict[str, object], told: str) -> None:
    (found,) = unread(workspace(**settings))
    assert found.state is State.WARNING
    assert found.seen.startswith(told)


def test_settings_that_belong_together_are_not_told() -> None:
    judge = {"judge_model": "m", "judge_url": "https://host/v1", "judge_api_key": "k"}
    assert list(unread(workspace(embedder="bge-m3", embedder_path="BAAI/bge-m3", **judge))) == []
    assert list(unread(workspace(qdrant_api_key=""))) == []


def test_what_a_stage_would_refuse_is_told_once() -> None:
    found = list(refused(workspace(systems="chatcite,nobody", llm_budget_money=5.0)))
    assert all(each.state is State.PROBLEM for each in found)
    assert ["nobody" in found[0].seen, "PRICE" in found[-1].seen, len(found)] == [True, True, 2]


def test_settings_that_cannot_be_read_are_a_finding_for_each_line() -> None:
    found = list(as_findings(SettingError("CITELOOM_A: wrong\nCITELOOM_B: wrong")))
    assert [each.seen for each in found] == ["CITELOOM_A: wrong", "CITELOOM_B: wrong"]
