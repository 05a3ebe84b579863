"""The command `citeloom doctor`: what it prints, and what it ends with."""

import json

import pytest

from pipeline.ops.doctor.checks import all_probes
from tests.command import invoke
from tests.unit.doctor.conftest import PROBLEM


@pytest.fixture(autouse=True)
def _own_settings(no_settings, monkeypatch, tmp_path):
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def doctor(*options):
    done = invoke("doctor", "--json", *options)
    return done.exit_code, json.loads(done.stdout)["findings"]


def test_a_fresh_machine_has_no_problem_and_every_probe_has_its_say():
    code, findings = doctor()
    assert (code, {finding["state"] for finding in findings} - {"warning"}) == (
        0,
        {"ok", "not checked"},
    )
    names = {"dagster", *(probe.name for probe in all_probes(online=False))}
    assert names <= {finding["name"] for finding in findings}
    assert all(
        finding["way_out"] for finding in findings if finding["state"] in ("warning", "problem")
    )


def test_a_problem_ends_it_with_1_and_shows_the_way_out(monkeypatch):
    monkeypatch.setenv(
        "CITELOOM_DUMP_DIR", "/absent"
    )  # a longer path would be broken at the end of a line
    monkeypatch.setenv("COLUMNS", "200")
    done = invoke("doctor")
    assert done.exit_code == 1
    assert "there is no folder /absent" in done.stdout
    assert "→ see CITELOOM_DUMP_DIR" in done.stdout


def test_settings_that_cannot_be_read_end_it_with_2_without_their_secrets(monkeypatch):
    monkeypatch.setenv("CITELOOM_TEMPERATURE", "hot")
    monkeypatch.setenv("CITELOOM_LLM_CONTEXT", "1")
    monkeypatch.setenv("CITELOOM_LLM_API_KEY", "sesame-sentinel")
    code, findings = doctor()
    assert (code, [finding["state"] for finding in findings]) == (2, [PROBLEM, PROBLEM])
    assert "CITELOOM_TEMPERATURE" in str(findings)
    assert "sesame" not in json.dumps(findings)
