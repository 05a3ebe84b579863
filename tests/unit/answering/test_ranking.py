"""Listwise rankings: read with tolerance, mended by rule, over windows that slide to the front."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.answering.ranking import read_ranking, windows
from tests.cases import cases_beside


@cases_beside("text", "order", "missing")
def test_a_ranking_is_read_and_mended(text, order, missing):
    assert read_ranking(text, 3) == (order, missing)


@given(st.text(), st.integers(1, 30))
def test_any_text_gives_each_passage_one_place(text, count):
    assert sorted(read_ranking(text, count)[0]) == list(range(1, count + 1))


@cases_beside("count", "spans")
def test_windows_slide_from_the_end_to_the_front(count, spans):
    assert list(map(list, windows(count))) == spans
