"""kill -9 in the middle of the demo, at ten moments: what stands at the end is what an undisturbed run makes.

The LLM is the scripted one, since a sampled text is no fixed point. Not here: every stage that asks a model, with all
systems, and what a kill makes it ask twice (tests/unit/related_work/test_kills.py).
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.assets.conftest import Place, make_place
from tests.scripted_llm import ScriptedLlm

KILLS = 10
# Three months of 17 stages that are on: a kill after about every third stage of a run, at a random moment of the next.
STAGES_BETWEEN_KILLS = 5


def digests(root: Path) -> dict[str, str]:
    """SHA-256 of every table and every page of the report but that of what runs took, by path."""
    pages = (file for file in root.glob("reports/**/*.html") if file.name != "run.html")
    files = [*root.rglob("*.parquet"), *pages]
    tables = [file for file in files if file.relative_to(root).parts[0] not in ("dagster", "cache", "qdrant-edge")]
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in tables}


def start(place: Place) -> subprocess.Popen[str]:
    """`citeloom demo` in a process group of its own, its progress lines to be read."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("CITELOOM_")}
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("citeloom")), "demo"],
        env={**others, "COLUMNS": "200", "NO_COLOR": "1", **place.variables},
        cwd=place.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def kill_after(run: subprocess.Popen[str], stages: int, seconds: float) -> int:
    """Kill a run so many seconds after it has made so many months of stages; how many it made, killed or not."""
    made = 0
    assert run.stderr is not None
    for line in run.stderr:
        made += line.startswith("20") and "kept" not in line
        if made == stages:
            time.sleep(seconds)
            break
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    return made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_kills_change_nothing(tmp_path: Path, llm: ScriptedLlm) -> None:
    settings = {"llm_url": llm.url, "llm_model": "scripted", "outside_references": "drop", "max_questions": 1}
    calm, disturbed = (make_place(tmp_path / name, **settings) for name in ("calm", "disturbed"))
    assert calm.citeloom("demo").returncode == 0
    chance = random.Random(2403)
    moments = [(chance.randint(1, STAGES_BETWEEN_KILLS), chance.uniform(0, 0.6)) for _ in range(KILLS)]
    killed = [kill_after(start(disturbed), stages, seconds) for stages, seconds in moments]
    assert all(made > 0 for made in killed)
    again = disturbed.citeloom("demo")
    assert again.returncode == 0, again.stderr
    assert digests(disturbed.root) == digests(calm.root)
    assert len(digests(calm.root)) > 2 * 3 * 12


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_second_run_changes_no_byte_and_two_at_once_agree(tmp_path: Path, llm: ScriptedLlm) -> None:
    settings = {"llm_url": llm.url, "llm_model": "scripted", "outside_references": "drop", "max_questions": 1}
    alone, shared = (make_place(tmp_path / name, **settings) for name in ("alone", "shared"))
    pair = [start(shared) for _ in range(2)]
    ends = [(run.communicate(timeout=300)[1], run.returncode) for run in pair]
    assert [code for _, code in ends] == [0, 0], ends
    assert alone.citeloom("demo").returncode == 0
    before = digests(alone.root)
    assert digests(shared.root) == before
    second = alone.citeloom("demo")
    assert second.returncode == 0
    assert "done before" in second.stdout
    assert digests(alone.root) == before
