"""Grades of answers, which are rows of `answer_grades`: verdicts with their points, and gold
passages shown by hop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pipeline import tables
from pipeline.answering.answer import Answer
from pipeline.answering.questions import Question
from pipeline.evaluation.citation_support.measures import FEWEST_QUOTED_WORDS
from pipeline.storage.data_root import DataRoot
from pipeline.tables.writers import writer_name

Grade = Mapping[str, Any]
"""A row of `answer_grades`, with its writer's name as `system` where systems are compared."""

ClaimVerdict = Literal["correct", "partly", "wrong", "not_checkable"]
GoldVerdict = Literal["held", "partly", "not"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
GOLD_VERDICTS: tuple[GoldVerdict, ...] = get_args(GoldVerdict)

# The arXivBot report says that partial points can be earned, and not how many: half a point is
# ours.
CLAIM_POINTS: Mapping[str, float] = {
    "correct": 1.0,
    "partly": 0.5,
    "wrong": 0.0,
    "not_checkable": 0.0,
}
GOLD_POINTS: Mapping[str, float] = {"held": 1.0, "partly": 0.5, "not": 0.0}

Outcome = Literal["answered", "abstained", "claims_nothing", "unreadable"]
"""abstained: the system said so. claims_nothing: it spoke and claimed nothing ("I do not know that
paper").
unreadable: what the answer claims could not be read; what it holds may still be known.
"""


def read_grades(root: DataRoot, month: str) -> list[Grade]:
    """The grades of a month with their writers' names; none where nothing was graded.

    The passages that judges were shown are left out: they are most of a month, and no measure reads
    them. Raises as `DataRoot.iterate` does.
    """
    if not root.file(tables.ANSWER_GRADES, month).exists():
        return []
    return [
        {
            **row,
            "system": writer_name(row),
            "model": None,
            "claims": [{**claim, "passages": ()} for claim in row["claims"]],
        }
        for row in root.iterate(tables.ANSWER_GRADES, month)
    ]


def is_evident(claim: Mapping[str, Any]) -> bool:
    """Whether the quote of a claim or gold claim is where it should be, and is long enough to tell
    anything.
    """
    return bool(claim["quoted"]) and len(claim["quote"].split()) >= FEWEST_QUOTED_WORDS


def failures(grade: Grade) -> list[str]:
    """What could not be read, in words for the ledger."""
    parts = [f"a part of the answer: {failure}" for failure in grade["split_failures"]]
    claims = [
        f"claim {n}: {claim['failure']}"
        for n, claim in enumerate(grade["claims"], 1)
        if claim["failure"]
    ]
    gold = [
        f"gold claim {n}: {claim['failure']}"
        for n, claim in enumerate(grade["gold"], 1)
        if claim["failure"]
    ]
    return [*parts, *claims, *gold]


def gold_shown_by_hop(
    question: Question, answered: Answer, gold_passages: Mapping[int, Sequence[str]]
) -> tuple[list[float] | None, dict[int, int | None]]:
    """Which gold claims had one of their passages shown: the share of them after each hop, and the
    first hop of each.

    gold_passages: place of a claim from 0 → ids of its passages, as `questions.gold_passages` gives
    it. The shares are of the claims that have passages: None for an answer that searched for
    nothing, empty where no claim has any. The hops are from 1, by the claim's place; None for
    never.
    """
    if not answered.shown and not answered.queries:
        return None, {}
    hops = [{passage.passage_id for passage in hop} for hop in answered.shown] or [set()]
    known = {
        place: set(ids)
        for place in range(len(question.claims))
        if (ids := gold_passages.get(place))
    }
    first = {
        place: next((hop for hop, shown in enumerate(hops, 1) if ids & shown), None)
        for place, ids in known.items()
    }
    shares = [
        sum(first_hop is not None and first_hop <= hop for first_hop in first.values()) / len(first)
        for hop in range(1, len(hops) + 1)
        if first
    ]
    return shares, first
