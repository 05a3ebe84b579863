"""Headings of lists of references that authors typed by hand."""

from pipeline.corpus.parse.typed_references import is_title_of_references
from tests.cases import cases


@cases("unit/corpus/cases.toml", "headings_of_references")
def test_a_list_of_references_is_known_by_its_heading(case):
    assert is_title_of_references(case)


@cases("unit/corpus/cases.toml", "headings_of_other_sections")
def test_other_headings_are_none_of_a_list(case):
    assert not is_title_of_references(case)
