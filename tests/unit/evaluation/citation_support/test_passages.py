"""Which passages of a cited work are found for a claim: by vectors and words, by words alone, or
the first ones.
"""

import pytest

from pipeline import tables
from pipeline.evaluation.passages import EvidencePassage, among, search
from tests.cases import cases
from tests.month_tables import write_table
from tests.unit.evaluation.citation_support.building import (
    CITED_MONTH,
    WordEmbedder,
    embedding_rows,
    passage_rows,
)
from tests.workspaces import make_workspace

ONE, TWO = "2401.00001", "2401.00002"
TEXTS = (
    "Weighing minerals by colour.",
    "Quartz quartz and lantern.",
    "Our harbor holds ships.",
    "Quartz is a harbor, like others [@bib1; @bib2].",
)


def found(folder, claims, most=2, vectors_of=(), **model):
    """The result of a search of two papers."""

    def make(settings):
        assert vectors_of, "a model is loaded though there is nothing to compare"
        return WordEmbedder()

    work = make_workspace(folder)
    rows = [*passage_rows(ONE, TEXTS), *passage_rows(TWO, TEXTS)]
    write_table(work.root, tables.PASSAGES, CITED_MONTH, rows)
    embedded = [row for row in rows if row["arxiv_id"] in vectors_of]
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, embedding_rows(embedded, **model))
    return search(work, claims, most, make)


def ordinals(passages):
    return [passage.ordinal for passage in passages]


@cases("unit/evaluation/citation_support/passages.toml")
def test_passages_are_ranked_by_vectors_and_words_where_a_paper_has_them(tmp_path, case):
    passages, ranked = case.pop("passages"), case.pop("ranked")
    result = found(tmp_path, **case)
    assert [result.by_both, result.by_words] == ranked
    best = {(paper, claim) for paper, claims in case["claims"].items() for claim in claims}
    assert result.passages.keys() == {pair for pair in best if pair[0] in passages}
    for paper, expected in passages.items():
        of_claims = [result.passages[paper, claim] for claim in case["claims"][paper]]
        pairs = zip(of_claims, expected, strict=True)
        assert [ordinals(each)[: len(first)] for each, first in pairs] == expected


def test_front_matter_is_no_passage_and_markers_of_the_cited_work_are_not_shown(tmp_path):
    claim = "Quartz by Lovelace, like others"
    shown = found(tmp_path, {ONE: [claim]}, 9).passages[ONE, claim]
    assert sorted(ordinals(shown)) == [1, 2, 3, 4]
    text = "Quartz is a harbor, like others."
    assert shown[0] == EvidencePassage(text, 4, f"{ONE}/4", ONE, "S1.p4", "")


@pytest.mark.parametrize("claim", ["", "Zebras sing.", "the of and"])
def test_a_claim_that_shares_no_word_is_shown_the_beginning(claim):
    assert ordinals(among(TEXTS, claim, 2)) == [0, 1]
    assert ordinals(among(["---", "$$"], claim, 5)) == [0, 1]
    assert among([], claim, 5) == ()
