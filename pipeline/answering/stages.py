"""The stages `questions` and `answers_<system>`.

The questions of a month are asked of the papers up to that month, as a reader could have asked them then: what comes
later changes no answer. (A Qdrant server before 1.19 knows no document frequencies of some months alone: there, with
MiniLM, later papers weigh words otherwise.)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from pipeline import tables
from pipeline.answering import question_rows
from pipeline.answering.answer_rows import answer_row
from pipeline.answering.answered import Answered
from pipeline.answering.asked import Asked
from pipeline.answering.batching import Batched, Search
from pipeline.answering.binding import Span, TableFacts, search_of
from pipeline.answering.imported import read_imported
from pipeline.answering.prompting import PROMPTS
from pipeline.answering.question_rows import Posed, of_set, read_posed
from pipeline.answering.questions import Question
from pipeline.answering.retrieving import Found
from pipeline.answering.systems import SYSTEMS, System, chosen_systems
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import SettingError
from pipeline.index import close_indexes
from pipeline.llm.client import ClientWorkspace, LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.settings import Settings
from pipeline.storage.writing import Row

_SETTING = "CITELOOM_ANSWER_SYSTEMS"
_FOUND_COLUMNS = ["passage_id", "arxiv_id", "title", "section_path", "anchor", "kind", "text"]


def _build_answers(system: System, job: Job) -> Iterator[Row]:
    posed = read_posed(job.rows(tables.QUESTIONS))
    job.expect(len(posed))
    answers = run(_answer_all(job, system, posed)) if posed else []
    told = system.chosen_settings(job.settings)
    job.notes |= {
        "abstained": sum(answered.abstained for answered in answers),
        "second_hops": sum(answered.hops > 1 for answered in answers),
    }
    for each, answered in zip(posed, answers, strict=True):
        yield answer_row(each.question.id, system.name, answered, job.settings.llm_model, told)


async def _answer_all(job: Job, system: System, posed: Sequence[Posed]) -> list[Answered]:
    """The answers in the order of the questions, all of them under way at once, within the limit on calls in flight."""
    span = Span(last=job.month)
    retriever, facts, done = Batched(_search(job, span)), TableFacts(job.workspace, span), 0

    async def one(client: LlmClient, question: Question) -> Answered:
        nonlocal done
        answered = await system.answer(
            client, retriever, Asked(question.question, (), question.id), job.settings, facts=facts
        )
        done += 1
        job.advance(done)
        return answered

    begun = time.perf_counter()
    try:
        async with open_client(job.workspace) as client:
            answers = await side_by_side(one(client, each.question) for each in posed)
    finally:
        close_indexes()  # Edge belongs to one process at a time
    job.measured |= client.usage.measured()
    job.measured["seconds_a_question"] = (time.perf_counter() - begun) / len(posed)
    return answers


def _search(job: Job, span: Span) -> Search:
    """The index's search; an estimate, whose queries are made up, is given passages of the month in its place."""
    if not isinstance(job.workspace, ClientWorkspace):
        return search_of(job.workspace, span)
    rows = job.workspace.root.iterate(tables.PASSAGES, job.month, _FOUND_COLUMNS)
    some = [Found(**row, month=job.month) for row in islice(rows, job.settings.answer_candidates * 2)]

    def search(queries: Sequence[str], count: int) -> list[list[Found]]:
        return [some[:count] for _ in queries]

    return search


def check_answering(settings: Settings) -> None:
    """Raise SettingError for a system that there is not, and for files of questions or answers that cannot be read."""
    chosen_systems(settings.answer_systems, _SETTING)
    questions = of_set(settings)
    if settings.imported_answers and questions:
        read_imported(settings.imported_answers, questions)


def _answers_off(system: System, settings: Settings) -> str:
    off = question_rows.off(settings)
    chosen = chosen_systems(settings.answer_systems, _SETTING)
    return off or ("" if system in chosen else f"not among {_SETTING}")


def _answer_inputs(system: System, workspace: Workspace, month: str) -> Mapping[str, str]:
    """The prompts, and of the months that a question of this one may draw on, what the index and the tables hold."""
    found = {"prompts": PROMPTS.digest(*sorted(system.prompts))}
    read = [tables.INDEX_RECEIPTS] if system.retrieves else []
    read += [tables.PAPERS, tables.METADATA] if system.reads_facts else []
    for table in read:
        months = [each for each in workspace.root.months(table) if each <= month]
        found[f"{table.name} so far"] = digest_of(workspace, table, months)
    return found


def _build_imported(job: Job) -> Iterator[Row]:
    file = job.settings.imported_answers
    asked = {each.question.id for each in read_posed(job.rows(tables.QUESTIONS))}
    if file is None or not asked:
        return
    imported = read_imported(file, of_set(job.settings))
    job.notes["imported"] = list(imported.notes)
    of_month = {each.id for each in of_set(job.settings) if each.month == job.month}
    for each in sorted(imported.answers, key=lambda each: (each.system, each.question_id)):
        if each.question_id in asked:
            yield answer_row(each.question_id, each.system, each.answered, None, {})
        elif each.question_id in of_month:  # those of other months stand there
            job.leave_out(each.question_id, "not_asked", f"{each.system} answered it, and the month does not ask it")


def _imported_off(settings: Settings) -> str:
    return question_rows.off(settings) or ("" if settings.imported_answers else "CITELOOM_IMPORTED_ANSWERS is not set")


def _imported_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    file, asked = workspace.settings.imported_answers, question_rows.set_file(workspace.settings)
    if file is None or asked is None:
        return {}
    # The whole set, as answers to what is none of its questions are refused, and those that it lacks are told of.
    told = "\n".join(f"{each.id} {each.month} {each.question}" for each in of_set(workspace.settings))
    try:
        return {"file": hashlib.sha256(file.read_bytes()).hexdigest(), "set": hashlib.sha256(told.encode()).hexdigest()}
    except OSError as error:
        raise SettingError(
            f"CITELOOM_IMPORTED_ANSWERS: {file} cannot be read ({error.strerror}): give a CSV file of answers"
        ) from error


QUESTIONS = Stage(
    table=tables.QUESTIONS,
    build=question_rows.build,
    upstream=(tables.METADATA, tables.PASSAGES),
    settings=("max_questions",),
    inputs=question_rows.inputs,
    disabled_reason=question_rows.off,
)


# arXivBot, 2: which questions ask for facts of tables is told apart better. 3: claims that repeat or are headings go.
# 4: so do those that ask. 5: a short figure tells a claim's passage too. Formulas are shown so that JSON keeps them
# since 4, and since WikiChat's 2; since 5 and 3 in every prompt.
_VERSIONS = {"arxivbot": 5, "wikichat": 3}


def _answer_stage(system: System) -> Stage:
    """The stage of one system; off where CITELOOM_ANSWER_SYSTEMS does not name it."""
    index = (tables.INDEX_RECEIPTS,) if system.retrieves else ()
    return Stage(
        table=tables.ANSWERS[system.name],
        build=partial(_build_answers, system),
        upstream=(tables.QUESTIONS, *index),
        settings=(*system.settings, *(("embedder", "embedded_form", "search_fusion") if system.retrieves else ())),
        version=_VERSIONS.get(system.name, 1),
        inputs=partial(_answer_inputs, system),
        disabled_reason=partial(_answers_off, system),
        # Those that search read the index, which belongs to one process at a time where it is embedded.
        pool="qdrant" if system.retrieves else "llm",
    )


ANSWERS: Mapping[str, Stage] = {name: _answer_stage(SYSTEMS[name]) for name in tables.ANSWERING_SYSTEMS}
"""System → the stage that has it answer a month's questions."""

IMPORTED_ANSWERS = Stage(
    table=tables.ANSWERS[tables.IMPORTED],
    build=_build_imported,
    upstream=(tables.QUESTIONS,),
    inputs=_imported_inputs,
    disabled_reason=_imported_off,
)
