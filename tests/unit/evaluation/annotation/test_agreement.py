"""Agreement against published worked examples and another implementation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.statistics import alpha

pytestmark = pytest.mark.slow

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section E: four observers, twelve
# units; 0: no mark.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3),
    (0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0),
)
UNITS = [[mark for mark in unit if mark] for unit in zip(*OBSERVERS, strict=True)]


def krippendorff_alpha(units, level="ordinal"):
    return alpha(units, [str(place) for place in range(len(units))], level).value


marks = st.lists(st.lists(st.integers(1, 5), max_size=4), min_size=1, max_size=12)


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_is_that_of_krippendorffs_own_example(level, published):
    assert krippendorff_alpha(UNITS, level) == pytest.approx(published, abs=0.0005)  # type: ignore[arg-type]


@given(marks)
def test_nominal_alpha_is_that_of_nltk(units):
    from nltk.metrics.agreement import AnnotationTask
    from nltk.metrics.distance import binary_distance

    met = [unit for unit in units if len(unit) > 1]
    found = krippendorff_alpha(units, "nominal")
    if len({mark for unit in met for mark in unit}) < 2:
        assert found is None
        return
    triples = [
        (str(rater), str(place), mark)
        for place, unit in enumerate(met)
        for rater, mark in enumerate(unit)
    ]
    assert found == pytest.approx(AnnotationTask(data=triples, distance=binary_distance).alpha())


def test_full_agreement_is_1_with_an_interval_of_no_width_and_what_contradicts_is_below_0():
    found = alpha([[1, 1], [5, 5], [2, 2], [4, 4]], ["a", "b", "c", "d"])
    assert (found.value, found.low, found.high) == (1, 1, 1)
    assert (krippendorff_alpha([[1, 5], [5, 1]]) or 0) < 0
    assert krippendorff_alpha([["x", "x", "x"], ["y", "y", "y"]], "nominal") == 1


def test_agreement_on_nothing_and_on_a_single_mark_or_choice_is_absent():
    no_marks = [[], [[3]], [[3], [4], []], [[4, 4], [4, 4, 4]]]
    assert [krippendorff_alpha(units) for units in no_marks] == [None] * 4
    assert krippendorff_alpha([["x", "x"], ["x", "x", "x"]], "nominal") is None


def test_the_interval_of_alpha_is_around_it_and_the_same_every_time_and_of_one_task_there_is_none():
    tasks = [f"task {place // 3}" for place in range(len(UNITS))]
    found = alpha(UNITS, tasks)
    assert found.value == pytest.approx(0.815, abs=0.0005)
    assert found.count == 11
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.815 < found.high
    assert alpha(UNITS, tasks) == found
    alone = alpha(UNITS, ["the only task"] * len(UNITS))
    assert (alone.value, alone.low, alone.high) == (found.value, None, None)
