"""What the doctor says of a Ray cluster: settings, and an address where nobody listens."""

import pytest

from pipeline.ops.doctor import checks
from pipeline.ops.doctor.findings import Probe, run_probes
from tests.unit.doctor.conftest import NOT_CHECKED, OK, PROBLEM, WARNING
from tests.unit.doctor.test_servers import nobody_listens
from tests.unit.test_cluster_settings import VALID


@pytest.fixture
def findings(workspace):
    """Runs the probe of the cluster under the given settings."""
    probe = Probe("cluster", "Does it answer?", checks.cluster, "see the head")
    return lambda **settings: run_probes([probe], workspace(**settings))


def test_nothing_is_checked_without_a_ray_cluster(findings):
    (finding,) = findings(executor="in_process")
    assert finding.state is NOT_CHECKED
    assert "in_process" in finding.seen


def test_settings_that_a_cluster_needs_are_problems_and_those_of_models_warnings(
    findings, monkeypatch
):
    monkeypatch.setattr(checks, "job_client", lambda settings: None)
    reported = findings(executor="ray")
    assert [finding.state for finding in reported] == [PROBLEM, PROBLEM, WARNING, OK]
    names = ("CITELOOM_QDRANT_URL", "CITELOOM_DAGSTER_PG_URL", "CITELOOM_LLM_URL", "answers")
    assert all(name in finding.seen for name, finding in zip(names, reported, strict=True))


def test_an_address_where_nobody_listens_is_a_problem_with_a_way_out(findings):
    pytest.importorskip(
        "dagster_ray",
        reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'",
    )
    address = nobody_listens()
    (finding,) = findings(**VALID, ray_address=address)
    assert finding.state is PROBLEM
    assert f"CITELOOM_RAY_ADDRESS: no Ray job server at {address}" in finding.seen
    assert finding.way_out == "see the head"
