"""Measures of judges: numbers that can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from pydantic import TypeAdapter

from pipeline.evaluation.judge_check.labelled_claims import Label
from pipeline.evaluation.judge_check.verify import UNREADABLE, Measures, measure
from pipeline.evaluation.statistics import Estimate

THREE: dict[str, Label] = {"yes": "SUPPORT", "no": "REFUTE", "unknown": "NEI"}
LABELS: list[Label] = ["SUPPORT", "SUPPORT", "SUPPORT", "REFUTE", "REFUTE", "NEI"]


def measured(verdicts: Sequence[str], labels: Sequence[Label] = LABELS) -> Measures:
    clusters = [str(place) for place in range(len(labels))]
    return measure(labels, verdicts, clusters, supported="yes", label_of=THREE)


def mean(found: Estimate | None) -> float | None:
    return found and found.value


def test_a_perfect_judge_has_1_everywhere() -> None:
    found = measured(["yes", "yes", "yes", "no", "no", "unknown"])
    assert found.macro_f1 == Estimate(1, 1, 1, 6)
    assert {mean(each.accuracy) for each in found.classes.values()} == {1}
    assert found.confusion == {"SUPPORT": {"yes": 3}, "REFUTE": {"no": 2}, "NEI": {"unknown": 1}}


def test_measures_are_those_worked_out_by_hand() -> None:
    """SUPPORT: 2 of 3, and of 3 given; F1 2/3. REFUTE: 1 of 2, of 1 given; F1 2/3. NEI: 0 of 1; F1 0."""
    found = measured(["yes", "yes", "unknown", "no", "yes", UNREADABLE])
    assert found.macro_f1 is not None
    assert found.macro_f1.value == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert found.macro_f1.low < found.macro_f1.value < found.macro_f1.high
    refute = found.classes["REFUTE"]
    assert (refute.claims, mean(refute.accuracy)) == (2, 0.5)
    # SUPPORT or not: NOT is right for "unknown" where REFUTE or NEI is meant, and an unreadable answer is wrong.
    assert mean(found.support["NOT"].f1) == pytest.approx(2 * 1 / (3 + 2))
    assert mean(found.support_macro_f1) == pytest.approx((2 / 3 + 2 / 5) / 2)
    assert found.confusion["NEI"] == {UNREADABLE: 1}


def test_a_judge_that_never_gives_a_class_has_0_for_it() -> None:
    found = measured(["yes"] * 6)
    assert mean(found.classes["NEI"].f1) == 0
    assert mean(found.macro_f1) == pytest.approx((2 / 3) / 3)


def test_where_verdicts_do_not_tell_three_labels_apart_there_are_two_classes() -> None:
    found = measure(LABELS, ["yes"] * 6, list("abcdef"), supported="yes", label_of=None)
    assert (found.macro_f1, found.classes) == (None, {})
    assert found.support_macro_f1 is not None


def test_a_figure_that_an_earlier_version_wrote_is_read() -> None:
    found = measured(["yes", "yes", "unknown", "no", "yes", UNREADABLE])
    document = json.loads(TypeAdapter(Measures).dump_json(found))
    assert TypeAdapter(Measures).validate_python(document) == found
    document["macro_f1"] = [0.5, 0.25, 0.75]
    document["classes"]["REFUTE"]["precision"] = [1.0, 1.0, 1.0]  # no longer measured
    assert TypeAdapter(Measures).validate_python(document).macro_f1 == Estimate(0.5, 0.25, 0.75)


def test_intervals_draw_whole_documents() -> None:
    """Of one document there is nothing to draw; of two that differ the interval is all there is."""
    labels: list[Label] = ["SUPPORT"] * 8
    verdicts = ["yes"] * 4 + ["no"] * 4
    alone, two = (
        measure(labels, verdicts, documents, supported="yes", label_of=THREE).classes["SUPPORT"].accuracy
        for documents in (["a"] * 8, ["a"] * 4 + ["b"] * 4)
    )
    assert (alone, two) == (None, Estimate(0.5, 0, 1, 8))
