"""The stages `questions` and `answers`.

A month of `answers` has a part for each writer and one for imported answers. The questions of a
month are answered from the papers up to that month, as a reader could have asked them then: later
papers change no answer. (A Qdrant server before 1.19 knows no document frequencies of some months
alone: there, with MiniLM, later papers change the weights of words.)
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.answering.answer import answer_row, plain_answer
from pipeline.answering.model_calls import PROMPTS, Tools
from pipeline.answering.questions import (
    Question,
    claim_rows,
    gold_passages,
    paper_months,
    passages_of_papers,
    read_posed_questions,
    read_question_set,
)
from pipeline.answering.records import named_records
from pipeline.answering.retriever import MonthSpan, PassageSearch, SearchFunction, index_search
from pipeline.answering.system import AnsweringSystem
from pipeline.answering.systems import ANSWERING_WRITERS, SYSTEMS
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import PASSAGE_COLUMNS, Answer, Passage
from pipeline.corpus.passages.text import FORM
from pipeline.engine.digests import digest_of, digest_until
from pipeline.engine.parts import PartedStage
from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import STATES, CheckResult, Job, MonthCheck, MonthPart, Stage, Workspace
from pipeline.index.scored import Scored
from pipeline.llm.client import LlmClient
from pipeline.llm.loop import run
from pipeline.llm.messages import LlmAnswerError
from pipeline.llm.models import get_model, settings_for, writer_settings
from pipeline.llm.stage_loop import attempt_all, leave_out_failed, map_concurrently
from pipeline.settings import Settings
from pipeline.storage.csv_reader import read_content
from pipeline.storage.csv_texts import ImportedTexts, TextKind, read_texts
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer

_ANSWERS = TextKind("answer", "question", "question_id", "question", only_known=True)


def questions_disabled_reason(settings: Settings) -> str:
    """The reason why no question is asked: there is no question set; else empty."""
    return "" if settings.question_set else "CITELOOM_QUESTIONS names no question set"


def _dates(job: Job, questions: Sequence[Question]) -> dict[str, str]:
    """Paper → day of its first version, of the month's papers whose questions have no date."""
    papers = {paper for each in questions if each.date is None for paper in each.papers}
    rows = job.iterate(tables.METADATA, ["arxiv_id", "published"]) if papers else ()
    return {
        row["arxiv_id"]: row["published"]
        for row in rows
        if row["arxiv_id"] in papers and row["published"]
    }


def read_imported(file: Path, questions: Sequence[Question]) -> ImportedTexts:
    """The answers of a CSV file to questions of a set: columns `system`, `answer`, and
    `question_id` or `question`.

    Raises SettingError as `read_texts` does, also for a question outside of the set.
    """
    return read_texts(
        file, _ANSWERS, {question.id: question.question for question in questions}, SYSTEMS
    )


# Were settings once: without them in the fingerprint, earlier answers would be out of date.
_FORMER_SETTINGS = {"embedded_form": FORM}
_FUSED_SEARCH = {"search_fusion": "scores"}


def _writer_part(
    workspace: Workspace, month: str, writer: Writer, system: AnsweringSystem
) -> MonthPart:
    settings = settings_for(workspace.settings, writer.model, "CITELOOM_ANSWER_SYSTEMS")
    part_settings = system.settings_of(settings)
    reads, upstream = [tables.QUESTIONS], []
    if system.retrieves:
        reads.append(tables.INDEX_RECEIPTS)
        upstream.append(tables.INDEX_RECEIPTS)
        part_settings |= {"embedder": settings.embedder, **_FORMER_SETTINGS}
        if system.search_by == "fused":
            part_settings |= _FUSED_SEARCH
    if system.reads_records:
        upstream += [tables.PAPERS, tables.METADATA]
    inputs = {"prompts": PROMPTS.digest(*system.prompts)}
    if writer.model is not None:
        model = get_model(workspace.settings, writer.model, "CITELOOM_ANSWER_SYSTEMS")
        inputs["model"] = model.fingerprint
    questions = read_provenance(workspace.root.file(tables.QUESTIONS, month))
    if questions is not None and not questions.rows:
        upstream = []  # most months ask nothing, and depend on no earlier month
    for table in upstream:
        inputs[f"{table.name} so far"] = digest_until(workspace, table, month)
    return MonthPart(
        name=writer.name,
        columns=writer.columns,
        build=partial(_build_answers, writer, system),
        reads=tuple((table, None) for table in reads),
        settings=part_settings,
        version=system.version,
        inputs=inputs,
    )


def _build_answers(writer: Writer, system: AnsweringSystem, job: Job) -> Iterator[Row]:
    questions = [posed.question for posed in read_posed_questions(job.rows(tables.QUESTIONS))]
    answers = _answer_all(job, writer, system, questions) if questions else []
    settings = system.settings_of(settings_for(job.settings, writer.model))
    job.notes |= {
        "abstained": sum(isinstance(each, Answer) and each.abstained for each in answers),
        "second_hops": sum(isinstance(each, Answer) and each.hops > 1 for each in answers),
    }
    failed = sum(isinstance(each, LlmAnswerError) for each in answers)
    if failed:
        job.notes[STATES] = {"failed": failed}
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(answer, LlmAnswerError):
            leave_out_failed(job, question.id, answer)
            continue
        yield answer_row(question.id, writer, answer, settings)


def _answer_all(
    job: Job, writer: Writer, system: AnsweringSystem, questions: Sequence[Question]
) -> Sequence[Answer | LlmAnswerError]:
    """The answers in the order of the questions, made concurrently within the limit on calls."""
    settings = settings_for(job.settings, writer.model)
    span = MonthSpan(last=job.month)
    read_records = partial(named_records, job.workspace, span) if system.reads_records else None
    retriever = PassageSearch(_search(job, span, system), read_records)
    started = time.perf_counter()

    async def answer(client: LlmClient | None, question: Question) -> Answer:
        tools = Tools(client, retriever, settings)
        return await system.answer(UserQuestion(question.question, (), question.id), tools)

    answers: Sequence[Answer | LlmAnswerError]
    if system.calls_model:
        answers = attempt_all(job, writer.model, questions, answer)
    else:
        answers = run(map_concurrently(job, questions, partial(answer, None)))
    job.measured["seconds_a_question"] = (time.perf_counter() - started) / len(questions)
    return answers


def _search(job: Job, span: MonthSpan, system: AnsweringSystem) -> SearchFunction:
    """The search of the index. For an estimate, in which a model's queries are made up, the first
    passages of the month.
    """
    if not job.rehearsal or not system.calls_model:
        return index_search(job.workspace, span, system.search_by)
    rows = job.workspace.root.iterate(tables.PASSAGES, job.month, PASSAGE_COLUMNS)
    passages = [
        Scored(Passage.from_row(row), score=0.0)
        for row in islice(rows, job.settings.answer_candidates * 2)
    ]
    return lambda queries, count, papers: [passages[:count] for _ in queries]


def check_answering(settings: Settings) -> None:
    """Raise SettingError for an unknown system, or an unreadable file of questions or answers."""
    ANSWERING_WRITERS.lookup_all(settings)
    questions = read_question_set(settings)
    if settings.imported_answers and questions:
        read_imported(settings.imported_answers, questions)


def _imported_part(workspace: Workspace) -> list[MonthPart]:
    """The part of imported answers; none where no file is set."""
    file = workspace.settings.imported_answers
    if file is None or workspace.settings.question_set is None:
        return []
    content = read_content(file, "CITELOOM_IMPORTED_ANSWERS a CSV file of answers")
    # The whole set: answers to questions outside of it are refused, and questions without an answer
    # are reported.
    questions = "\n".join(
        f"{question.id} {question.month} {question.question}"
        for question in read_question_set(workspace.settings)
    )
    return [
        MonthPart(
            name="imported",
            columns=None,
            build=_build_imported,
            reads=((tables.QUESTIONS, None),),
            inputs={
                "file": hashlib.sha256(content).hexdigest(),
                "set": hashlib.sha256(questions.encode()).hexdigest(),
            },
        )
    ]


def _build_imported(job: Job) -> Iterator[Row]:
    file = job.settings.imported_answers
    posed_ids = {posed.question.id for posed in read_posed_questions(job.rows(tables.QUESTIONS))}
    if file is None or not posed_ids:
        return
    questions = read_question_set(job.settings)
    imported = read_imported(file, questions)
    job.notes["imported"] = list(imported.notes)
    ids_of_month = {question.id for question in questions if question.month == job.month}
    for text in sorted(imported.texts, key=lambda text: (text.system, text.subject_id)):
        if text.subject_id in posed_ids:
            yield answer_row(text.subject_id, Writer(text.system), plain_answer(text.text), {})
        # Answers to questions of other months are in the tables of those months.
        elif text.subject_id in ids_of_month:
            job.leave_out(
                text.subject_id,
                "not_asked",
                f"{text.system} answered it; the month does not ask it",
            )


def every_question_is_answered(workspace: Workspace, month: str) -> CheckResult:
    """Every writer of CITELOOM_ANSWER_SYSTEMS has an answer to every question of the month."""
    return ANSWERING_WRITERS.check_all_wrote(
        workspace, month, tables.QUESTIONS, tables.ANSWERS, "question_id"
    )


class Questions(Stage):
    """Questions of CITELOOM_QUESTIONS whose newest paper is of the month, with their gold
    claims.
    """

    table = tables.QUESTIONS
    upstream = (tables.METADATA, tables.PASSAGES)
    settings = ("max_questions",)
    disabled_reason = staticmethod(questions_disabled_reason)

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        """The month's questions, the counts of other months, and passages of the papers asked
        about.
        """
        questions = read_question_set(workspace.settings)
        of_month = [question for question in questions if question.month == month]
        others = sorted(Counter(question.month for question in questions).items())
        described = json.dumps(
            [[question.model_dump() for question in of_month], others], sort_keys=True
        )
        months = paper_months(of_month)
        return {
            "questions": hashlib.sha256(described.encode()).hexdigest(),
            "passages of their papers": digest_of(workspace, tables.PASSAGES, months),
        }

    def build(self, job: Job) -> Iterator[Row]:
        """Rows of `questions`, in the order of the set; questions that are not asked are in the
        ledger.

        Raises SettingError as `read_questions` does.
        """
        questions = read_question_set(job.settings)
        of_month = [question for question in questions if question.month == job.month]
        others = Counter(question.month for question in questions if question.month != job.month)
        job.notes |= {"of_set": len(questions), "of_other_months": dict(sorted(others.items()))}
        passages = passages_of_papers(job.workspace.root, of_month)
        askable = []
        for question in of_month:
            lacking = [paper for paper in question.papers if paper not in passages]
            if lacking:
                detail = f"{', '.join(lacking)} of its papers have no passages"
                job.leave_out(question.id, "paper_not_in_corpus", detail)
            else:
                askable.append(question)
        dates = _dates(job, askable)
        most = job.settings.max_questions
        sample = set(evenly_spaced(len(askable), most))
        for place, question in enumerate(askable):
            if place not in sample:
                job.leave_out(question.id, "over_the_limit", f"CITELOOM_MAX_QUESTIONS is {most}")
                continue
            gold = gold_passages(question, passages)
            for number, passage_ids in gold.items():
                if passage_ids:
                    continue
                claim = question.claims[number]
                detail = "it has no evidence"
                if claim.evidence:
                    detail = f"no passage of {claim.paper} holds its evidence"
                job.leave_out(question.id, "claim_without_passage", f"{detail}: {claim.claim}")
            # Papers of other months are older: the question is in the month of its newest paper.
            days = [dates[paper] for paper in question.papers if paper in dates]
            yield {
                "question_id": question.id,
                "question": question.question,
                "kind": question.kind,
                "papers": list(question.papers),
                "date": question.date or max(days, default=question.month),
                "reviewed": True,
                "claims": claim_rows(question, gold),
            }


class Answers(PartedStage):
    """The answers of each writer of CITELOOM_ANSWER_SYSTEMS (arXivBot, WikiChat, the model alone),
    and answers made elsewhere, from the CSV file of CITELOOM_IMPORTED_ANSWERS.
    """

    table = tables.ANSWERS
    upstream = (tables.QUESTIONS, tables.INDEX_RECEIPTS)
    # Systems that search read the index: the in-process one belongs to one process at a time.
    pool = "qdrant"
    kinds = ("parquet", "openai")
    asks = "writer"
    checks = (MonthCheck(every_question_is_answered, warning=True),)
    disabled_reason = staticmethod(questions_disabled_reason)

    def part_settings(self, settings: Settings) -> Mapping[str, Any]:
        return {
            **writer_settings(ANSWERING_WRITERS.lookup_all(settings), settings),
            "imported": settings.imported_answers,
        }

    def parts(self, workspace: Workspace, month: str) -> list[MonthPart]:
        parts = [
            _writer_part(workspace, month, writer, system)
            for writer, system in ANSWERING_WRITERS.lookup_all(workspace.settings)
        ]
        return [*parts, *_imported_part(workspace)]


QUESTIONS = Questions()
ANSWERS = Answers()
