"""Rows of answers, through Parquet and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import tables
from pipeline.answering.answer import (
    ABSTAINED,
    Answer,
    AnswerSentence,
    Claim,
    ClaimOrigin,
    answer_of_row,
    answer_row,
    plain_answer,
)
from pipeline.corpus.passage import Passage
from pipeline.llm.client import Spent
from pipeline.tables.writers import Writer
from tests.unit.evaluation.answers.graded import grounded

pytestmark = pytest.mark.slow

# Half of a surrogate pair reaches no row: the transport mends it, see
# tests/unit/answering/test_stages.py.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(0, 2**40)


def through_parquet(row: dict[str, Any], table: tables.Table) -> dict[str, Any]:
    """A row as it comes back from the table."""
    (back,) = pa.Table.from_pylist([row], schema=table.schema).to_pylist(maps_as_pydicts="strict")
    return dict(back)


def answer_again(answered: Answer) -> Answer:
    row = answer_row("q1", Writer("direct", "a model"), answered, {"answer_tokens": 9})
    return answer_of_row(through_parquet(row, tables.ANSWERS))


@st.composite
def founds(draw: st.DrawFn, number: int) -> Passage:
    path = tuple(draw(st.lists(TEXT, max_size=2)))
    return Passage(f"p{number}", draw(TEXT), draw(TEXT), draw(TEXT), draw(TEXT), path, draw(TEXT))


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """What a system can hand over: an entry of `shown` for each hop, and one where WikiChat did not
    search.
    """
    sizes = draw(st.lists(st.integers(0, 3), max_size=3))
    numbers = iter(range(100))
    shown = tuple(tuple(draw(founds(next(numbers))) for _ in range(size)) for size in sizes)
    there = [(hop, passage) for hop, passages in enumerate(shown, 1) for passage in passages]
    hops = 0 if len(shown) == 1 and there and draw(st.booleans()) else len(shown)
    rests = draw(st.lists(st.sampled_from(there), max_size=4)) if there else []
    claims = tuple(
        Claim(
            n,
            draw(TEXT),
            each.passage_id,
            each.arxiv_id,
            each.anchor,
            hop,
            draw(st.sampled_from(get_args(ClaimOrigin))),
        )
        for n, (hop, each) in enumerate(rests, 1)
    )
    some = (
        st.lists(st.integers(1, len(claims)), min_size=1, max_size=3).map(tuple)
        if claims
        else st.just(())
    )
    sentences = tuple(draw(st.lists(st.builds(AnswerSentence, TEXT, some), max_size=3)))
    leaf = st.one_of(TEXT, st.booleans(), st.none(), st.integers(-5, 5), st.floats(0, 1))
    steps = draw(
        st.lists(
            st.dictionaries(TEXT, st.one_of(leaf, st.lists(leaf, max_size=2)), max_size=2),
            max_size=2,
        )
    )
    spent = Spent(draw(NUMBER), draw(NUMBER), draw(NUMBER))
    queries = tuple(draw(TEXT) for _ in range(hops))
    return Answer(
        draw(TEXT),
        sentences,
        claims,
        queries,
        shown,
        hops,
        draw(st.booleans()),
        {"steps": steps},
        spent,
    )


@given(answers())
def test_an_answer_comes_back_from_its_row_as_it_was(answered: Answer) -> None:
    assert answer_again(answered) == answered


@pytest.mark.parametrize(
    "answered",
    [
        plain_answer(""),
        plain_answer("It floats. It is blue."),
        grounded("It floats.", [1, 2], [3]),
        Answer(ABSTAINED, (), (), ("a query",), ((),), hops=1, abstained=True),
        Answer(ABSTAINED, (), (), ("one", "two"), ((), ()), hops=2, abstained=True),
        replace(grounded("It floats.", [1]), queries=(), hops=0),
    ],
)
def test_answers_at_the_edge_come_back_too(answered: Answer) -> None:
    assert answer_again(answered) == answered


def test_the_settings_of_a_row_are_sorted_json() -> None:
    row = answer_row("q1", Writer("direct"), plain_answer("Yes."), {"b": (1, 2), "a": "x"})
    assert row["settings"] == '{"a": "x", "b": [1, 2]}'
    assert json.loads(row["trace"]) == {"steps": []}
