"""The stages `key_elements` and `summaries`.

A month of `key_elements` has a part for each model, a month of `summaries` one for each writer and
one for imported sections. Within a part every task is a coroutine of its own over one client.
`llm_url` is not among the settings: answers belong to a model's name, and the same model at another
address changes no row. The calls and tokens of a row count cached calls too, so that a resumed run
writes the same bytes as an undisturbed one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.engine.parts import PartedStage
from pipeline.engine.stage import STATES, CheckResult, Job, MonthCheck, MonthPart, Workspace
from pipeline.errors import SettingError
from pipeline.llm.client import LlmClient
from pipeline.llm.messages import LlmAnswerError, Spent
from pipeline.llm.models import get_model, settings_for, writer_settings
from pipeline.llm.stage_loop import attempt_all, leave_out_failed
from pipeline.related_work.examples import example_inputs
from pipeline.related_work.key_elements import Extraction, KeyElements, extract_known
from pipeline.related_work.prompt_files import PROMPTS
from pipeline.related_work.summary import Summary, make_summary, named_faults
from pipeline.related_work.system import RelatedWorkSystem
from pipeline.related_work.systems import RELATED_WORK_WRITERS, SYSTEMS
from pipeline.related_work.task import ReferenceSource, Task
from pipeline.related_work.task_reader import FAILED_TASKS, MonthTasks, read_elements, task_of
from pipeline.settings import Settings
from pipeline.storage.csv_reader import read_content
from pipeline.storage.csv_texts import TextKind, read_texts
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer

_IMPORTED = TextKind("section", "task", "task_id", "title", only_known=False)


@dataclass(frozen=True, slots=True)
class _Section:
    """A section to write. repeat: 0 for the one that is compared, else another sample of it."""

    task: Task
    repeat: int = 0

    @property
    def name(self) -> str:
        """Its subject in the ledger."""
        return f"{self.task.task_id} repeat {self.repeat}" if self.repeat else self.task.task_id


def _papers(row: Mapping[str, Any], task: Task) -> Iterator[tuple[Row, str, ReferenceSource]]:
    """The papers of a task that key elements are taken from: key columns, text, source of the text.

    Number 0 is the target.
    """
    key = {"task_id": task.task_id}
    yield {**key, "arxiv_id": row["arxiv_id"], "number": 0}, task.description, "full_text"
    for reference in task.references:
        columns = {**key, "arxiv_id": reference.arxiv_id, "number": reference.number}
        yield columns, reference.text, reference.source


def element_models(settings: Settings) -> list[str]:
    """The models of the writers that read key elements. Raises as `Writers.lookup_all` does."""
    writers = RELATED_WORK_WRITERS.lookup_all(settings)
    return sorted(
        {writer.model for writer, system in writers if system.reads_elements and writer.model}
    )


def _build_key_elements(model: str, month_tasks: MonthTasks, job: Job) -> Iterator[Row]:
    papers = [
        paper
        for row, task in zip(month_tasks.rows, month_tasks.with_texts(job), strict=True)
        for paper in _papers(row, task)
    ]
    settings = settings_for(job.settings, model)

    async def extract(client: LlmClient, paper: tuple[Row, str, ReferenceSource]) -> Extraction:
        _, text, source = paper
        return await extract_known(client, text, source, settings)

    extractions = attempt_all(job, model, papers, extract)
    failed_tasks: set[str] = set()
    for (columns, _, _), extraction in zip(papers, extractions, strict=True):
        paper = columns["arxiv_id"] or f"Reference {columns['number']}"
        subject = f"{columns['task_id']} {paper}"
        if isinstance(extraction, LlmAnswerError):
            leave_out_failed(job, subject, extraction)
            failed_tasks.add(columns["task_id"])
            continue
        if extraction.shortened:
            names = ", ".join(extraction.shortened)
            job.leave_out(
                subject, "shortened", f"longer than CITELOOM_ELEMENT_TOKENS, and cut there: {names}"
            )
        yield {
            **columns,
            "model": model,
            **asdict(extraction.elements),
            "content_cut": extraction.content_cut,
            **asdict(extraction.spent),
        }
    if failed_tasks:
        job.notes[FAILED_TASKS] = sorted(failed_tasks)


def _build_imported(file: Path, month_tasks: MonthTasks, job: Job) -> Iterator[Row]:
    tasks = {row["task_id"]: task_of(row, {}) for row in month_tasks.rows}
    imported = read_texts(
        file, _IMPORTED, {task_id: task.title for task_id, task in tasks.items()}, SYSTEMS
    )
    job.notes["imported"] = list(imported.notes)
    for text in sorted(imported.texts, key=lambda text: (text.system, text.subject_id)):
        task = tasks[text.subject_id]
        summary = make_summary(text.text, task.numbers, {}, Spent())
        yield _summary_row(_Section(task), Writer(text.system), summary, "{}")


def _writer_part(month_tasks: MonthTasks, writer: Writer, system: RelatedWorkSystem) -> MonthPart:
    settings = month_tasks.workspace.settings
    of_writer = settings_for(settings, writer.model, "CITELOOM_SYSTEMS")
    elements = ((tables.KEY_ELEMENTS, writer.model),) if system.reads_elements else ()
    inputs = {"prompts": PROMPTS.digest(*sorted(system.prompts))}
    if writer.model is not None:
        inputs["model"] = _model_fingerprint(settings, writer.model)
    if system.reads_texts:
        inputs |= month_tasks.cited_digests(tables.PAPERS)
    if system.count_examples(settings):
        inputs |= example_inputs(month_tasks.workspace, month_tasks.month)
    if system.reads_passages:
        inputs |= month_tasks.cited_digests(tables.PASSAGES)
    return MonthPart(
        name=writer.name,
        columns=writer.columns,
        build=partial(_build_summaries, writer, system, month_tasks),
        reads=((tables.RELATED_WORK_TASKS, None), *elements),
        settings=system.settings_of(of_writer) | repeat_settings(writer, system, settings),
        version=system.version,
        inputs=inputs,
    )


def _build_summaries(
    writer: Writer, system: RelatedWorkSystem, month_tasks: MonthTasks, job: Job
) -> Iterator[Row]:
    tasks = month_tasks.for_system(job, system)
    elements: Mapping[str, Sequence[KeyElements]] = {}
    states = Counter[str]()
    sections = list(_sections(writer, system, tasks, job.settings))
    if system.reads_elements:
        elements = read_elements(job, month_tasks.rows, writer.model)
        without = [section for section in sections if section.task.task_id not in elements]
        sections = [section for section in sections if section.task.task_id in elements]
        for section in without:
            detail = "its key elements are incomplete: see the ledger of key_elements"
            job.leave_out(section.name, "failed_key_elements", detail)
        states["failed"] = len(without)
    results: Sequence[Summary | LlmAnswerError]
    if system.quote is not None:
        results = [system.quote(section.task, job.settings) for section in sections]
    else:
        results = _write_all(job, writer, system, sections, elements)
    settings = json.dumps(
        system.settings_of(settings_for(job.settings, writer.model)), sort_keys=True
    )
    for section, summary in zip(sections, results, strict=True):
        if isinstance(summary, LlmAnswerError):
            leave_out_failed(job, section.name, summary)
            states["failed"] += 1
            continue
        if system.calls_model:
            # The texts that its prompts were made of.
            shown = [*section.task.texts, *section.task.examples]
            shown += [item.text("") for item in elements.get(section.task.task_id, ())]
            shown += map(PROMPTS.text, ("_guidelines", *sorted(system.prompts)))
            faults = named_faults(summary, shown)
            states.update(["cut" if summary.trace.get("cut") else "written", *faults])
            summary = replace(summary, trace={**summary.trace, "named": faults})
        if not summary.text:
            job.leave_out(section.name, "empty_summary", f"{writer.name} wrote nothing")
        if summary.trace.get("cut"):
            detail = "it ended at the longest answer (CITELOOM_DRAFT_TOKENS, or the model's own)"
            job.leave_out(section.name, "cut", detail)
        yield _summary_row(section, writer, summary, settings)
    if +states:
        job.notes[STATES] = dict(sorted((+states).items()))


def repeat_settings(
    writer: Writer, system: RelatedWorkSystem, settings: Settings
) -> dict[str, object]:
    """The settings of repeats, by name, if a writer's sections have any.

    Without a model all repeats would be equal.
    """
    chosen = not settings.repeated_systems or bool(
        {writer.name, writer.system} & set(settings.repeated_systems)
    )
    several = settings.summary_repeats > 1 and settings.repeated_tasks
    if not (system.calls_model and chosen and several):
        return {}
    return {
        "summary_repeats": settings.summary_repeats,
        "repeated_tasks": settings.repeated_tasks,
    }


def _sections(
    writer: Writer, system: RelatedWorkSystem, tasks: Sequence[Task], settings: Settings
) -> Iterator[_Section]:
    """Every section that a model is to write, by task and repeat; the first tasks have repeats."""
    has_repeats = repeat_settings(writer, system, settings)
    for place, task in enumerate(tasks):
        is_repeated = has_repeats and place < settings.repeated_tasks
        repeats = settings.summary_repeats if is_repeated else 1
        yield from (_Section(task, repeat) for repeat in range(repeats))


def _write_all(
    job: Job,
    writer: Writer,
    system: RelatedWorkSystem,
    sections: Sequence[_Section],
    elements: Mapping[str, Sequence[KeyElements]],
) -> list[Summary | LlmAnswerError]:
    settings = settings_for(job.settings, writer.model)

    async def write(client: LlmClient, section: _Section) -> Summary:
        view = client.view(system.answers_of or system.name, section.repeat)
        return await system.write(
            view, section.task, elements.get(section.task.task_id, ()), settings
        )

    return attempt_all(job, writer.model, sections, write)


def _summary_row(section: _Section, writer: Writer, summary: Summary, settings: str) -> Row:
    return {
        "task_id": section.task.task_id,
        **writer.columns,
        "repeat": section.repeat,
        "settings": settings,
        "text": summary.text,
        "sentences": [asdict(sentence) for sentence in summary.sentences],
        "trace": summary.trace_json(),
        **asdict(summary.spent),
    }


def _model_fingerprint(settings: Settings, model: str) -> str:
    return get_model(settings, model, "CITELOOM_SYSTEMS").fingerprint


def every_task_has_a_section_by_every_writer(workspace: Workspace, month: str) -> CheckResult:
    """Every writer of CITELOOM_SYSTEMS has a section for every task of the month."""
    return RELATED_WORK_WRITERS.check_all_wrote(
        workspace, month, tables.RELATED_WORK_TASKS, tables.SUMMARIES, "task_id"
    )


class KeyElementsOfTasks(PartedStage):
    """Seven key elements of every target and reference (ChatCite, figure 2)."""

    table = tables.KEY_ELEMENTS
    upstream = (tables.RELATED_WORK_TASKS,)
    version = 3
    pool = "llm"
    kinds = ("parquet", "openai")
    asks = "writer"

    def disabled_reason(self, settings: Settings) -> str:
        models = element_models(settings)
        return "" if models else "no system of CITELOOM_SYSTEMS reads key elements"

    def part_settings(self, settings: Settings) -> Mapping[str, Any]:
        models = element_models(settings)
        return {model: settings_for(settings, model).element_tokens for model in models}

    def parts(self, workspace: Workspace, month: str) -> list[MonthPart]:
        settings = workspace.settings
        tasks = MonthTasks(workspace, month)
        inputs = {"prompts": PROMPTS.digest("elements")} | tasks.cited_digests(tables.PAPERS)
        return [
            MonthPart(
                name=model,
                columns={"model": model},
                build=partial(_build_key_elements, model, tasks),
                reads=((tables.RELATED_WORK_TASKS, None),),
                settings={"element_tokens": settings_for(settings, model).element_tokens},
                inputs=inputs | {"model": _model_fingerprint(settings, model)},
            )
            for model in element_models(settings)
        ]


class Summaries(PartedStage):
    """The related work of every task by each writer of CITELOOM_SYSTEMS (ChatCite, its ablations,
    baselines), and sections written elsewhere, from the CSV file of CITELOOM_IMPORTED_SECTIONS.
    """

    table = tables.SUMMARIES
    upstream = (tables.RELATED_WORK_TASKS, tables.KEY_ELEMENTS, tables.PASSAGES)
    pool = "llm"
    kinds = ("parquet", "openai")
    asks = "writer"
    checks = (MonthCheck(every_task_has_a_section_by_every_writer, warning=True),)

    def part_settings(self, settings: Settings) -> Mapping[str, Any]:
        chosen = RELATED_WORK_WRITERS.lookup_all(settings)
        repeats = {
            f"{writer.name} repeats": repeat_settings(writer, system, settings)
            for writer, system in chosen
        }
        return {
            **writer_settings(chosen, settings),
            **repeats,
            "imported": settings.imported_sections,
        }

    def parts(self, workspace: Workspace, month: str) -> list[MonthPart]:
        settings, tasks = workspace.settings, MonthTasks(workspace, month)
        chosen = RELATED_WORK_WRITERS.lookup_all(settings)
        known = {name for writer, _ in chosen for name in (writer.name, writer.system)}
        unknown = sorted(set(settings.repeated_systems) - known)
        if unknown:
            raise SettingError(
                f"CITELOOM_REPEATED_SYSTEMS has {unknown[0]}: name writers of CITELOOM_SYSTEMS"
            )
        parts = [_writer_part(tasks, writer, system) for writer, system in chosen]
        file = settings.imported_sections
        if file is not None:
            content = read_content(file, "CITELOOM_IMPORTED_SECTIONS a CSV file of sections")
            imported = MonthPart(
                name="imported",
                columns=None,
                build=partial(_build_imported, file, tasks),
                reads=((tables.RELATED_WORK_TASKS, None),),
                inputs={"file": hashlib.sha256(content).hexdigest()},
            )
            parts.append(imported)
        return parts


KEY_ELEMENTS = KeyElementsOfTasks()
SUMMARIES = Summaries()
