"""ROUGE against fixed values, and which gold section is the floor."""

import pytest

from pipeline.evaluation.rouge import METRICS, floor_task, rouge
from tests.cases import cases


@cases("unit/evaluation/cases.toml", "rouge", ["gold", "text", "values"])
def test_values_are_the_fixed_ones(gold, text, values):
    expected = {name: 100 * value for name, value in zip(METRICS, values, strict=True)}
    assert rouge(gold, text) == pytest.approx(expected)


def test_the_floor_is_another_task_with_a_gold_section_and_always_the_same():
    golds = {"a": "Text.", "b": "Text.", "c": " ", "d": "Text."}
    assert floor_task("a", golds) in ("b", "d")
    assert floor_task("a", golds) == floor_task("a", dict(reversed(golds.items())))
    assert floor_task("a", {"a": "Text.", "c": ""}) is None
