"""Which citations a section has, and how a sentence is searched for and shown to a judge."""

from pipeline.evaluation.citation_support.judge import Citation, citations_of
from tests.cases import cases


def test_every_number_of_a_sentence_is_a_citation_once_also_one_that_the_task_or_the_text_lacks():
    sentences = [
        {"text": "Stones are old.", "references": []},
        {"text": "Both [Reference 2] and [Reference 9] weigh [Reference 2].", "references": [2]},
        {"text": "It weighs [Reference 1].", "references": [1, 3]},
    ]
    cited = [(each.sentence, each.number) for each in citations_of(sentences)]
    assert cited == [(2, 2), (2, 9), (3, 1), (3, 3)]


@cases("unit/evaluation/cases.toml", "claims_of_sentences", ["text", "claim"])
def test_a_search_is_asked_for_the_words_without_the_markers(text, claim):
    assert Citation(1, 1, text).claim == claim
