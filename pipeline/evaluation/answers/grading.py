"""Grading of answers: split all of them, look up evidence for all claims, judge all.

Three steps, since evidence is looked up between calls and may block: `split_all`, `evidence`
(`evidence_for` of each question), `judge_all`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from pipeline.answering.answer import Answer
from pipeline.answering.questions import Question
from pipeline.corpus.passages.text import text_digest
from pipeline.evaluation.answers.grades import Outcome, gold_shown_by_hop
from pipeline.evaluation.answers.splitting import Split, split_answer
from pipeline.evaluation.answers.verdicts import JudgedClaim, judge_claim, judge_gold, not_held
from pipeline.evaluation.passages import Evidence
from pipeline.llm.client import LlmClient
from pipeline.llm.loop import side_by_side
from pipeline.storage.writing import Row
from pipeline.tables.writers import parse_writer

T = TypeVar("T")
Advance = Callable[[], None]
"""Called once for every verdict."""


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to grade. gold_passages: as `questions.gold_passages` gives it. The system's name
    goes into the grade and nowhere else.
    """

    question: Question
    system: str
    answered: Answer
    gold_passages: Mapping[int, Sequence[str]]


def planned_verdicts(case: Case, split: Split) -> int:
    """Verdicts of one judge on an answer that was split: one for each claim, and for each gold
    claim that is asked about.
    """
    return sum(1 for _ in _jobs(0, case, outcome_of(case.answered, split), split))


async def split_all(client: LlmClient, cases: Sequence[Case], context: int) -> list[Split]:
    """The claims of every answer, in the order of the cases; of one that abstained nothing is
    asked.
    """
    return await _blind(
        (_key(case.question.id, case.answered.text), _split(client, case, context))
        for case in cases
    )


async def _split(client: LlmClient, case: Case, context: int) -> Split:
    if case.answered.abstained:
        return Split()
    return await split_answer(client, case.question.question, case.answered.text, context)


def claims_by_question(cases: Iterable[Case], splits: Iterable[Split]) -> dict[str, list[str]]:
    """Question id → the claims that any system made, each once: what evidence is looked up for."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for case, split in zip(cases, splits, strict=True):
        found[case.question.id] |= dict.fromkeys(split.claims)
    return {question_id: sorted(claims) for question_id, claims in sorted(found.items())}


async def judge_all(
    client: LlmClient,
    cases: Sequence[Case],
    splits: Sequence[Split],
    evidence: Evidence,
    *,
    context: int,
    advance: Advance = lambda: None,
) -> list[Row]:
    """Rows of `answer_grades` in the order of the cases; the judge's name in them is that of the
    client's model.

    Raises SettingError where the context is too small, KeyError where a claim has no evidence
    looked up.
    """
    outcomes = [outcome_of(case.answered, split) for case, split in zip(cases, splits, strict=True)]
    jobs = [
        job
        for place, (case, split) in enumerate(zip(cases, splits, strict=True))
        for job in _jobs(place, case, outcomes[place], split)
    ]

    async def one(job: _Job) -> JudgedClaim:
        claim = await _judge(client, cases[job.place], job, evidence, context)
        advance()
        return claim

    judged = await _blind((_key(cases[job.place].question.id, job.text), one(job)) for job in jobs)
    claims: dict[int, list[JudgedClaim]] = defaultdict(list)
    gold: dict[int, list[JudgedClaim]] = defaultdict(list)
    for job, claim in zip(jobs, judged, strict=True):
        (gold if job.is_gold else claims)[job.place].append(claim)
    return [
        {
            "judge": client.model.name,
            **_row(case, outcomes[place], claims[place], gold[place], splits[place]),
        }
        for place, case in enumerate(cases)
    ]


@dataclass(frozen=True, slots=True)
class _Job:
    """One verdict to ask for: on a claim of the answer of the case at this place, or on a gold
    claim.
    """

    place: int
    text: str
    is_gold: bool


def _jobs(place: int, case: Case, outcome: Outcome, split: Split) -> Iterator[_Job]:
    """An answer that could not be split can still be searched for gold claims; one that claims
    nothing holds none, and nobody has to be asked.
    """
    yield from (_Job(place, claim, False) for claim in split.claims)
    if outcome in ("answered", "unreadable"):
        yield from (_Job(place, gold.claim, True) for gold in case.question.claims)


async def _judge(
    client: LlmClient, case: Case, job: _Job, evidence: Evidence, context: int
) -> JudgedClaim:
    if job.is_gold:
        return await judge_gold(client, case.question, job.text, case.answered.text, context)
    return await judge_claim(
        client, case.question, job.text, evidence[case.question.id, job.text], context
    )


def outcome_of(answered: Answer, split: Split) -> Outcome:
    """What became of an answer before any verdict."""
    if answered.abstained:
        return "abstained"
    if split.claims:
        return "answered"
    return "unreadable" if split.unreadable else "claims_nothing"


def _row(
    case: Case,
    outcome: Outcome,
    claims: Sequence[JudgedClaim],
    gold: Sequence[JudgedClaim],
    split: Split,
) -> Row:
    """The row of an answer, without its judge. It costs all grading, cached calls too."""
    question = case.question
    hops_shown, first_hop = gold_shown_by_hop(question, case.answered, case.gold_passages)
    gold_rows = [row for row, _ in gold] or [not_held(claim.claim) for claim in question.claims]
    return {
        "question_id": question.id,
        **parse_writer(case.system).columns,
        "kind": question.kind,
        "date": question.date or question.month,
        "outcome": outcome,
        "claims": [row for row, _ in claims],
        "gold": [
            {**row, "shown_in_hop": first_hop.get(place), "has_passage": place in first_hop}
            for place, row in enumerate(gold_rows)
        ],
        "hops_shown": hops_shown,
        "parts": split.parts,
        "parts_full": split.full,
        "parts_cut": split.cut,
        "split_failures": list(split.failures),
        **asdict(sum((spent for _, spent in (*claims, *gold)), split.spent)),
    }


def _key(question_id: str, text: str) -> str:
    return text_digest(f"{question_id}\0{text}")


async def _blind(asked: Iterable[tuple[str, Coroutine[Any, Any, T]]]) -> list[T]:
    """Results in the order given, asked in that of their keys: an endpoint that changes while it is
    asked changes for all systems alike.
    """
    given = list(asked)
    order = sorted(range(len(given)), key=lambda place: given[place][0])
    answers = await side_by_side(given[place][1] for place in order)
    found = dict(zip(order, answers, strict=True))
    return [found[place] for place in range(len(given))]
