"""The stages `key_elements` and `summaries`. Not here: tasks (`tasks`), and the systems' methods.

Every task is a coroutine of its own over one client; none waits for another. `llm_url` is not among the settings:
answers belong to a model's name, and the same model at another address changes no row. What a row says of calls and
tokens counts cached calls as the rest, so that a resumed run writes the same bytes as an undisturbed one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline import tables
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.related_work.examples import choose_examples, cited_papers, corpus_examples, example_inputs
from pipeline.related_work.key_elements import Extraction, KeyElements, extract_known
from pipeline.related_work.prompting import PROMPTS, Passage, Source, Task
from pipeline.related_work.reading import (
    in_corpus,
    reference_months,
    reference_passages,
    reference_texts,
    task_of,
)
from pipeline.related_work.summary import Summary
from pipeline.related_work.systems import SYSTEMS, System, chosen_systems
from pipeline.related_work.tasks import papers_digests
from pipeline.settings import Settings
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Row, read_provenance


@dataclass(frozen=True, slots=True)
class _Paper:
    """One paper of one task that key elements are taken from; number 0 is the target."""

    task_id: str
    arxiv_id: str | None
    number: int
    text: str
    source: Source


def _tasks(job: Job) -> list[tuple[dict[str, Any], Task]]:
    """The month's tasks by id, each with its row; references without a text go to the ledger."""
    rows = sorted(job.rows(tables.RELATED_WORK_TASKS), key=lambda row: row["task_id"])
    texts = reference_texts(job.workspace, rows)
    for row in rows:
        for reference in row["references"]:
            if in_corpus(reference) and reference["arxiv_id"] not in texts:
                detail = f"{reference['arxiv_id']} is not in papers any more; its title alone is used"
                job.leave_out(row["task_id"], "reference_without_text", detail)
    return [(row, task_of(row, texts)) for row in rows]


def _tasks_to_write(job: Job, systems: Sequence[System]) -> list[Task]:
    """The month's tasks with what these systems want besides: examples of style, passages of the references."""
    found = _tasks(job)
    examples = _examples(job, [row for row, _ in found], systems)
    passages = _passages(job, [row for row, _ in found], systems)
    return [
        replace(
            task,
            examples=shown,
            passages={each.number: passages.get(each.arxiv_id or "", ()) for each in task.references},
        )
        for (_, task), shown in zip(found, examples, strict=True)
    ]


def _examples(job: Job, rows: Sequence[Mapping[str, Any]], systems: Sequence[System]) -> list[tuple[str, ...]]:
    """For each task its examples, as many as the system that shows most of them wants."""
    count = max(system.examples(job.settings) for system in systems)
    if not count:
        return [()] * len(rows)
    found, cites = corpus_examples(job.workspace, job.month), cited_papers(job.workspace, job.month)
    return [choose_examples(found, row["arxiv_id"], _cited(row, cites), count) for row in rows]


def _cited(row: Mapping[str, Any], cites: Mapping[str, frozenset[str]]) -> set[str]:
    told = {each["arxiv_id"] for each in row["references"] if each["arxiv_id"]}
    return told | cites.get(row["arxiv_id"], frozenset())


def _passages(
    job: Job, rows: Sequence[Mapping[str, Any]], systems: Sequence[System]
) -> Mapping[str, tuple[Passage, ...]]:
    if not any(system.reads_passages for system in systems):
        return {}
    wanted = {each["arxiv_id"] for row in rows for each in row["references"] if in_corpus(each)}
    return reference_passages(job.workspace, wanted)


def _papers(row: Mapping[str, Any], task: Task) -> Iterator[_Paper]:
    yield _Paper(task.task_id, row["arxiv_id"], 0, task.description, "full_text")
    for reference, text in zip(task.references, task.contents, strict=True):
        yield _Paper(task.task_id, reference.arxiv_id, reference.number, text, reference.source)


def _build_key_elements(job: Job) -> Iterator[Row]:
    papers = [paper for row, task in _tasks(job) for paper in _papers(row, task)]
    for paper, extraction in zip(papers, run(_extract_all(job, papers)), strict=True):
        if extraction.failure is not None:
            subject = f"{paper.task_id} {paper.arxiv_id or f'Reference {paper.number}'}"
            job.leave_out(subject, "unreadable_answer", extraction.failure)
        yield _element_row(paper, extraction, job.settings.llm_model)


async def _extract_all(job: Job, papers: Sequence[_Paper]) -> list[Extraction]:
    settings = job.settings
    async with open_client(job.workspace) as client:
        found = await side_by_side(
            extract_known(client, paper.text, paper.source, settings.llm_context, settings.element_tokens)
            for paper in papers
        )
        job.measured |= client.usage.measured()
    return found


def _element_row(paper: _Paper, extraction: Extraction, model: str) -> Row:
    return {
        "task_id": paper.task_id,
        "arxiv_id": paper.arxiv_id,
        "number": paper.number,
        "model": model,
        **asdict(extraction.elements),
        "content_cut": extraction.content_cut,
        **asdict(extraction.spent),
    }


def _build_summaries(job: Job) -> Iterator[Row]:
    systems = chosen_systems(job.settings.systems)
    elements = _elements(job)
    work = [(task, system) for task in _tasks_to_write(job, systems) for system in systems]
    written = run(_write_all(job, work, elements))
    job.notes["citations"] = _citation_notes(zip(work, written, strict=True))
    for (task, system), summary in zip(work, written, strict=True):
        if not summary.text:
            job.leave_out(f"{task.task_id} {system.name}", "empty_summary", "the model wrote nothing")
        yield _summary_row(task, system, summary, job.settings)


def _citation_notes(written: Iterable[tuple[tuple[Task, System], Summary]]) -> dict[str, dict[str, int]]:
    """System → what is amiss with the citations of its sections, counted over the month."""
    found: dict[str, Counter[str]] = {}
    for (_, system), summary in written:
        told = summary.trace["citations"]
        amiss = {name: told[name] if isinstance(told[name], int) else len(told[name]) for name in sorted(told)}
        found.setdefault(system.name, Counter()).update(amiss)
    return {name: dict(counts) for name, counts in found.items()}


def _elements(job: Job) -> dict[str, list[KeyElements]]:
    """Key elements of each task's papers in order: the target's, then each reference's."""
    rows = sorted(job.rows(tables.KEY_ELEMENTS), key=lambda row: (row["task_id"], row["number"]))
    found: dict[str, list[KeyElements]] = {}
    for row in rows:
        found.setdefault(row["task_id"], []).append(KeyElements.of_row(row))
    return found


async def _write_all(
    job: Job, work: Sequence[tuple[Task, System]], elements: Mapping[str, Sequence[KeyElements]]
) -> list[Summary]:
    async def write(client: LlmClient, task: Task, system: System) -> Summary:
        return await system.write(client, task, elements[task.task_id], job.settings)

    async with open_client(job.workspace) as client:
        written = await side_by_side(write(client, task, system) for task, system in work)
        job.measured |= client.usage.measured()
    return written


def _summary_row(task: Task, system: System, summary: Summary, settings: Settings) -> Row:
    return {
        "task_id": task.task_id,
        "system": system.name,
        "model": settings.llm_model,
        "settings": json.dumps(system.chosen_settings(settings), sort_keys=True),
        "text": summary.text,
        "sentences": [asdict(each) for each in summary.sentences],
        "trace": summary.trace_json(),
        **asdict(summary.spent),
    }


def _element_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    return {"prompts": PROMPTS.digest("elements")} | _reference_inputs(workspace, month)


def _summary_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    systems = chosen_systems(workspace.settings.systems)
    chosen = sorted({prompt for system in systems for prompt in system.prompts})
    found = {"prompts": PROMPTS.digest(*chosen)} | _reference_inputs(workspace, month)
    if any(system.examples(workspace.settings) for system in systems):
        found |= example_inputs(workspace, month)
    if any(system.reads_passages for system in systems):
        found |= _passage_inputs(workspace, month)
    return found


def _passage_inputs(workspace: Workspace, month: str) -> dict[str, str]:
    """Digests of the months of `passages` in which the tasks' references lie."""
    months = sorted(reference_months(workspace.root.rows(tables.RELATED_WORK_TASKS, month, ["references"])))
    found = {other: read_provenance(workspace.root.file(tables.PASSAGES, other)) for other in months}
    return {f"passages {other}": written.rows_sha256 for other, written in found.items() if written}


def _reference_inputs(workspace: Workspace, month: str) -> dict[str, str]:
    """Digests of the months of `papers` in which the tasks' references lie."""
    rows = workspace.root.rows(tables.RELATED_WORK_TASKS, month, ["references"])
    return papers_digests(workspace, reference_months(rows))


KEY_ELEMENTS = Stage(
    table=tables.KEY_ELEMENTS,
    build=_build_key_elements,
    upstream=(tables.RELATED_WORK_TASKS,),
    settings=("llm_model", "llm_context", "element_tokens"),
    inputs=_element_inputs,
)

SUMMARIES = Stage(
    table=tables.SUMMARIES,
    build=_build_summaries,
    upstream=(tables.RELATED_WORK_TASKS, tables.KEY_ELEMENTS),
    settings=("systems", *dict.fromkeys(name for system in SYSTEMS.values() for name in system.settings)),
    inputs=_summary_inputs,
)
