"""How checks are asked: a fault in one, or one that never ends, is told, and harms no other; no
secret is shown. And the command `citeloom doctor`: what it prints, and what it ends with.
"""

import json
import threading

import pytest

from pipeline.errors import PermanentFailure
from pipeline.ops.doctor.checks import all_probes
from pipeline.ops.doctor.findings import DATA_ROOT, DoctorFinding, Probe, ok, problem, run_probes
from tests.command import invoke
from tests.unit.doctor.conftest import NOT_CHECKED, OK, PROBLEM
from tests.workspaces import make_workspace

KEY, PASSWORD = "sk-doctor-sentinel", "pg-doctor-sentinel"


@pytest.fixture
def workspace(tmp_path):
    address = f"postgresql://me:{PASSWORD}@127.0.0.1/runs"
    return make_workspace(tmp_path, llm_api_key=KEY, dagster_pg_url=address)


def _fine(workspace):
    yield ok("seen")


FINE = Probe("fine", "Fine?", _fine, "")


def test_a_check_that_fails_is_told_and_the_others_go_on(workspace):
    def foreseen(workspace):
        yield ok("half of it", name="first")
        raise PermanentFailure("the file x is broken")

    def unforeseen(workspace):
        raise ZeroDivisionError("by zero")
        yield

    asked = []
    found = run_probes(
        [Probe("a", "A?", foreseen, "mend x"), Probe("b", "B?", unforeseen, "mend y"), FINE],
        workspace,
        asked.append,
    )
    assert [(each.name, each.state, each.seen, each.way_out) for each in found] == [
        ("first", OK, "half of it", ""),
        ("a", PROBLEM, "the file x is broken", "mend x"),
        ("b", PROBLEM, "unexpected ZeroDivisionError: by zero", "mend y"),
        ("fine", OK, "seen", ""),
    ]
    assert asked == ["A?", "B?", "Fine?"]


def test_a_check_that_never_ends_is_left_behind(workspace):
    ended = threading.Event()

    def hanging(workspace):
        ended.wait()
        yield ok("")

    found = run_probes(
        [Probe("drive", "Drive?", hanging, "see the mount"), FINE], workspace, seconds=0.1
    )
    ended.set()
    assert [each.name for each in found] == ["drive", "fine"]
    assert (found[0].state, found[0].way_out) == (PROBLEM, "see the mount")


def test_no_finding_shows_a_secret(workspace):
    def repeating(workspace):
        yield DoctorFinding(
            "a", PROBLEM, f"{KEY} is refused", f"not {KEY} at https://me:word@host/v1"
        )
        raise RuntimeError(f"{PASSWORD} failed for postgresql://me:{PASSWORD}@127.0.0.1/runs")

    told = repr(run_probes([Probe("b", "B?", repeating, "")], workspace))
    assert "sentinel" not in told
    assert "word" not in told
    assert "*** is refused" in told


def test_probes_that_write_are_left_out_where_the_data_root_cannot_be_written(workspace):
    probes = [
        Probe(
            DATA_ROOT, "Root?", lambda workspace: [problem("read-only", "name another folder")], ""
        ),
        Probe("dump", "Dump?", _fine, "", writes=True),
        FINE,
    ]
    findings = run_probes(probes, workspace)
    assert [(finding.name, finding.state) for finding in findings] == [
        (DATA_ROOT, PROBLEM), ("dump", NOT_CHECKED), ("fine", OK)
    ]  # fmt: skip


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
