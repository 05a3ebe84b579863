"""Means of scores."""

import pyarrow as pa

from pipeline import tables
from pipeline.llm.models import is_small_model
from pipeline.report.frames import Scores


def score(task, metric, value, judge=None, **more):
    row = {"task_id": task, "system": "chatcite", "metric": metric, "value": value, "judge": judge}
    return row | {"repeat": 0, "candidate_set": "main" if judge else None, "order": None} | more


def scores(*rows, judges=()):
    table = pa.Table.from_pylist(list(rows), schema=tables.SCORES.schema)
    return Scores(table, "task_id", {}, judges)


def test_a_system_has_the_mean_over_its_own_tasks_with_an_interval_where_there_are_two():
    rows = [score("a", "rouge1", 20.0), score("b", "rouge1", 30.0)]
    none, one, two = (scores(*rows[:n]).mean("chatcite", "rouge1") for n in range(3))
    assert none.value is None
    assert (one.value, one.low, one.high) == (20.0, None, None)
    assert (two.value, two.count) == (25.0, 2)
    assert two.low <= 25.0


def test_a_task_weighs_the_same_however_often_it_was_judged():
    often = [score("a", "g_score", value, "j", order=str(value)) for value in (1.0, 3.0)]
    assert scores(*often, score("b", "g_score", 4.0, "j")).mean("chatcite", "g_score").value == 3.0


def test_judges_are_apart_and_the_first_judge_leads():
    rows = [score("a", "g_score", 2.0, "a-judge"), score("a", "g_score", 5.0, "z-judge")]
    found = scores(*rows, judges=("z-judge",))
    assert found.judges == ["z-judge", "a-judge"]
    assert found.mean("chatcite", "g_score").value == 5.0


def test_a_measure_by_verdicts_has_one_value_whatever_judge_it_names():
    found = scores(score("a", "citation_precision", 0.5, "j", candidate_set=None))
    assert found.mean("chatcite", "citation_precision").value == 0.5
    assert found.judges == []


def test_the_bundled_model_is_known_by_its_name():
    assert is_small_model("SmolLM2-135M-Instruct-Q4_K_M.gguf")
    assert not is_small_model("gpt-4-turbo-preview")
    assert not is_small_model(None)
