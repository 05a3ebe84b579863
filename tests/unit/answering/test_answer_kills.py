"""kill -9 at ten moments of the stages that answer and grade, and a budget that ends them: what stands at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.index import close_indexes
from pipeline.llm.budget import BudgetReached
from tests.llm_kills import asked, kill_and_finish
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import MARCH
from tests.unit.answering.staging import ASKING, STAGES, contents, run_all, staged

PROJECT = Path(__file__).resolve().parents[3]
KILLS = 10
SETTINGS: dict[str, Any] = {"llm_concurrency": 4, "grade_controls": 1}
RUN = (
    "import json, sys\n"
    "from pathlib import Path\n"
    "from pipeline.settings import load_settings\n"
    "from pipeline.engine.run import run_stage\n"
    "from pipeline.engine.stage import Workspace\n"
    "from tests.unit.answering.staging import STAGES\n"
    "place = Workspace(load_settings(**json.loads(sys.argv[1]), _env_file=None))\n"
    "Path(sys.argv[2]).touch()\n"
    f"for stage in STAGES: run_stage(stage, place, {MARCH!r})\n"
)


def start(place: Workspace, llm: ScriptedLlm) -> subprocess.Popen[bytes]:
    given = {
        "data": str(place.root.path), "questions": str(place.settings.questions), "llm_url": llm.url,
        "llm_model": llm.model, **SETTINGS,
    }  # fmt: skip
    begun = place.root.path / "begun"
    return subprocess.Popen([sys.executable, "-c", RUN, json.dumps(given), str(begun)], cwd=PROJECT)


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_change_no_row_and_repeat_only_what_was_in_flight(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        undisturbed = staged(corpus, tmp_path / "undisturbed", llm, **SETTINGS)
        run_all(undisturbed)
        needed = asked(llm)
    close_indexes()  # which the runs below read
    assert set(needed.values()) == {1}
    with ScriptedLlm(latency=0.02) as llm:
        killed = staged(corpus, tmp_path / "killed", llm, **SETTINGS)
        kill_and_finish(llm, lambda: start(killed, llm), needed, KILLS, SETTINGS["llm_concurrency"])
    assert contents(killed) == contents(undisturbed)


@pytest.mark.faults
def test_a_budget_that_ends_a_run_is_gone_on_with_to_the_same_rows(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        undisturbed = staged(corpus, tmp_path / "undisturbed", llm)
        run_all(undisturbed)
        needed = llm.generations
    with ScriptedLlm() as llm:
        reached = 0
        # Each another ceiling, hence a budget of its own, as a process has.
        for limit in range(needed // 5, needed):
            place = staged(corpus, tmp_path / "stopped", llm, llm_budget_calls=limit)
            before = llm.generations
            try:
                run_all(place)
            except BudgetReached:
                reached += 1
                assert llm.generations - before == limit
                continue
            break
        assert reached == 4
        assert llm.generations == needed
    assert contents(place) == contents(undisturbed)


def test_calls_in_flight_are_bounded_and_side_by_side(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm(latency=0.01) as llm:
        place = staged(corpus, tmp_path, llm, **SETTINGS)
        run_all(place)
        assert 1 < llm.at_once <= SETTINGS["llm_concurrency"]


def test_a_failure_in_one_answer_leaves_no_month_and_keeps_what_was_paid(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, llm_budget_calls=3)
        with pytest.raises(BudgetReached):
            run_all(place)
        due = [stage for stage in STAGES if not place.root.file(stage.table, MARCH).exists()]
        assert set(due) >= set(ASKING[1:])
        assert llm.generations == 3
        free = staged(corpus, tmp_path, llm)
        for stage in due:
            run_stage(stage, free, MARCH)
        assert llm.generations == len(asked(llm))
