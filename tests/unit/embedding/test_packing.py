"""Windows, packs, terms and positions, against what a loop over texts would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.packing import (
    TokenRows,
    Window,
    cut,
    distinct_terms,
    group_by_length,
    packs,
    positions,
    runs,
    text_windows,
)

pytestmark = pytest.mark.slow

ROWS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=1, max_size=12)
LEFT_OUT = {0, 2}


def rows_of(rows):
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(row) for row in rows])])
    return TokenRows(np.array([number for row in rows for number in row], dtype=np.int32), offsets)


def window_of(rows):
    tokens = rows_of(rows)
    return Window(
        tokens,
        positions(tokens, 1),
        distinct_terms(tokens, LEFT_OUT),
        np.zeros(len(rows), np.bool_),
    )


def _texts(pack):
    return [part.tolist() for part in np.split(pack.ids, pack.starts[1:-1])]


@given(rows=ROWS, budget=st.integers(1, 60))
def test_packs_hold_every_text_once_within_the_budget_and_slots_lead_to_terms(rows, budget):
    found = packs(window_of(rows), budget)
    assert sorted(place for pack in found for place in pack.places.tolist()) == list(
        range(len(rows))
    )
    for pack in found:
        assert _texts(pack) == [rows[place] for place in pack.places]
        assert pack.tokens <= budget or len(pack.places) == 1
        assert pack.longest == max(map(len, _texts(pack)))
        terms = [term for place in pack.places for term in sorted(set(rows[place]) - LEFT_OUT)]
        assert pack.terms == len(terms)
        assert [([*terms, None])[slot] for slot in pack.slots] == [
            None if number in LEFT_OUT else number for number in pack.ids.tolist()
        ]


@given(rows=ROWS)
def test_halves_are_the_pack_and_runs_its_neighbours_of_equal_length(rows):
    (pack,) = packs(window_of(rows), 1_000)
    found = runs(pack.starts)
    assert [length for _, texts, length in found for _ in range(texts)] == [
        len(text) for text in _texts(pack)
    ]
    assert len({length for *_, length in found}) == len(found)
    sizes = [texts * length for _, texts, length in found]
    assert [first for first, *_ in found] == [sum(sizes[:place]) for place in range(len(sizes))]
    if len(rows) == 1:
        with pytest.raises(ValueError, match="cannot be divided"):
            pack.halves()
        return
    one, other = pack.halves()
    assert _texts(one) + _texts(other) == _texts(pack)


@given(rows=ROWS)
def test_terms_are_each_texts_distinct_tokens_and_their_counts(rows):
    terms = distinct_terms(rows_of(rows), LEFT_OUT)
    for number, row in enumerate(rows):
        part = slice(terms.offsets[number], terms.offsets[number + 1])
        expected = {word: row.count(word) for word in sorted(set(row) - LEFT_OUT)}
        assert (
            dict(zip(terms.ids[part].tolist(), terms.counts[part].tolist(), strict=True))
            == expected
        )


@given(rows=ROWS)
def test_positions_are_those_of_xlm_roberta_or_those_of_bert_that_count_from_0(rows):
    import torch
    from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaEmbeddings

    found = positions(rows_of(rows), 1)
    theirs = [
        XLMRobertaEmbeddings.create_position_ids_from_input_ids(torch.tensor([row]), 1)[0]
        for row in rows
    ]
    assert found.tolist() == torch.cat(theirs).tolist()
    from_zero = positions(rows_of(rows), None)
    assert from_zero.tolist() == [place for row in rows for place in range(len(row))]


def test_equal_lengths_keep_their_order():
    groups = group_by_length(np.array([5, 50, 7, 50, 5], dtype=np.int64), 60)
    assert [group.tolist() for group in groups] == [[1], [3, 2], [0, 4]]
    assert group_by_length(np.empty(0, np.int64), 10) == []


@given(rows=ROWS, most=st.integers(2, 12))
def test_a_long_text_is_cut_before_its_last_token(rows, most):
    found, truncated = cut(rows_of(rows), most)
    expected = [row if len(row) <= most else [*row[: most - 1], row[-1]] for row in rows]
    assert found.ids.tolist() == [number for row in expected for number in row]
    assert truncated.tolist() == [len(row) > most for row in rows]


@given(st.lists(st.text(max_size=5), max_size=20), st.integers(1, 5), st.integers(1, 12))
def test_windows_are_the_texts(texts, most, chars):
    windows = list(text_windows(texts, most, chars))
    assert [text for window in windows for text in window] == texts
    for window in windows:
        assert 1 <= len(window) <= most
        assert sum(map(len, window[:-1])) < chars
