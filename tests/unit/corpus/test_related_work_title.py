"""Titles of related-work sections."""

from pipeline.corpus.related_work import is_related_work
from tests.cases import cases


@cases("unit/corpus/cases.toml", "related_work_titles")
def test_a_section_that_reviews_others_is_related_work(case):
    assert is_related_work(case)


@cases("unit/corpus/cases.toml", "other_titles")
def test_any_other_section_is_not(case):
    assert not is_related_work(case)
