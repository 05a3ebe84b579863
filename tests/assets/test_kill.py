"""kill -9 in the middle of the demo, at three moments: what stands at the end is what an undisturbed run makes.

The LLM is the scripted one, since a sampled text is no fixed point.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pipeline.stages import STAGES
from tests.assets.conftest import MONTHS, Place, make_place
from tests.assets.processes import start
from tests.scripted_llm import ScriptedLlm

KILLS = 3
# Of some 60 months of stages that the demo makes, so that no kill comes after the end: at a random moment of the one
# that follows.
STAGES_BETWEEN_KILLS = 15
COMPUTED = re.compile(r"20\d\d-\d\d \w+: [\d,]+ rows, [\d.]+ s")


def digests(root: Path) -> dict[str, str]:
    """SHA-256 of every table and every page of the report but that of what runs took, by path."""
    pages = (file for file in root.glob("reports/**/*.html") if file.name != "run.html")
    files = [*root.rglob("*.parquet"), *pages]
    tables = [file for file in files if file.relative_to(root).parts[0] not in ("dagster", "cache", "qdrant-edge")]
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in tables}


@pytest.fixture(scope="module")
def settings(llm: ScriptedLlm) -> dict[str, object]:
    """One question, and references of the corpus alone: enough to pass through every stage."""
    return {"llm_url": llm.url, "llm_model": "scripted", "outside_references": "drop", "max_questions": 1}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, object]) -> Place:
    """The demo, undisturbed."""
    place = make_place(tmp_path_factory.mktemp("calm") / "data", **settings)
    done = place.citeloom("demo")
    assert done.returncode == 0, done.stderr
    return place


def kill_after(run: subprocess.Popen[str], stages: int, seconds: float) -> int:
    """Kill a run so many seconds after it has made so many months of stages; how many it made, killed or not."""
    made = 0
    assert run.stderr is not None
    for line in run.stderr:
        made += bool(COMPUTED.match(line))
        if made == stages:
            time.sleep(seconds)
            break
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    return made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_kills_change_nothing(tmp_path: Path, calm: Place, settings: dict[str, object]) -> None:
    disturbed = make_place(tmp_path / "disturbed", **settings)
    chance = random.Random(2403)
    moments = [(chance.randint(1, STAGES_BETWEEN_KILLS), chance.uniform(0, 0.6)) for _ in range(KILLS)]
    killed = [kill_after(start(disturbed, "demo"), stages, seconds) for stages, seconds in moments]
    assert all(made > 0 for made in killed)
    again = disturbed.citeloom("demo")
    assert again.returncode == 0, again.stderr
    assert digests(disturbed.root) == digests(calm.root)
    # A table and its ledger: every stage of each month.
    tables = {path for path in digests(calm.root) if path.endswith(".parquet")}
    assert len(tables) == 2 * len(MONTHS) * len(STAGES)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_second_run_changes_no_byte(calm: Place) -> None:
    before = digests(calm.root)
    second = calm.citeloom("demo", "--json")
    assert second.returncode == 0
    assert all(outcome["skipped"] for outcome in json.loads(second.stdout)["outcomes"])
    assert digests(calm.root) == before
