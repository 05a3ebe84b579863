"""Titles of related-work sections."""

import pytest

from pipeline.corpus.related_work import is_related_work

YES = """
Related Work|Related Works|2 Related Work|2.1. Related works|II. RELATED WORK|Background and Related Work|Prior Work
Related Work and Background|Previous Work|Previous Research|Literature Review|Literature Survey|Related Literature
State of the Art|State-of-the-Art|A Brief Survey of Related Work|Introduction and Related Work|Related research
Related Studies|Existing Work|A Related Work|Appendix A: Related Work|Additional Related Works|Extended Related Work
Related Work on Continual Learning|Prior Art|Motivation, Background, and Related Work|Related Work: Retrieval
Other Related Work|Relation to Prior Work|Review of the Literature|Current state of the art|Theory & related work
Related-Work|Related work.|Previous Work in Parsing|Prior and Related Work|Related Work (continued)|A.1 Related Work
Relation to past works|Relationship with Earlier Studies|Connection to Existing Literature
"""
NO = """
Related|Related Tasks|Introduction|Our Previous Work|Comparison with Previous Work|State-of-the-Art Results
Comparison with State of the Art|Future Work|Conclusion and Future Work|Correlated Work|Limitations of Previous Work
Literature|Background|Work|Prior|Previous Version|Related Problems|Work Performed|Relatedness|References|Art
State of the Art Comparison|Unrelated Work|Prior Distributions|Methods
"""


def titles(text):
    return [title for line in text.strip().splitlines() for title in line.split("|")]


@pytest.mark.parametrize("title", titles(YES))
def test_a_section_that_reviews_others_is_related_work(title):
    assert is_related_work(title)


@pytest.mark.parametrize("title", [*titles(NO), "", " ", "2."])
def test_any_other_section_is_not(title):
    assert not is_related_work(title)
