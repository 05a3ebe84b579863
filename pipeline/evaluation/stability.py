"""Stability: the same tasks written repeatedly, with other samples, and with the references in another order.

After Figure 3 of ChatCite, arXiv 2403.02574: the spread of G-Score and of its six marks over repeated runs, with and
without reflection. How often, on how many tasks and on which the paper does not say; all of that is ours here, and so
are the orders and the other systems.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import json
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median, stdev, variance
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.g_score import Judgement, judge, prompt_digest
from pipeline.evaluation.judging import case_of
from pipeline.evaluation.rouge import METRICS, rouge
from pipeline.evaluation.statistics import mean_mark
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.messages import measured_together
from pipeline.llm.models import judge_models, settings_for
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.stages import writer_inputs
from pipeline.related_work.summary import Summary, cited_numbers
from pipeline.related_work.systems import RELATED_WORK_WRITERS, SYSTEMS, RelatedWorkSystem
from pipeline.related_work.task import Task
from pipeline.related_work.task_reader import read_elements, tasks_for
from pipeline.settings import Settings
from pipeline.storage.writing import Row
from pipeline.tables import CRITERIA
from pipeline.tables.writers import Writer

if TYPE_CHECKING:
    from pipeline.llm.client import LlmClient

FIGURE_3 = ("chatcite", "chatcite_no_reflection")
"""The systems of the paper's figure: with reflection and without, repeated whatever CITELOOM_SYSTEMS names."""
ORDER, SAMPLES = "order", "samples"


@dataclass(frozen=True, slots=True)
class Target:
    """A task as one writer has it, with the key elements of its papers: the target's, then in order; none for a system
    that reads none."""

    row: Mapping[str, Any]
    task: Task
    elements: Sequence[KeyElements]


@dataclass(frozen=True, slots=True)
class Repeat:
    """One section that is to be written. `order`: numbers of the references in the order in which they are taken."""

    target: Target
    writer: Writer
    varied: str
    repeat: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the runs of one system lie apart, a run being one repeat over all tasks: its mean over them.

    low, median, high: over runs. `sd`: standard deviation of the runs; `sd_of_a_task`: of one task's repeats, pooled
    over the tasks, which is what one section may differ by. Both are of samples, over n - 1. A task that lacks a run,
    as a repeat could not be judged or it has fewer orders, does not count: runs over unlike tasks would differ by the
    tasks.
    """

    system: str
    varied: str
    tasks: int
    runs: tuple[float, ...]
    low: float
    median: float
    high: float
    mean: float
    sd: float
    sd_of_a_task: float


def off(settings: Settings) -> str:
    """Why nothing is repeated, where no task is to be."""
    return "" if settings.stability_tasks else "CITELOOM_STABILITY_TASKS is 0"


def build(job: Job) -> Iterator[Row]:
    """Rows of `stability`, by task, writer, what was varied, and repeat."""
    repeats = list(_repeats(job))
    job.expect(len(repeats))
    judge_name = judge_models(job.settings)[0].name
    for repeat, (summary, judgement) in zip(repeats, run(_make_all(job, repeats)), strict=True):
        _note(job, repeat, summary, judgement)
        yield _row(repeat, summary, judgement, judge_name)


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What the rows depend on besides tables: the judge, and of each writer its settings, prompts and papers."""
    if off(workspace.settings):
        return {}
    fingerprint = judge_models(workspace.settings)[0].fingerprint
    found = {"judge": f"{fingerprint}, {prompt_digest()}"}
    for writer, system in repeated_writers(workspace.settings):
        own = system.chosen_settings(settings_for(workspace.settings, writer.model))
        found[writer.name] = json.dumps([own, dict(writer_inputs(writer, system, workspace, month))], sort_keys=True)
    return found


def repeated_writers(settings: Settings) -> list[tuple[Writer, RelatedWorkSystem]]:
    """The writers of CITELOOM_SYSTEMS that call a model, and those of Figure 3 by the default model, by name.

    Without a model a section is always the same.
    """
    figure = {Writer(system, settings.llm_model): SYSTEMS[system] for system in FIGURE_3}
    writers = figure | {
        writer: system for writer, system in RELATED_WORK_WRITERS.chosen(settings) if system.calls_model
    }
    return sorted(writers.items(), key=lambda item: item[0].name)


def _repeats(job: Job) -> Iterator[Repeat]:
    """All sections that are to be written, of the first tasks of the month by id; missing orders go to the ledger."""
    tasks = job.iterate(tables.RELATED_WORK_TASKS)
    rows = heapq.nsmallest(job.settings.stability_tasks, tasks, key=lambda row: str(row["task_id"]))
    writers = repeated_writers(job.settings)
    targets = {writer: _targets(job, rows, writer, system) for writer, system in writers}
    wanted = job.settings.stability_repeats
    for place, row in enumerate(rows):
        own = tuple(reference["number"] for reference in row["references"])
        found = orders(row["task_id"], own, wanted)
        if len(found) < wanted:
            detail = f"{len(own)} references have {len(found)} orders, CITELOOM_STABILITY_REPEATS is {wanted}"
            job.leave_out(row["task_id"], "no_other_order", detail)
        for writer, _ in writers:
            target = targets[writer][place]
            yield from (Repeat(target, writer, ORDER, repeat, order) for repeat, order in enumerate(found))
            yield from (Repeat(target, writer, SAMPLES, repeat, own) for repeat in range(wanted))


def _targets(job: Job, rows: Sequence[Mapping[str, Any]], writer: Writer, system: RelatedWorkSystem) -> list[Target]:
    elements = read_elements(job, rows, writer.model) if system.reads_elements else {}
    tasks = tasks_for(job, rows, system)
    return [Target(row, task, elements.get(task.task_id, ())) for row, task in zip(rows, tasks, strict=True)]


def orders(task_id: str, numbers: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """`count` orders of a task's references, or as many as there are: their own, then shuffled ones, no two alike.

    Shuffled by digest of task, attempt and number: the same on every machine, and for every count.
    """
    found = [tuple(numbers)]
    attempt = 0
    while len(found) < min(count, math.factorial(len(numbers))):
        attempt += 1
        shuffled = tuple(sorted(numbers, key=lambda number: _digest(task_id, attempt, number)))
        if shuffled not in found:
            found.append(shuffled)
    return found


def _digest(task_id: str, attempt: int, number: int) -> bytes:
    return hashlib.sha256(f"{task_id}\0{attempt}\0{number}".encode()).digest()


def reordered(target: Target, order: Sequence[int]) -> tuple[Task, list[KeyElements]]:
    """The task with its references in this order, and the key elements of its papers too.

    Each reference keeps its number: a section is to cite the same work by the same [Reference i] in whatever order it
    came, so that ROUGE, coverage and the judge's list of references mean the same.
    """
    task = target.task
    place_of = {reference.number: place for place, reference in enumerate(task.references)}
    places = [place_of[number] for number in order]
    moved = replace(task, references=tuple(task.references[place] for place in places))
    elements = target.elements
    return moved, [elements[0], *(elements[place + 1] for place in places)] if elements else []


async def _make_all(job: Job, repeats: Sequence[Repeat]) -> list[tuple[Summary, Judgement]]:
    """Every section with its judgement, side by side; none waits for another."""
    done = 0
    judge_model = judge_models(job.settings)[0]

    async def make(clients: Mapping[str, LlmClient], repeat: Repeat) -> tuple[Summary, Judgement]:
        nonlocal done
        summary = await _write(clients[repeat.writer.model or ""], repeat, job)
        case = case_of(repeat.target.row, {repeat.writer.name: summary.text})
        judgement = await judge(clients[judge_model.name], case, [repeat.writer.name], judge_model.context)
        done += 1
        job.advance(done)
        return summary, judgement

    models = {repeat.writer.model or "" for repeat in repeats} | {judge_model.name}
    async with _clients(job, models) as clients:
        return await side_by_side(make(clients, repeat) for repeat in repeats)


@contextlib.asynccontextmanager
async def _clients(job: Job, models: Collection[str]) -> AsyncIterator[dict[str, LlmClient]]:
    """A client for each of these models; those of one endpoint share its limit on calls in flight."""
    from pipeline.llm.client import open_client

    clients: dict[str, LlmClient] = {}
    async with contextlib.AsyncExitStack() as stack:
        for model in sorted(models):
            client = await stack.enter_async_context(open_client(job.workspace, model))
            same = [other for other in clients.values() if other.model.url == client.model.url]
            if same:
                client.limiter = same[0].limiter
            clients[model] = client
        yield clients
        job.measured |= measured_together(client.usage for client in clients.values())


async def _write(client: LlmClient, repeat: Repeat, job: Job) -> Summary:
    """Repeat 0 makes the calls of the month's own section, whose answers are stored already."""
    task, elements = reordered(repeat.target, repeat.order)
    view = client.view(repeat.writer.system, repeat.repeat if repeat.varied == SAMPLES else 0)
    settings = settings_for(job.settings, repeat.writer.model)
    return await SYSTEMS[repeat.writer.system].write(view, task, elements, settings)


def _note(job: Job, repeat: Repeat, summary: Summary, judgement: Judgement) -> None:
    subject = f"{repeat.target.task.task_id} {repeat.writer.name} {repeat.varied} {repeat.repeat}"
    if not summary.text:
        job.leave_out(subject, "empty_summary", "the model wrote nothing")
    if judgement.failure is not None:
        job.leave_out(subject, *judgement.failure)
    if judgement.cut:
        job.leave_out(subject, "cut_for_judge", f"the judge read the beginning of: {', '.join(judgement.cut)}")


def _row(repeat: Repeat, summary: Summary, judgement: Judgement, judge_name: str) -> Row:
    gold = repeat.target.row["gold"]
    numbers = repeat.target.task.numbers
    judged = judgement.marks.get(repeat.writer.name)
    marks = judged.model_dump() if judged else None
    return {
        "task_id": repeat.target.task.task_id,
        **repeat.writer.columns,
        "varied": repeat.varied,
        "repeat": repeat.repeat,
        "order": list(repeat.order),
        "text": summary.text,
        **(rouge(gold, summary.text) if gold else dict.fromkeys(METRICS)),
        "coverage": len(numbers.intersection(cited_numbers(summary.text))) / len(numbers) if numbers else None,
        **{f"g_{criterion}": float(marks[criterion]) if marks else None for criterion in CRITERIA},
        "g_score": mean_mark(marks) if marks else None,
        "judge": judge_name,
        **asdict(summary.spent + judgement.spent),
    }


def spread(rows: Iterable[Mapping[str, Any]], metric: str = "g_score") -> list[Spread]:
    """How far repeats lie apart, of each system and what was varied, by these; `rows`: of the table `stability`.

    metric: any of the table's numbers. A system that has not two runs with it over the same tasks is not among them.
    """
    groups: dict[tuple[str, str], dict[str, dict[int, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        groups[row["system"], row["varied"]][row["task_id"]][row["repeat"]] = row[metric]
    found = (_spread(*names, tasks) for names, tasks in sorted(groups.items()))
    return [each for each in found if each is not None]


def _spread(system: str, varied: str, tasks: Mapping[str, Mapping[int, float | None]]) -> Spread | None:
    runs = max(len(values) for values in tasks.values())
    whole = [known for values in tasks.values() if len(known := _known(values)) == runs]
    if runs < 2 or not whole:
        return None
    means = tuple(fmean(run) for run in zip(*whole, strict=True))
    return Spread(
        system=system,
        varied=varied,
        tasks=len(whole),
        runs=means,
        low=min(means),
        median=median(means),
        high=max(means),
        mean=fmean(means),
        sd=stdev(means),
        sd_of_a_task=math.sqrt(fmean(variance(values) for values in whole)),
    )


def _known(values: Mapping[int, float | None]) -> list[float]:
    """The values that are there, by repeat."""
    return [value for _, value in sorted(values.items()) if value is not None]
