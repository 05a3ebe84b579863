"""Retrieval of the sample corpus apart from any model: how often the gold passage is among those
shown.

experiments/answer_retrieval.py measures it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments import answer_retrieval as script
from pipeline.answering.questions import GoldClaim, PosedQuestion, Question
from pipeline.answering.stages import QUESTIONS
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.index.scored import Scored
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.settings import Settings, load_settings
from tests.unit.answering.asking import Tables, passage

PROJECT = Path(__file__).resolve().parents[3]

SETTINGS = Settings(answer_candidates=4, answer_passages=2, _env_file=None)  # type: ignore[call-arg]


def search(queries: Any, count: int) -> list[list[Any]]:
    """Finds passages 1, 2, 3 … for a question, and those of the numbers that any other query
    names.
    """
    named = [
        [int(word) for word in query.split() if word.isdigit()] or range(1, 9) for query in queries
    ]
    return [[Scored(passage(number), 1.0) for number in numbers][:count] for numbers in named]


def posed(*gold: int) -> PosedQuestion:
    """A question whose gold claims each name the passage that holds them."""
    claims = tuple(GoldClaim(claim=f"Fact {number}", paper="2403.00001") for number in gold)
    question = Question(
        id="q", question="What is there?", kind="summary", papers=("2403.00001",), claims=claims
    )
    return PosedQuestion(question, {place: (f"p{number}",) for place, number in enumerate(gold)})


def test_hops_show_what_was_not_shown_and_a_second_asks_for_what_is_missing() -> None:
    shelf = script.Shelf(search, Tables(), SETTINGS)
    told = script.asked(posed(1, 3, 7, 8), shelf).shown
    assert told[script.ONE] == told[script.FACTS] == [True, False, False, False]
    assert told[script.AGAIN] == [True, True, False, False]
    assert told[script.TWO] == [
        True,
        True,
        True,
        False,
    ]  # both that a hop shows, of three that are asked for
    assert told[script.EVERY] == [True, True, True, True]
    assert told[script.EACH] == [True, True, True, True]


def test_a_claim_without_a_known_passage_counts_nowhere() -> None:
    unknown = PosedQuestion(posed(1, 2).question, {0: ("p1",), 1: ()})
    assert script.asked(unknown, script.Shelf(search, Tables(), SETTINGS)).shown[script.ONE] == [
        True
    ]


@pytest.mark.faults
@pytest.mark.slow
def test_nine_of_ten_gold_claims_are_shown_after_two_hops_of_gold_queries(tmp_path: Path) -> None:
    place = Workspace(load_settings(data=tmp_path, max_questions=1000, _env_file=None))
    for month in ("2024-03", "2024-04", "2024-05"):
        for stage in (
            DUMP_MEMBERS,
            METADATA,
            PAPERS,
            PASSAGES,
            EMBEDDINGS,
            INDEX_RECEIPTS,
            QUESTIONS,
        ):
            run_stage(stage, place, month)
    told = script.measure(place)
    assert (len(told), sum(len(each.shown[script.ONE]) for each in told)) == (50, 212)
    shares = {way: script.share(told, way) for way in script.WAYS}
    assert shares[script.TWO] >= 0.9
    assert (
        shares[script.EVERY]
        >= shares[script.TWO]
        >= shares[script.AGAIN]
        >= shares[script.ONE]
        >= 0.5
    )
    assert shares[script.FACTS] > shares[script.ONE]
    assert any("of all gold claims" in line for line in script.lines(told))
