"""Rows of answers, through Parquet and back."""

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


@pytest.mark.parametrize(
    "answered",
    [
        plain_answer("It floats. It is blue."),
        replace(
            grounded("It floats.", [1, 2], [3]),
            trace={"steps": [{"stage": "query", "made": None, "found": ["é", 1, 0.5]}]},
            spent=Spent(2**40, 7, 5),
        ),
        Answer(ABSTAINED, (), (), ("one", "two"), ((), ()), hops=2, abstained=True),
        replace(grounded("It floats.", [1]), queries=(), hops=0),
    ],
)
def test_answers_at_the_edge_come_back_too(answered):
    row = answer_row("q1", Writer("direct", "a model"), answered, {"b": (1, 2), "a": "x"})
    assert row["settings"] == '{"a": "x", "b": [1, 2]}'
    stored = pa.Table.from_pylist([row], schema=tables.ANSWERS.schema)
    (back,) = stored.to_pylist(maps_as_pydicts="strict")
    assert answer_of_row(back) == answered
