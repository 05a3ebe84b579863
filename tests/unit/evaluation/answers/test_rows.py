"""Rows of answers and of grades, through Parquet and back."""

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
    Claim,
    Sentence,
    Source,
    answer_of_row,
    answer_row,
    plain_answer,
)
from pipeline.answering.questions import KINDS
from pipeline.answering.retrieval import RetrievedPassage
from pipeline.evaluation.answers.evidence import Passage
from pipeline.evaluation.answers.grades import (
    CLAIM_VERDICTS,
    GOLD_VERDICTS,
    ClaimGrade,
    GoldGrade,
    GoldShown,
    Grade,
    Outcome,
    grade_of,
    grade_row,
)
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.splitting import Split
from pipeline.llm.client import Spent
from pipeline.tables.writers import Writer
from tests.unit.evaluation.answers.graded import grade, grounded

pytestmark = pytest.mark.slow

# Half of a surrogate pair reaches no row: the transport mends it, see tests/unit/answering/test_stages.py.
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
def founds(draw: st.DrawFn, number: int) -> RetrievedPassage:
    path = tuple(draw(st.lists(TEXT, max_size=2)))
    return RetrievedPassage(f"p{number}", draw(TEXT), draw(TEXT), path, draw(TEXT), draw(TEXT), draw(TEXT), "2024-03")


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """What a system can hand over: an entry of `shown` for each hop, and one where WikiChat did not search."""
    sizes = draw(st.lists(st.integers(0, 3), max_size=3))
    numbers = iter(range(100))
    shown = tuple(tuple(draw(founds(next(numbers))) for _ in range(size)) for size in sizes)
    there = [(hop, passage) for hop, passages in enumerate(shown, 1) for passage in passages]
    hops = 0 if len(shown) == 1 and there and draw(st.booleans()) else len(shown)
    rests = draw(st.lists(st.sampled_from(there), max_size=4)) if there else []
    claims = tuple(
        Claim(n, draw(TEXT), each.passage_id, each.arxiv_id, each.anchor, hop, draw(st.sampled_from(get_args(Source))))
        for n, (hop, each) in enumerate(rests, 1)
    )
    some = st.lists(st.integers(1, len(claims)), min_size=1, max_size=3).map(tuple) if claims else st.just(())
    sentences = tuple(draw(st.lists(st.builds(Sentence, TEXT, some), max_size=3)))
    leaf = st.one_of(TEXT, st.booleans(), st.none(), st.integers(-5, 5), st.floats(0, 1))
    steps = draw(st.lists(st.dictionaries(TEXT, st.one_of(leaf, st.lists(leaf, max_size=2)), max_size=2), max_size=2))
    spent = Spent(draw(NUMBER), draw(NUMBER), draw(NUMBER))
    queries = tuple(draw(TEXT) for _ in range(hops))
    return Answer(
        draw(TEXT), sentences, claims, queries, shown, hops, draw(st.booleans()), {"steps": steps}, spent
    )  # fmt: skip


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


def test_a_row_whose_claim_rests_on_what_was_not_shown_is_no_answer() -> None:
    row = answer_row("q1", Writer("arxivbot"), grounded("It floats.", [1]), {})
    row["shown"][0]["passage_id"] = "p7"
    with pytest.raises(ValueError, match="not retrieved: p1"):
        answer_of_row(row)


def test_the_settings_of_a_row_are_sorted_json() -> None:
    row = answer_row("q1", Writer("direct"), plain_answer("Yes."), {"b": (1, 2), "a": "x"})
    assert row["settings"] == '{"a": "x", "b": [1, 2]}'
    assert json.loads(row["trace"]) == {"steps": []}


PASSAGES = tuple(Passage(f"p{n}", "2403.00001", f"S{n}", f"Heading {n}", f"Text {n}.") for n in range(4))


@st.composite
def claim_grades(draw: st.DrawFn, text: str) -> ClaimGrade:
    shown = tuple(
        draw(st.lists(st.sampled_from([passage.passage_id for passage in PASSAGES]), unique=True, max_size=3))
    )
    quoted = draw(st.sampled_from(["passage", "gold", None]))
    verdict = draw(st.sampled_from([*CLAIM_VERDICTS, None]))
    place = draw(st.sampled_from(["p0", None]))
    return ClaimGrade(text, verdict, draw(TEXT), quoted, place, shown, draw(st.booleans()), draw(st.none() | TEXT))


@st.composite
def grades(draw: st.DrawFn) -> Grade:
    claims = tuple(draw(claim_grades(f"Claim {n}.")) for n in range(draw(st.integers(0, 3))))
    gold = tuple(
        GoldGrade(
            f"Fact {n}.", draw(st.sampled_from([*GOLD_VERDICTS, None])), draw(TEXT), draw(st.booleans()),
            draw(st.booleans()), draw(st.none() | TEXT),
        )
        for n in range(draw(st.integers(1, 3)))
    )  # fmt: skip
    known = sorted(draw(st.sets(st.integers(0, len(gold) - 1))))
    hops = draw(st.integers(1, 3))
    first = {place: draw(st.none() | st.integers(1, hops)) for place in known}
    by_hop = tuple(draw(st.floats(0, 1)) for _ in range(hops)) if known else ()
    without = tuple(place for place in range(len(gold)) if place not in known)
    shown = draw(st.sampled_from([None, GoldShown(first, without, by_hop)]))
    texts = tuple(claim.claim for claim in claims)
    failures = tuple(draw(st.lists(TEXT, max_size=2)))
    split = Split(texts, draw(st.integers(0, 9)), 1, 2, failures, Spent(draw(NUMBER), draw(NUMBER), draw(NUMBER)))
    outcome = draw(st.sampled_from(get_args(Outcome)))
    kind = draw(st.sampled_from(KINDS))
    return Grade("q1", draw(TEXT), draw(TEXT), kind, "2024-03-07", outcome, claims, gold, shown, split)


def evidence_of(grade: Grade) -> dict[tuple[str, str], tuple[Passage, ...]]:
    by_id = {passage.passage_id: passage for passage in PASSAGES}
    return {(grade.question_id, claim.claim): tuple(by_id[i] for i in claim.passages) for claim in grade.claims}


def grade_again(graded: Grade) -> Grade:
    return grade_of(through_parquet(dict(grade_row(graded, evidence_of(graded))), tables.ANSWER_GRADES))


@given(grades())
def test_a_grade_comes_back_from_its_row_as_it_was(graded: Grade) -> None:
    assert grade_again(graded) == graded
    assert answer_measures(grade_again(graded)) == answer_measures(graded)


def test_a_row_has_the_whole_cost_of_its_verdicts_and_a_claims_passages_with_their_words_best_first() -> None:
    spent = Spent(1, 10, 2)
    priced = replace(
        grade(),
        claims=(ClaimGrade("It floats.", "correct", passages=("p2", "p0"), spent=spent),),
        gold=(GoldGrade("It floats.", "held", spent=spent),),
        split=Split(("It floats.",), spent=spent),
    )
    assert grade_again(priced).spent == priced.spent == Spent(3, 30, 6)
    row = through_parquet(dict(grade_row(priced, evidence_of(priced))), tables.ANSWER_GRADES)
    assert [each["passage_id"] for each in row["claims"][0]["passages"]] == ["p2", "p0"]
    assert row["claims"][0]["passages"][0]["text"] == "Heading 2\nText 2."
