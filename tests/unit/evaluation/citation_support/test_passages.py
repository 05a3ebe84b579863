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
from tests.workspaces import make_workspace

ONE, TWO = "2401.00001", "2401.00002"
# The first shares the claim's words, the second what the vectors count.
TEXTS = ("Weighing minerals by colour.", "Quartz quartz and lantern.", "Our harbor holds ships.")
MORE = (*TEXTS, "Quartz is a harbor, like others [@bib1; @bib2].")


def found(folder, claims, most=2, *, texts=TEXTS, vectors_of=(), **model):
    """A search of two papers: (paper, claim) → its passages, and how many works were ranked by
    vectors and words, and by words. vectors_of: papers that have vectors; without them, no model
    may be loaded.
    """

    def make(settings):
        assert vectors_of, "a model is loaded though there is nothing to compare"
        return WordEmbedder()

    work = make_workspace(folder)
    rows = [*passage_rows(ONE, texts), *passage_rows(TWO, texts)]
    write_table(work.root, tables.PASSAGES, CITED_MONTH, rows)
    embedded = [row for row in rows if row["arxiv_id"] in vectors_of]
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, embedding_rows(embedded, **model))
    result = search(work, claims, most, make)
    return result.passages, (result.by_both, result.by_words)


def ordinals(passages):
    return [passage.ordinal for passage in passages]


def test_without_vectors_words_rank_and_no_model_is_loaded(tmp_path):
    claims = "They weigh minerals.", "It has a harbor."
    passages, ranked = found(tmp_path, {ONE: claims, "no id": ["It."]})
    assert [ordinals(passages[ONE, claim]) for claim in claims] == [[1, 2], [3, 1]]
    assert ranked == (0, 1)
    first = passages[ONE, claims[0]][0]
    assert (first.passage_id, first.anchor, first.text) == (f"{ONE}/1", "S1.p1", TEXTS[0])
    absent = {"2401.00099": ["quartz"], "2301.00001": ["quartz"], "no id": ["quartz"]}
    assert found(tmp_path, absent) == ({}, (0, 0))


def test_vectors_and_words_are_fused(tmp_path):
    """`quartz` is the one word of the claim that vectors count; `minerals` is in the first passage
    alone.
    """
    claim = "minerals and quartz"
    passages, ranked = found(tmp_path, {ONE: [claim]}, 3, texts=MORE, vectors_of=(ONE, TWO))
    assert int(np.argmax(lexical_scores(MORE, [claim])[0])) == 0
    assert (ordinals(passages[ONE, claim])[0], ranked) == (2, (1, 0))


def test_a_paper_without_vectors_of_this_model_is_ranked_by_words_beside_one_that_has_them(
    tmp_path,
):
    claims = {ONE: ["harbor"], TWO: ["harbor"]}
    assert found(tmp_path, claims, vectors_of=(ONE,), model="another")[1] == (0, 2)
    passages, ranked = found(tmp_path, claims, 1, vectors_of=(TWO,))
    assert ([*map(ordinals, passages.values())], ranked) == ([[3], [3]], (1, 1))


def test_front_matter_is_no_passage_and_markers_of_the_cited_work_are_not_shown(tmp_path):
    claims = {ONE: ["Quartz by Lovelace", "others"]}
    by_lovelace, others = found(tmp_path, claims, 9, texts=MORE)[0].values()
    assert sorted(ordinals(by_lovelace)) == [1, 2, 3, 4]
    assert others[0].text == "Quartz is a harbor, like others."


@pytest.mark.parametrize("claim", ["", "Zebras sing.", "the of and"])
def test_a_claim_that_shares_no_word_is_shown_the_beginning(claim):
    assert ordinals(among(TEXTS, claim, 2)) == [0, 1]
    assert ordinals(among(["---", "$$"], claim, 5)) == [0, 1]
    assert among([], claim, 5) == ()
