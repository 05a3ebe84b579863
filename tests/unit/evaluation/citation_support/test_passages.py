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


def found(folder, claims, most=2, *, texts=TEXTS, vectors_of=(), model=None):
    """A search of two papers. vectors_of: papers that have vectors, by this model; without them, no
    model may be loaded.
    """

    def make(settings):
        assert vectors_of, "a model is loaded though there is nothing to compare"
        return WordEmbedder()

    work = workspace(folder)
    rows = [*passage_rows(ONE, texts), *passage_rows(TWO, texts)]
    write_table(work.root, tables.PASSAGES, CITED_MONTH, rows)
    embedded = [row for row in rows if row["arxiv_id"] in vectors_of]
    by_model = embedding_rows(embedded, model) if model else embedding_rows(embedded)
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, by_model)
    return search(work, claims, most, make)


def ordinals(result, arxiv_id, claim):
    return [passage.ordinal for passage in result.passages[arxiv_id, claim]]


def test_without_vectors_words_rank_and_no_model_is_loaded(tmp_path):
    result = found(tmp_path, {ONE: ["They weigh minerals.", "It has a harbor."], "no id": ["It."]})
    assert ordinals(result, ONE, "They weigh minerals.") == [1, 2]
    assert ordinals(result, ONE, "It has a harbor.") == [3, 1]
    assert (result.by_both, result.by_words) == (0, 1)
    first = result.passages[ONE, "They weigh minerals."][0]
    assert (first.passage_id, first.anchor, first.text) == (f"{ONE}/1", "S1.p1", TEXTS[0])
    absent = {"2401.00099": ["quartz"], "2301.00001": ["quartz"], "no id": ["quartz"]}
    assert found(tmp_path, absent).passages == {}


def test_vectors_and_words_are_fused(tmp_path):
    """`quartz` is the one word of the claim that vectors count; `minerals` is in the first passage
    alone.
    """
    texts, claim = (*TEXTS, "Quartz is a harbor."), "minerals and quartz"
    result = found(tmp_path, {ONE: [claim]}, 3, texts=texts, vectors_of=(ONE, TWO))
    assert int(np.argmax(lexical_scores(texts, [claim])[0])) == 0
    assert ordinals(result, ONE, claim)[0] == 2
    assert (result.by_both, result.by_words) == (1, 0)


def test_a_paper_without_vectors_of_this_model_is_ranked_by_words_beside_one_that_has_them(
    tmp_path,
):
    claims = {ONE: ["harbor"], TWO: ["harbor"]}
    assert found(tmp_path, claims, vectors_of=(ONE,), model="another").by_words == 2
    result = found(tmp_path, claims, 1, vectors_of=(TWO,))
    assert (result.by_both, result.by_words) == (1, 1)
    assert ordinals(result, ONE, "harbor") == ordinals(result, TWO, "harbor") == [3]


def test_front_matter_is_no_passage_and_markers_of_the_cited_work_are_not_shown(tmp_path):
    texts = (*TEXTS, "It follows others [@bib1; @bib2].")
    result = found(tmp_path, {ONE: ["Quartz by Lovelace", "others"]}, 9, texts=texts)
    assert sorted(ordinals(result, ONE, "Quartz by Lovelace")) == [1, 2, 3, 4]
    assert result.passages[ONE, "others"][0].text == "It follows others."


@pytest.mark.parametrize("claim", ["", "Zebras sing.", "the of and"])
def test_a_claim_that_shares_no_word_is_shown_the_beginning(claim):
    assert [each.ordinal for each in among(TEXTS, claim, 2)] == [0, 1]
    assert [each.ordinal for each in among(["---", "$$"], claim, 5)] == [0, 1]
    assert among([], claim, 5) == ()
