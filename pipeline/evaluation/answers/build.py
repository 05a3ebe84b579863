"""The stages `answer_grades` and `answer_scores`: which answers are graded by which judge.

Answers are split by the first judge for all judges, so that they have the same claims before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.answering.answer import answer_of_row
from pipeline.answering.model_calls import NOTHING
from pipeline.answering.questions import PosedQuestion, paper_months, read_posed_questions
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.answers.grades import Grade, failures
from pipeline.evaluation.answers.grading import (
    Advance,
    Case,
    claims_by_question,
    judge_all,
    planned_verdicts,
    split_all,
)
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.splitting import Split, prompt_digest
from pipeline.evaluation.passages import (
    PASSAGE_COLUMNS,
    ClaimSearch,
    Evidence,
    Passage,
    evidence_for,
    passages_by_paper,
    read_vectors,
)
from pipeline.index.papers import rows_of_papers
from pipeline.llm.loop import run
from pipeline.llm.models import Model, judge_models, judges_fingerprint
from pipeline.llm.stage_loop import job_client
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

_ANSWER_COLUMNS = [name for name in tables.ANSWERS.schema.names if name != "settings"]


def build(job: Job, make: Callable[[Settings], Embedder] = make_embedder) -> Iterator[Row]:
    """Rows of `answer_grades`, by question, writer and judge.

    Raises SettingError where a judge's context is too small, or the embedder's model is not there.
    """
    posed = {
        question.question.id: question
        for question in read_posed_questions(job.rows(tables.QUESTIONS))
    }
    cases = list(_cases(job, posed))
    if not cases:
        return
    models = judge_models(job.settings)
    splits = run(_split(job, models[0], cases))
    evidence = _evidence(job, posed, claims_by_question(cases, splits), make)
    verdicts = sum(planned_verdicts(case, split) for case, split in zip(cases, splits, strict=True))
    job.expect(len(models) * verdicts)
    advance = _counting(job)
    grades: list[Row] = []
    for model in models:
        grades += run(_judge(job, model, cases, splits, evidence, advance))
        splits = [
            replace(split, spent=NOTHING) for split in splits
        ]  # the first judge's alone, and its cost
    _note(job, grades)
    yield from sorted(grades, key=lambda row: (row["question_id"], writer_name(row), row["judge"]))


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The judges, their prompts, the embedder's model, and the months of passages and vectors that
    claims are judged by.
    """
    rows = workspace.root.rows(tables.QUESTIONS, month)
    months = paper_months(question.question for question in read_posed_questions(rows))
    read = (tables.PASSAGES, tables.EMBEDDINGS)
    held = {f"{table.name} of the papers": digest_of(workspace, table, months) for table in read}
    judges = judges_fingerprint(workspace.settings)
    return {
        "prompts": prompt_digest(),
        "judges": judges,
        "embedder": model_name(workspace.settings),
    } | held


def build_scores(job: Job) -> Iterator[Row]:
    """Rows of `answer_scores`, by question, writer, judge and metric."""
    metrics: Counter[str] = Counter()
    for row in job.iterate(tables.ANSWER_GRADES):
        named = {
            name: row[name] for name in ("question_id", "system", "model", "judge", "kind", "date")
        }
        for metric, value in answer_measures(row).items():
            metrics[metric] += 1
            yield {**named, "metric": metric, "value": value}
    job.notes["metrics"] = dict(sorted(metrics.items()))


def _cases(job: Job, posed: Mapping[str, PosedQuestion]) -> Iterator[Case]:
    for row in job.iterate(tables.ANSWERS, _ANSWER_COLUMNS):
        if row["question_id"] not in posed:
            job.leave_out(
                row["question_id"],
                "question_gone",
                f"{writer_name(row)} answered what the month does not ask now",
            )
            continue
        asked = posed[row["question_id"]]
        yield Case(asked.question, writer_name(row), answer_of_row(row), asked.gold_passages)


async def _split(job: Job, model: Model, cases: Sequence[Case]) -> list[Split]:
    async with job_client(job, model.name) as client:
        return await split_all(client, cases, model.context)


def _evidence(
    job: Job,
    posed: Mapping[str, PosedQuestion],
    claims: Mapping[str, Sequence[str]],
    make: Callable[[Settings], Embedder],
) -> Evidence:
    """The passages for every claim; an estimate, whose claims are made up, ranks them by words
    alone.
    """
    root, settings = job.workspace.root, job.settings
    papers = {paper for question_id in claims for paper in posed[question_id].question.papers}
    passages = passages_by_paper(rows_of_papers(root, tables.PASSAGES, papers, PASSAGE_COLUMNS))
    every_claim = {claim for of_question in claims.values() for claim in of_question}
    search = ClaimSearch(sorted(every_claim), settings, make)
    vectors = (
        {}
        if job.rehearsal or not search.claims
        else read_vectors(root, papers, model_name(settings))
    )
    job.notes["evidence_ranked_by"] = "vectors and words" if vectors else "words alone"
    evidence: dict[tuple[str, str], tuple[Passage, ...]] = {}
    for question_id, of_question in claims.items():
        question = posed[question_id].question
        evidence |= evidence_for(
            question, of_question, passages, settings.support_passages, search, vectors
        )
    return evidence


def _counting(job: Job) -> Advance:
    """Tells how many verdicts there are, of all judges together."""
    done = count(1)
    return lambda: job.advance(next(done))


async def _judge(
    job: Job,
    model: Model,
    cases: Sequence[Case],
    splits: Sequence[Split],
    evidence: Evidence,
    advance: Advance,
) -> list[Row]:
    async with job_client(job, model.name) as client:
        return await judge_all(
            client, cases, splits, evidence, context=model.context, advance=advance
        )


def _note(job: Job, grades: Sequence[Grade]) -> None:
    """Outcomes of the month, and into the ledger what could not be read."""
    outcomes = Counter(f"{writer_name(grade)} {grade['outcome']}" for grade in grades)
    job.notes["outcomes"] = dict(sorted(outcomes.items()))
    for grade in grades:
        for failure in failures(grade):
            subject = f"{grade['question_id']} {writer_name(grade)}"
            job.leave_out(subject, "unreadable_verdict", f"{grade['judge']}: {failure}")
