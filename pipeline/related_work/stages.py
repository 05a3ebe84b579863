"""The stages `key_elements` and `summaries`. Not here: tasks (`tasks`), and the systems' methods.

Every task is a coroutine of its own over one client; none waits for another. `llm_url` is not among the settings:
answers belong to a model's name, and the same model at another address changes no row. What a row says of calls and
tokens counts cached calls as the rest, so that a resumed run writes the same bytes as an undisturbed one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline import tables
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.related_work.key_elements import Extraction, KeyElements, extract
from pipeline.related_work.prompting import PROMPTS, Task
from pipeline.related_work.reading import reference_months, reference_texts, task_of
from pipeline.related_work.summary import Summary
from pipeline.related_work.systems import SYSTEMS, System, chosen_systems
from pipeline.related_work.tasks import papers_digests
from pipeline.settings import Settings
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Row


@dataclass(frozen=True, slots=True)
class _Paper:
    """One paper of one task that key elements are taken from; number 0 is the target."""

    task_id: str
    arxiv_id: str
    number: int
    text: str


def _tasks(job: Job) -> list[tuple[dict[str, Any], Task]]:
    """The month's tasks by id, each with its row; references without a text go to the ledger."""
    rows = sorted(job.rows(tables.RELATED_WORK_TASKS), key=lambda row: row["task_id"])
    texts = reference_texts(job.workspace, rows)
    for row in rows:
        for reference in row["references"]:
            if reference["arxiv_id"] not in texts:
                detail = f"{reference['arxiv_id']} is not in papers any more; its title alone is used"
                job.leave_out(row["task_id"], "reference_without_text", detail)
    return [(row, task_of(row, texts)) for row in rows]


def _papers(row: Mapping[str, Any], task: Task) -> Iterator[_Paper]:
    yield _Paper(task.task_id, row["arxiv_id"], 0, task.description)
    for reference, text in zip(task.references, task.contents, strict=True):
        yield _Paper(task.task_id, reference.arxiv_id, reference.number, text)


def _build_key_elements(job: Job) -> Iterator[Row]:
    papers = [paper for row, task in _tasks(job) for paper in _papers(row, task)]
    for paper, extraction in zip(papers, run(_extract_all(job, papers)), strict=True):
        if extraction.failure is not None:
            subject = f"{paper.task_id} {paper.arxiv_id}"
            job.leave_out(subject, "unreadable_answer", extraction.failure)
        yield _element_row(paper, extraction, job.settings.llm_model)


async def _extract_all(job: Job, papers: Sequence[_Paper]) -> list[Extraction]:
    settings = job.settings
    async with open_client(job.workspace) as client:
        found = await side_by_side(
            extract(client, paper.text, context=settings.llm_context, element_tokens=settings.element_tokens)
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
    work = [(task, system) for _, task in _tasks(job) for system in systems]
    for (task, system), summary in zip(work, run(_write_all(job, work, elements)), strict=True):
        if not summary.text:
            job.leave_out(f"{task.task_id} {system.name}", "empty_summary", "the model wrote nothing")
        yield _summary_row(task, system, summary, job.settings)


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
        "sentences": [{"text": each.text, "references": list(each.references)} for each in summary.sentences],
        "trace": summary.trace_json(),
        **asdict(summary.spent),
    }


def _element_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    return {"prompts": PROMPTS.digest("elements")} | _reference_inputs(workspace, month)


def _summary_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    chosen = [prompt for system in chosen_systems(workspace.settings.systems) for prompt in system.prompts]
    return {"prompts": PROMPTS.digest(*chosen)} | _reference_inputs(workspace, month)


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
