"""Which stages a refresh may run without a language model, and what it may spend."""

from pipeline.ops.refresh.plan import token_limit
from pipeline.settings import load_settings
from pipeline.stages import CORPUS_STAGES, LLM_STAGES, STAGES
from tests.cases import cases


def test_the_stages_of_the_corpus_ask_no_model_and_read_nothing_of_one():
    prepared = {stage.name for stage in CORPUS_STAGES}
    assert {"index_receipts", "related_work_tasks", "questions"} <= prepared
    assert prepared.isdisjoint(stage.name for stage in LLM_STAGES)
    assert {table.name for stage in CORPUS_STAGES for table in stage.upstream} <= prepared
    assert {"scores", "report"} <= {stage.name for stage in STAGES} - prepared


@cases(
    "unit/refresh/cases.toml", "a_refresh_may_spend_the_lesser_of_its", ["refresh", "run", "most"]
)
def test_a_refresh_may_spend_the_lesser_of_its_budget_and_the_runs(refresh, run, most):
    assert token_limit(load_settings(refresh_llm_tokens=refresh, llm_budget_tokens=run)) == most
