"""Lexical vectors: which words count, their numbers, and weights that make BM25 of a dot
product.
"""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.lexical import (
    K1,
    B,
    abbreviations_of,
    lexical_query,
    lexical_rows,
    long_forms_in,
    term_id,
    terms_of,
    words_of,
)
from pipeline.index.exact import lexical_scores
from tests.cases import cases_beside


@cases_beside("text", "words")
def test_words_of_two_letters_count_in_lower_case_without_accents_and_stop_words(text, words):
    assert words_of(text) == words


@cases_beside("text", "terms")
def test_terms_tell_apart_what_words_do_not(text, terms):
    words = words_of(text)
    assert terms_of(text)[: len(words)] == words
    assert set(terms) <= set(terms_of(text)) <= {*terms, *words}


def test_inflected_words_share_a_number_that_is_the_same_everywhere():
    assert term_id("retrieval") == term_id("retrieve") == term_id("retrieved") == 1434867200
    assert term_id("retriever") != term_id("retina")


def test_scores_are_lucenes_bm25():
    texts = [
        "quartz quartz lantern",
        "lantern harbor",
        "meadow violin copper lantern",
        "quartz harbor",
    ]
    documents = [text.split() for text in texts]
    queries = ["quartz", "lantern harbor", "copper quartz lantern quartz"]
    expected = []
    for query in queries:
        scores = []
        for document in documents:
            counts, total = Counter(document), 0.0
            for word in query.split():
                having = sum(word in other for other in documents)
                inverse = math.log(1 + (4 - having + 0.5) / (having + 0.5))
                total += (
                    inverse * counts[word] / (counts[word] + K1 * (1 - B + B * len(document) / 150))
                )
            scores.append(total)
        expected.append(scores)
    np.testing.assert_allclose(lexical_scores(texts, queries), expected, rtol=1e-5)


def test_a_text_without_words_has_no_terms():
    rows = lexical_rows(["", "the", "words"])
    assert rows.lengths.tolist() == [0, 0, 1]
    assert len(lexical_query("?!").ids) == 0
    assert lexical_scores(["", "words"], ["?!"]).tolist() == [[0.0, 0.0]]
    assert lexical_scores([], ["words"]).shape == (1, 0)


@given(st.lists(st.text(max_size=60), max_size=4))
def test_ids_ascend_and_weights_are_numbers_whatever_the_text(texts):
    rows = lexical_rows(texts)
    assert len(rows) == len(texts)
    for number in range(len(texts)):
        vector = rows.row(number)
        assert (np.diff(vector.ids.astype(np.int64)) > 0).all()
        assert ((vector.weights > 0) & (vector.weights < 1)).all()


@cases_beside("text", "abbreviations")
def test_an_abbreviation_is_defined(text, abbreviations):
    assert dict(abbreviations_of(text)) == abbreviations


def test_a_text_with_an_abbreviation_gets_its_long_form_once():
    abbreviations = {"SR": "Sharpe ratio", "P EM": "Passage Exact Match", "LLM": "language model"}
    text = "| model | SR | P EM | LLMs |"
    assert [*long_forms_in(text, abbreviations)] == [*abbreviations.values()]
    assert [*long_forms_in("SRAM and P EMs of an LLMS", {"SR": "Sharpe ratio"})] == []
    plain, added = (
        lexical_rows([text], additions=additions).row(0) for additions in (None, ["Sharpe model"])
    )
    assert {*added.ids} == {*plain.ids} | {term_id("sharpe")}
    known = np.isin(added.ids, plain.ids)
    assert added.weights[known].tolist() == plain.weights.tolist()
