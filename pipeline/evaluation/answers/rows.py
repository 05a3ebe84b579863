"""The stage `answer_grades`: the answers of a month, graded claim by claim by the judge.

Answers are split; then evidence is looked up for all claims, which may block; then all claims are
judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline import tables
from pipeline.answering.answer import Answer
from pipeline.answering.questions import PosedQuestion, Question, paper_months, read_posed_questions
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.answers.judge import (
    CLAIM,
    GOLD,
    JudgedClaim,
    judge_claim,
    judge_gold,
    not_held,
)
from pipeline.evaluation.answers.measures import Grade, Outcome
from pipeline.evaluation.answers.sample import (
    PROMPTS,
    SPLIT,
    SampledAnswer,
    Split,
    read_answers,
    split_answer,
)
from pipeline.evaluation.passages import (
    EVIDENCE_COLUMNS,
    ClaimSearch,
    Evidence,
    EvidencePassage,
    evidence_for,
    passages_by_paper,
    read_vectors,
)
from pipeline.index.papers import rows_of_papers
from pipeline.llm.client import LlmClient
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.models import Model, judge_model
from pipeline.llm.stage_loop import job_client
from pipeline.storage.writing import Row
from pipeline.tables.writers import parse_writer, writer_name
from pipeline.text import text_digest

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

T = TypeVar("T")
Advance = Callable[[], None]
"""Called once for every verdict."""


def build(job: Job, make: Callable[[Settings], Embedder] = make_embedder) -> Iterator[Row]:
    """Rows of `answer_grades`, by question and writer.

    Raises SettingError where the judge's context is too small, or the embedder's model is absent.
    """
    posed = {
        question.question.id: question
        for question in read_posed_questions(job.rows(tables.QUESTIONS))
    }
    answers = list(read_answers(job, posed))
    if not answers:
        return
    model = judge_model(job.settings)
    splits = run(_split(job, model, answers))
    evidence = _evidence(job, posed, claims_by_question(answers, splits), make)
    job.expect(len(_claim_jobs(answers, splits)))
    done = count(1)
    grades = run(_judge(job, model, answers, splits, evidence, lambda: job.advance(next(done))))
    _note(job, grades)
    yield from sorted(grades, key=lambda row: (row["question_id"], writer_name(row)))


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The judge, its prompts, the embedder's model, and the papers' passages and vectors."""
    rows = workspace.root.rows(tables.QUESTIONS, month)
    months = paper_months(question.question for question in read_posed_questions(rows))
    digests = {
        f"{table.name} of the papers": digest_of(workspace, table, months)
        for table in (tables.PASSAGES, tables.EMBEDDINGS)
    }
    return {
        "prompts": PROMPTS.digest(SPLIT, CLAIM, GOLD),
        "judges": judge_model(workspace.settings).fingerprint,
        "embedder": model_name(workspace.settings),
        **digests,
    }


async def _split(job: Job, model: Model, answers: Sequence[SampledAnswer]) -> list[Split]:
    async with job_client(job, model.name) as client:
        return await split_all(client, answers, model.context)


async def split_all(
    client: LlmClient, answers: Sequence[SampledAnswer], context: int
) -> list[Split]:
    """The claims of every answer, in their order; of one that abstained nothing is asked."""

    async def one(each: SampledAnswer) -> Split:
        if each.answer.abstained:
            return Split()
        return await split_answer(client, each.question.question, each.answer.text, context)

    return await _blind((_key(each.question.id, each.answer.text), one(each)) for each in answers)


def claims_by_question(
    answers: Iterable[SampledAnswer], splits: Iterable[Split]
) -> dict[str, list[str]]:
    """Question id → the claims that any system made, each once, for which evidence is looked up."""
    claims: dict[str, set[str]] = defaultdict(set)
    for each, split in zip(answers, splits, strict=True):
        claims[each.question.id] |= set(split.claims)
    return {question_id: sorted(of_question) for question_id, of_question in sorted(claims.items())}


def _evidence(
    job: Job,
    posed: Mapping[str, PosedQuestion],
    claims: Mapping[str, Sequence[str]],
    make: Callable[[Settings], Embedder],
) -> Evidence:
    """The passages for every claim; an estimate makes claims up, and ranks by words alone."""
    root, settings = job.workspace.root, job.settings
    papers = {paper for question_id in claims for paper in posed[question_id].question.papers}
    passages = passages_by_paper(rows_of_papers(root, tables.PASSAGES, papers, EVIDENCE_COLUMNS))
    every_claim = {claim for of_question in claims.values() for claim in of_question}
    search = ClaimSearch(sorted(every_claim), settings, make)
    vectors = (
        {}
        if job.rehearsal or not search.claims
        else read_vectors(root, papers, model_name(settings))
    )
    job.notes["evidence_ranked_by"] = "vectors and words" if vectors else "words alone"
    evidence: dict[tuple[str, str], tuple[EvidencePassage, ...]] = {}
    for question_id, of_question in claims.items():
        evidence |= evidence_for(
            posed[question_id].question,
            of_question,
            passages,
            settings.support_passages,
            search,
            vectors,
        )
    return evidence


async def _judge(
    job: Job,
    model: Model,
    answers: Sequence[SampledAnswer],
    splits: Sequence[Split],
    evidence: Evidence,
    advance: Advance,
) -> list[Row]:
    async with job_client(job, model.name) as client:
        return await judge_all(
            client, answers, splits, evidence, context=model.context, advance=advance
        )


@dataclass(frozen=True, slots=True)
class ClaimJob:
    """One verdict to ask for: on a claim of the answer at this place, or on a gold claim."""

    place: int
    text: str
    is_gold: bool


def _claim_jobs(answers: Sequence[SampledAnswer], splits: Sequence[Split]) -> list[ClaimJob]:
    """The verdicts to ask for.

    An answer that could not be split can still be searched for gold claims; one that claims nothing
    holds none, and nobody has to be asked.
    """
    jobs: list[ClaimJob] = []
    for place, (each, split) in enumerate(zip(answers, splits, strict=True)):
        jobs += [ClaimJob(place, claim, is_gold=False) for claim in split.claims]
        if outcome_of(each.answer, split) in ("answered", "unreadable"):
            jobs += [ClaimJob(place, gold.claim, is_gold=True) for gold in each.question.claims]
    return jobs


async def judge_all(
    client: LlmClient,
    answers: Sequence[SampledAnswer],
    splits: Sequence[Split],
    evidence: Evidence,
    *,
    context: int,
    advance: Advance = lambda: None,
) -> list[Row]:
    """Rows of `answer_grades` in the order of the answers; the judge's name in them is that of the
    client's model.

    Raises SettingError where the context is too small, KeyError where a claim has no evidence
    looked up.
    """

    async def one(job: ClaimJob) -> JudgedClaim:
        question, answer = answers[job.place].question, answers[job.place].answer
        if job.is_gold:
            judged = await judge_gold(client, question, job.text, answer.text, context)
        else:
            passages = evidence[question.id, job.text]
            judged = await judge_claim(client, question, job.text, passages, context)
        advance()
        return judged

    jobs = _claim_jobs(answers, splits)
    judged = await _blind(
        (_key(answers[job.place].question.id, job.text), one(job)) for job in jobs
    )
    by_answer: dict[tuple[int, bool], list[JudgedClaim]] = defaultdict(list)
    for job, claim in zip(jobs, judged, strict=True):
        by_answer[job.place, job.is_gold].append(claim)
    return [
        {
            "judge": client.model.name,
            **_row(each, split, by_answer[place, False], by_answer[place, True]),
        }
        for place, (each, split) in enumerate(zip(answers, splits, strict=True))
    ]


def _key(question_id: str, text: str) -> str:
    return text_digest(f"{question_id}\0{text}")


async def _blind(keyed: Iterable[tuple[str, Coroutine[Any, Any, T]]]) -> list[T]:
    """Results in the order given, requested in that of their keys: an endpoint that changes in the
    meantime changes for all systems alike.
    """
    work = list(keyed)
    order = sorted(range(len(work)), key=lambda place: work[place][0])
    results = await side_by_side(work[place][1] for place in order)
    by_place = dict(zip(order, results, strict=True))
    return [by_place[place] for place in range(len(work))]


def outcome_of(answer: Answer, split: Split) -> Outcome:
    """The outcome of an answer before any verdict."""
    if answer.abstained:
        return "abstained"
    if split.claims:
        return "answered"
    return "unreadable" if split.failures else "claims_nothing"


def _row(
    each: SampledAnswer,
    split: Split,
    claims: Sequence[JudgedClaim],
    gold: Sequence[JudgedClaim],
) -> Row:
    """The row of an answer, without its judge. It costs all grading, cached calls too."""
    question = each.question
    hops_shown, first_hop = gold_shown_by_hop(question, each.answer, each.gold_passages)
    gold_rows = [row for row, _ in gold] or [not_held(claim.claim) for claim in question.claims]
    return {
        "question_id": question.id,
        **parse_writer(each.system).columns,
        "kind": question.kind,
        "date": question.date or question.month,
        "outcome": outcome_of(each.answer, split),
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


def gold_shown_by_hop(
    question: Question, answer: Answer, gold_passages: Mapping[int, Sequence[str]]
) -> tuple[list[float] | None, dict[int, int | None]]:
    """Which gold claims had one of their passages shown: the share of them after each hop, and the
    first hop of each.

    gold_passages: place of a claim from 0 → ids of its passages, as `questions.gold_passages` gives
    it. The shares are of the claims that have passages: None for an answer that searched for
    nothing, empty where no claim has any. The hops are from 1, by the claim's place; None for
    never.
    """
    if not answer.shown and not answer.queries:
        return None, {}
    hops = [{passage.passage_id for passage in hop} for hop in answer.shown] or [set()]
    first: dict[int, int | None] = {}
    for place in range(len(question.claims)):
        ids = set(gold_passages.get(place, ()))
        if ids:
            first[place] = next((hop for hop, shown in enumerate(hops, 1) if ids & shown), None)
    if not first:
        return [], {}
    shares = [
        sum(first_hop is not None and first_hop <= hop for first_hop in first.values()) / len(first)
        for hop in range(1, len(hops) + 1)
    ]
    return shares, first


def _note(job: Job, grades: Sequence[Grade]) -> None:
    """Outcomes of the month, and into the ledger what could not be read."""
    outcomes = Counter(f"{writer_name(grade)} {grade['outcome']}" for grade in grades)
    job.notes["outcomes"] = dict(sorted(outcomes.items()))
    for grade in grades:
        for failure in _failures(grade):
            subject = f"{grade['question_id']} {writer_name(grade)}"
            job.leave_out(subject, "unreadable_verdict", f"{grade['judge']}: {failure}")


def _failures(grade: Grade) -> Iterator[str]:
    for failure in grade["split_failures"]:
        yield f"a part of the answer: {failure}"
    for name, claims in (("claim", grade["claims"]), ("gold claim", grade["gold"])):
        for number, claim in enumerate(claims, 1):
            if claim["failure"]:
                yield f"{name} {number}: {claim['failure']}"
