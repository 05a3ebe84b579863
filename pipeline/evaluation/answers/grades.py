"""Graded answers: verdicts on claims and gold claims, gold passages shown by hop, and the rows of `answer_grades`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from pipeline.answering.answer import Answer
from pipeline.answering.model_calls import NOTHING
from pipeline.answering.questions import Kind, Question
from pipeline.evaluation.answers.evidence import Evidence
from pipeline.evaluation.answers.splitting import Split
from pipeline.evaluation.citation_support.measures import FEWEST_QUOTED_WORDS
from pipeline.llm.client import Spent
from pipeline.storage.writing import Row
from pipeline.tables.writers import parse_writer, writer_name


@dataclass(frozen=True, slots=True)
class GoldShown:
    """Gold claims of one question, and the hop in which one of their passages was first shown.

    first_hop: for each claim that has a gold passage, by its place from 0, the hop from 1; None for never. without:
    places of claims of which no passage is known; they count nowhere. by_hop: share of the known ones shown after each
    hop, 0 to 1; empty where no claim has a passage.
    """

    first_hop: Mapping[int, int | None]
    without: tuple[int, ...]
    by_hop: tuple[float, ...]

    def shown_in(self, hop: int) -> list[int]:
        """Places of the claims that this hop was the first to show."""
        return [place for place, first in self.first_hop.items() if first == hop]


def gold_shown_by_hop(
    question: Question, answered: Answer, gold_passages: Mapping[int, Sequence[str]]
) -> GoldShown | None:
    """Which gold claims had one of their passages shown, after each hop; None for one that searched for nothing.

    gold_passages: place of a claim from 0 → ids of its passages, as `questions.gold_passages` gives it.
    """
    if not answered.shown and not answered.queries:
        return None
    hops = [{found.passage_id for found in hop} for hop in answered.shown] or [set()]
    known = {place: set(ids) for place in range(len(question.claims)) if (ids := gold_passages.get(place))}
    first = {place: _first(ids, hops) for place, ids in known.items()}
    by_hop = [
        sum(each is not None and each <= hop for each in first.values()) / len(first)
        for hop in range(1, len(hops) + 1)
        if first
    ]
    without = tuple(place for place in range(len(question.claims)) if place not in known)
    return GoldShown(first, without, tuple(by_hop))


def _first(wanted: set[str], hops: Sequence[set[str]]) -> int | None:
    return next((hop for hop, ids in enumerate(hops, 1) if wanted & ids), None)


ClaimVerdict = Literal["correct", "partly", "wrong", "not_checkable"]
GoldVerdict = Literal["held", "partly", "not"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
GOLD_VERDICTS: tuple[GoldVerdict, ...] = get_args(GoldVerdict)

# The arXivBot report says that partial points can be earned, and not how many: half a point is ours.
CLAIM_POINTS: Mapping[str, float] = {"correct": 1.0, "partly": 0.5, "wrong": 0.0, "not_checkable": 0.0}
GOLD_POINTS: Mapping[str, float] = {"held": 1.0, "partly": 0.5, "not": 0.0}

Outcome = Literal["answered", "abstained", "claims_nothing", "unreadable"]
"""abstained: the system said so. claims_nothing: it spoke and claimed nothing ("I do not know that paper").
unreadable: what the answer claims could not be read; what it holds may still be known."""


@dataclass(frozen=True, slots=True)
class ClaimGrade:
    """One claim of an answer. verdict is None where the judge's answer could not be read; `failure` says why.

    quoted: where the quote is, in the passage `passage_id` or in a gold claim; None where it is in neither.
    passages: ids of those that the judge was shown, best first. cut: whether there was too little room for
    all of these, of the gold claims and of the claim.
    """

    claim: str
    verdict: ClaimVerdict | None
    quote: str = ""
    quoted: Literal["passage", "gold"] | None = None
    passage_id: str | None = None
    passages: tuple[str, ...] = ()
    cut: bool = False
    failure: str | None = None
    spent: Spent = NOTHING

    @property
    def points(self) -> float | None:
        """Points of the verdict; None without one."""
        return None if self.verdict is None else CLAIM_POINTS[self.verdict]

    @property
    def evident(self) -> bool:
        """Whether the quote is where it should be, and is long enough to tell anything."""
        return self.quoted is not None and _is_long_enough(self.quote)


@dataclass(frozen=True, slots=True)
class GoldGrade:
    """One gold claim: whether the answer holds it. As `ClaimGrade`; the quote is of the answer, and what may
    have been cut is the answer or the gold claim."""

    claim: str
    verdict: GoldVerdict | None
    quote: str = ""
    quoted: bool = False
    cut: bool = False
    failure: str | None = None
    spent: Spent = NOTHING

    @property
    def points(self) -> float | None:
        """Points of the verdict; None without one."""
        return None if self.verdict is None else GOLD_POINTS[self.verdict]

    @property
    def evident(self) -> bool:
        """Whether the quote is where it should be, and is long enough to tell anything."""
        return self.quoted and _is_long_enough(self.quote)


def _is_long_enough(quote: str) -> bool:
    return len(quote.split()) >= FEWEST_QUOTED_WORDS


@dataclass(frozen=True, slots=True)
class Grade:
    """One system's answer to one question, as one judge graded it.

    date: of the newest of the question's papers, `YYYY-MM-DD` or `YYYY-MM`. claims: none where it abstained. gold: one
    for each gold claim, in their order. shown: None for a system that searched for nothing. spent: all grading,
    cached calls too.
    """

    question_id: str
    system: str
    judge: str
    kind: Kind
    date: str
    outcome: Outcome
    claims: tuple[ClaimGrade, ...]
    gold: tuple[GoldGrade, ...]
    shown: GoldShown | None
    split: Split

    @property
    def spent(self) -> Spent:
        return sum([claim.spent for claim in self.claims] + [each.spent for each in self.gold], self.split.spent)

    def failures(self) -> list[str]:
        """What could not be read, in words for the ledger."""
        parts = [f"a part of the answer: {failure}" for failure in self.split.failures]
        claims = [f"claim {n}: {each.failure}" for n, each in enumerate(self.claims, 1) if each.failure]
        gold = [f"gold claim {n}: {each.failure}" for n, each in enumerate(self.gold, 1) if each.failure]
        return [*parts, *claims, *gold]


def grade_row(grade: Grade, evidence: Evidence) -> Row:
    """The row of one grade; evidence: what the judge was shown, which is kept with each claim."""
    shown = grade.shown
    return {
        "question_id": grade.question_id,
        **parse_writer(grade.system).columns,
        "judge": grade.judge,
        "kind": grade.kind,
        "date": grade.date,
        "outcome": grade.outcome,
        "claims": [_claim(claim, evidence.get((grade.question_id, claim.claim), ())) for claim in grade.claims],
        "gold": [_gold(each, place, shown) for place, each in enumerate(grade.gold)],
        "hops_shown": None if shown is None else list(shown.by_hop),
        "parts": grade.split.parts,
        "parts_full": grade.split.full,
        "parts_cut": grade.split.cut,
        "split_failures": list(grade.split.failures),
        **asdict(grade.spent),
    }


def _claim(grade: ClaimGrade, evidence: Sequence[Any]) -> dict[str, Any]:
    return {
        "claim": grade.claim,
        "verdict": grade.verdict,
        "quote": grade.quote,
        "quoted": grade.quoted,
        "passage_id": grade.passage_id,
        "passages": [
            {"passage_id": each.passage_id, "anchor": each.anchor, "text": each.with_heading()}
            for each in evidence
            if each.passage_id in grade.passages
        ],
        "cut": grade.cut,
        "failure": grade.failure,
    }


def _gold(grade: GoldGrade, place: int, shown: GoldShown | None) -> dict[str, Any]:
    return {
        "claim": grade.claim,
        "verdict": grade.verdict,
        "quote": grade.quote,
        "quoted": grade.quoted,
        "cut": grade.cut,
        "failure": grade.failure,
        "shown_in_hop": None if shown is None else shown.first_hop.get(place),
        "has_passage": shown is not None and place in shown.first_hop,
    }


def grade_of(row: Row) -> Grade:
    """The grade of a row. What each verdict cost by itself is not kept: the sum is recorded with the split."""
    return Grade(
        question_id=row["question_id"],
        system=writer_name(row),
        judge=row["judge"],
        kind=row["kind"],
        date=row["date"],
        outcome=row["outcome"],
        claims=tuple(_claim_of(each) for each in row["claims"]),
        gold=tuple(
            GoldGrade(each["claim"], each["verdict"], each["quote"], each["quoted"], each["cut"], each["failure"])
            for each in row["gold"]
        ),
        shown=_shown_of(row),
        split=Split(
            claims=tuple(each["claim"] for each in row["claims"]),
            parts=row["parts"],
            full=row["parts_full"],
            cut=row["parts_cut"],
            failures=tuple(row["split_failures"]),
            spent=Spent(row["calls"], row["prompt_tokens"], row["completion_tokens"]),
        ),
    )


def _claim_of(each: Mapping[str, Any]) -> ClaimGrade:
    passages = tuple(passage["passage_id"] for passage in each["passages"])
    return ClaimGrade(
        each["claim"], each["verdict"], each["quote"], each["quoted"], each["passage_id"], passages, each["cut"],
        each["failure"],
    )  # fmt: skip


def _shown_of(row: Row) -> GoldShown | None:
    if row["hops_shown"] is None:
        return None
    gold = list(enumerate(row["gold"]))
    return GoldShown(
        first_hop={place: each["shown_in_hop"] for place, each in gold if each["has_passage"]},
        without=tuple(place for place, each in gold if not each["has_passage"]),
        by_hop=tuple(row["hops_shown"]),
    )
