"""The judge that calls no model: what it sees."""

import pytest

from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.settings import load_settings


@pytest.fixture(scope="module")
def judge():
    """The judge with MiniLM, though the settings name another embedder."""
    return OverlapJudge.of(load_settings(embedder="bge-m3", _env_file=None))


PASSAGES = [
    "We trained twelve models. Dense retrieval beats BM25 on questions of one hop.",
    "Kites fly above rivers.",
]


def test_a_claim_that_stands_in_a_passage_is_supported_by_a_sentence_and_one_on_something_else_is_not(
    judge,
):
    near, other = judge.verdicts(
        [
            ("Dense retrieval beats BM25 on one-hop questions.", PASSAGES),
            ("The recipe needs two eggs and a cup of flour.", PASSAGES),
        ]
    )
    assert near.label == "supported"
    assert near.sentence
    assert near.sentence.facts.text == "Dense retrieval beats BM25 on questions of one hop."
    assert other.label == "not"


def test_a_claim_that_a_sentence_contradicts_is_not_supported(judge):
    claim = "Dense retrieval does not beat BM25 on questions of one hop."
    (verdict,) = judge.verdicts([(claim, PASSAGES)])
    assert verdict.label == "not"
    assert verdict.comparison.clash


def test_without_passages_nothing_is_supported(judge):
    cases = [("Boats float.", passages) for passages in ([], [""], ["  "])]
    verdicts = [(verdict.label, verdict.sentence) for verdict in judge.verdicts(cases)]
    assert verdicts == [("not", None)] * 3


def test_cases_together_have_the_verdicts_that_each_has_alone(judge):
    cases = [
        ("Dense retrieval beats BM25.", PASSAGES),
        ("Kites fly.", PASSAGES[1:]),
        ("Boats float.", []),
    ]
    alone = [judge.verdicts([case])[0].label for case in cases]
    assert [verdict.label for verdict in judge.verdicts(cases)] == alone
