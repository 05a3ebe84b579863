"""Which passages of a cited work are found for a claim: by vectors and words, by words alone, or
the first ones.
"""

import numpy as np
import pytest

from pipeline import tables
from pipeline.evaluation.passages import among, search
from pipeline.index.exact import lexical_scores
from tests.month_tables import write_table
from tests.unit.evaluation.citation_support.building import (
    CITED_MONTH,
    WordEmbedder,
    embedding_rows,
    passage_rows,
)
from tests.unit.evaluation.made_up import workspace

ONE, TWO = "2401.00001", "2401.00002"
# The first shares the claim's words, the second what the vectors count.
TEXTS = ("Weighing minerals by colour.", "Quartz quartz and lantern.", "Our harbor holds ships.")


def corpus(folder, texts=TEXTS):
    work = workspace(folder)
    rows = [*passage_rows(ONE, texts), *passage_rows(TWO, texts)]
    write_table(work.root, tables.PASSAGES, CITED_MONTH, rows)
    return work


def found(
    work,
    claims,
    most=2,
    embedder=None,
):
    def make(settings):
        assert embedder is not None, "a model is loaded though there is nothing to compare"
        return embedder

    return search(work, claims, most, make)


def ordinals(result, arxiv_id, claim):
    return [passage.ordinal for passage in result.passages[arxiv_id, claim]]


def test_without_vectors_words_rank_and_no_model_is_loaded(tmp_path):
    result = found(corpus(tmp_path), {ONE: ["They weigh minerals.", "It has a harbor."]})
    assert ordinals(result, ONE, "They weigh minerals.") == [1, 2]
    assert ordinals(result, ONE, "It has a harbor.") == [3, 1]
    assert (result.by_both, result.by_words) == (0, 1)
    first = result.passages[ONE, "They weigh minerals."][0]
    assert (first.passage_id, first.anchor, first.text) == (f"{ONE}/1", "S1.p1", TEXTS[0])


def test_vectors_and_words_are_fused(tmp_path):
    """`quartz` is the one word of the claim that vectors count; `minerals` is in the first passage
    alone.
    """
    work = corpus(tmp_path, (*TEXTS, "Quartz is a harbor."))
    rows = work.root.rows(tables.PASSAGES, CITED_MONTH)
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, embedding_rows(rows))
    result = found(work, {ONE: ["minerals and quartz"]}, 3, WordEmbedder())
    by_words = lexical_scores([*TEXTS, "Quartz is a harbor."], ["minerals and quartz"])[0]
    assert int(np.argmax(by_words)) == 0
    assert ordinals(result, ONE, "minerals and quartz")[0] == 2
    assert (result.by_both, result.by_words) == (1, 0)


def test_a_paper_without_vectors_of_this_model_is_ranked_by_words_beside_one_that_has_them(
    tmp_path,
):
    work = corpus(tmp_path)
    rows = work.root.rows(tables.PASSAGES, CITED_MONTH)
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, embedding_rows(rows, model="another"))
    assert found(work, {ONE: ["quartz"]}).by_words == 1
    vectors = embedding_rows(row for row in rows if row["arxiv_id"] == TWO)
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, vectors)
    result = found(work, {ONE: ["harbor"], TWO: ["harbor"]}, 1, WordEmbedder())
    assert (result.by_both, result.by_words) == (1, 1)
    assert ordinals(result, ONE, "harbor") == ordinals(result, TWO, "harbor") == [3]


def test_front_matter_is_no_passage_and_markers_of_the_cited_work_are_not_shown(
    tmp_path,
):
    texts = (*TEXTS, "It follows others [@bib1; @bib2].")
    result = found(corpus(tmp_path, texts), {ONE: ["Quartz by Lovelace", "others"]}, 9)
    assert sorted(ordinals(result, ONE, "Quartz by Lovelace")) == [1, 2, 3, 4]
    assert result.passages[ONE, "others"][0].text == "It follows others."


def test_a_paper_that_is_not_there_is_missing_from_what_is_found(tmp_path):
    result = found(
        corpus(tmp_path), {"2401.00099": ["quartz"], "2301.00001": ["quartz"], "no id": ["quartz"]}
    )
    assert result.passages == {}


@pytest.mark.parametrize("claim", ["", "Zebras sing.", "the of and"])
def test_a_claim_that_shares_no_word_is_shown_the_beginning(claim):
    assert [each.ordinal for each in among(TEXTS, claim, 2)] == [0, 1]
    assert [each.ordinal for each in among(["---", "$$"], claim, 5)] == [0, 1]
    assert among([], claim, 5) == ()
