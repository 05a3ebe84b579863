"""Rows of answers, through Parquet and back."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from pipeline import tables
from pipeline.answering.answer import ABSTAINED, answer_of_row, answer_row, plain_answer
from pipeline.corpus.nouns import Answer
from pipeline.llm.messages import Spent
from pipeline.tables.writers import Writer
from tests.unit.evaluation.answers.graded import grounded

pytestmark = pytest.mark.slow


def through_parquet(row, table):
    """A row as it comes back from the table."""
    (back,) = pa.Table.from_pylist([row], schema=table.schema).to_pylist(maps_as_pydicts="strict")
    return dict(back)


def answer_again(answered):
    row = answer_row("q1", Writer("direct", "a model"), answered, {"answer_tokens": 9})
    return answer_of_row(through_parquet(row, tables.ANSWERS))


@pytest.mark.parametrize(
    "answered",
    [
        plain_answer(""),
        plain_answer("It floats. It is blue."),
        replace(
            grounded("It floats.", [1, 2], [3]),
            trace={"steps": [{"stage": "query", "made": None, "found": ["é", 1, 0.5]}]},
            spent=Spent(2**40, 7, 5),
        ),
        Answer(ABSTAINED, (), (), ("a query",), ((),), hops=1, abstained=True),
        Answer(ABSTAINED, (), (), ("one", "two"), ((), ()), hops=2, abstained=True),
        replace(grounded("It floats.", [1]), queries=(), hops=0),
    ],
)
def test_answers_at_the_edge_come_back_too(answered):
    assert answer_again(answered) == answered


def test_the_settings_of_a_row_are_sorted_json():
    row = answer_row("q1", Writer("direct"), plain_answer("Yes."), {"b": (1, 2), "a": "x"})
    assert row["settings"] == '{"a": "x", "b": [1, 2]}'
    assert json.loads(row["trace"]) == {"steps": []}
