"""How checks are asked: a fault in one, or one that never ends, is told, and harms no other; no
secret is shown.
"""

import threading

import pytest

from pipeline.errors import PermanentFailure
from pipeline.ops.doctor.findings import DATA_ROOT, DoctorFinding, Probe, ok, problem, run_probes
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
