"""A budget that ends the stages that answer and grade, and their calls in flight."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.llm.budget import BudgetReached
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import MARCH
from tests.unit.answering.stage_runs import ASKING, STAGES, contents, run_all, staged

pytestmark = pytest.mark.slow


@pytest.mark.faults
def test_a_budget_that_ends_a_run_is_gone_on_with_to_the_same_rows(
    corpus: Workspace, tmp_path: Path
) -> None:
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


def test_a_failure_in_one_answer_leaves_no_month_and_keeps_what_was_paid(
    corpus: Workspace, tmp_path: Path
) -> None:
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
        assert llm.generations == len(llm.requested_texts())
