"""Titles of related-work sections, and of lists of references that authors typed by hand."""

from pipeline.corpus.parse.typed_references import is_title_of_references
from pipeline.corpus.related_work import is_related_work
from tests.cases import cases


@cases("unit/corpus/cases.toml", "related_work_titles")
def test_a_section_that_reviews_others_is_related_work(case):
    assert is_related_work(case)


@cases("unit/corpus/cases.toml", "other_titles")
def test_any_other_section_is_not(case):
    assert not is_related_work(case)


@cases("unit/corpus/cases.toml", "headings_of_references")
def test_a_list_of_references_is_known_by_its_heading(case):
    assert is_title_of_references(case)


@cases("unit/corpus/cases.toml", "headings_of_other_sections")
def test_other_headings_are_none_of_a_list(case):
    assert not is_title_of_references(case)
