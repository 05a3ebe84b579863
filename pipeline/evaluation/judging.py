"""The stage `g_scores`: which conversations each judge is led through, and their rows.

The sections of a task are judged together; those of systems that wrote a task repeatedly also
alone, each repeat.

Every conversation is a coroutine of its own, and none waits for another's answer. What a row says
of calls and tokens counts cached calls as the rest, so that a resumed run writes the same bytes as
an undisturbed one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.g_score import NO_GOLD, Case, Judgement, judge, prompt_digest, shown_orders
from pipeline.llm.loop import run
from pipeline.llm.models import Model, judge_models, judges_fingerprint
from pipeline.llm.stage_loop import job_client, map_concurrently
from pipeline.settings import Settings
from pipeline.storage.writing import Row
from pipeline.tables.writers import parse_writer, short_names, with_shown_name, writer_name

TOGETHER, ALONE = "together", "alone"
_TASK_COLUMNS = ["task_id", "description", "references", "gold"]
# Four times what the judge reads of the target at most, so that a month of full papers is never
# held.
_DESCRIPTION_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class _Assignment:
    """What one judge is to judge in one conversation: sections of a case in an order.

    repeat: of this conversation where sections are judged together, of the section where it is
    judged alone.
    """

    case: Case
    mode: str
    judge: Model
    repeat: int
    order: tuple[str, ...]

    @property
    def place(self) -> str:
        if self.mode == TOGETHER:
            return f"repeat {self.repeat}"
        return f"of {self.order[0]}" + (f" repeat {self.repeat}" if self.repeat else "")


def build(job: Job) -> Iterator[Row]:
    """Rows of `g_scores`, by task, mode, judge, repeat and order; what could not be judged is in
    the ledger.
    """
    models = judge_models(job.settings)
    tasks = [repeats for repeats in _cases(job) if _has_gold(job, repeats[0])]
    assignments = [
        assignment
        for repeats in tasks
        for assignment in _assignments(repeats, job.settings, models)
    ]
    judgements = run(_judge_all(job, models, assignments)) if assignments else []
    results = sorted(zip(assignments, judgements, strict=True), key=lambda pair: _key(pair[0]))
    _note(job, results)
    yield from (
        _row(assignment, judgement)
        for assignment, judgement in results
        if judgement.failure is None
    )


def case_of(task: Mapping[str, Any], sections: Mapping[str, str]) -> Case:
    """What a judge is told of a row of `related_work_tasks`, with the sections to judge: writer's
    name → text.
    """
    return Case(
        task_id=task["task_id"],
        target=task["description"][:_DESCRIPTION_CHARS],
        references="\n".join(_reference_line(reference) for reference in task["references"]),
        gold=task["gold"],
        sections=dict(sorted(sections.items())),
    )


def _cases(job: Job) -> list[list[Case]]:
    """The tasks for which anything was written, by task id: for each a case of every repeat, from
    0.
    """
    sections: dict[str, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in job.iterate(tables.SUMMARIES, ["task_id", "system", "model", "repeat", "text"]):
        sections[row["task_id"]][row["repeat"]][writer_name(row)] = row["text"]
    cases = [
        [case_of(task, texts) for _, texts in sorted(sections[task["task_id"]].items())]
        for task in job.iterate(tables.RELATED_WORK_TASKS, _TASK_COLUMNS)
        if task["task_id"] in sections
    ]
    return sorted(cases, key=lambda repeats: repeats[0].task_id)


def _has_gold(job: Job, case: Case) -> bool:
    if case.gold.strip():
        return True
    job.leave_out(case.task_id, *NO_GOLD)
    return False


def _reference_line(reference: Mapping[str, Any]) -> str:
    year = f" ({reference['year']})" if reference["year"] else ""
    return f"[Reference {reference['number']}] {reference['title']}{year}"


def _assignments(
    repeats: Sequence[Case], settings: Settings, models: Sequence[Model]
) -> Iterator[_Assignment]:
    """All over one task: every judge, the systems together in so many orders, then each repeated
    section by itself.

    repeats: the case of every repeat, from 0.

    The orders are those of the task whatever CITELOOM_JUDGE_REPEATS is, so more repeats keep the
    answers that are there; and they are the same for every judge, so that judges compare in the
    same conversations.
    """
    case = repeats[0]
    repeated = repeats[1].sections if len(repeats) > 1 else {}
    # By short names: judgements that were paid for before writers had models stay usable.
    names = {short: name for name, short in short_names(case.sections).items()}
    shown = islice(shown_orders(case.task_id, names), settings.judge_repeats)
    orders = [tuple(names[short] for short in order) for order in shown]
    for model in models:
        yield from (
            _Assignment(case, TOGETHER, model, repeat, order) for repeat, order in enumerate(orders)
        )
        for repeat, of_repeat in enumerate(repeats):
            yield from (
                _Assignment(of_repeat, ALONE, model, repeat, (writer,)) for writer in repeated
            )


async def _judge_all(
    job: Job, models: Sequence[Model], assignments: Sequence[_Assignment]
) -> list[Judgement]:
    """The judgements of all assignments, in their order, over one client for each judge.

    The highest limit of a judge is that of all together, as they may share an endpoint.
    """
    async with AsyncExitStack() as opened:
        clients = {
            model.name: await opened.enter_async_context(job_client(job, model.name))
            for model in models
        }
        return await map_concurrently(
            job,
            assignments,
            lambda each: judge(clients[each.judge.name], each.case, each.order, each.judge.context),
            at_once=max(model.concurrency for model in models),
        )


def named_judgement(
    row: Mapping[str, Any], shown: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A row of `g_scores` with writers' names in the `system` of its marks, and in its order and
    vote.

    shown: name → the name to use in its place, as `short_names` gives it.
    """
    names = shown or {}
    named = {**row, "marks": [with_shown_name(marks, shown) for marks in row["marks"]]}
    named |= {
        column: [names.get(name, name) for name in row[column] or ()]
        for column in ("order", "cut")
        if column in row
    }
    return named | {"best": names.get(row["best"], row["best"])}


def _key(assignment: _Assignment) -> tuple[Any, ...]:
    return (
        assignment.case.task_id,
        assignment.mode,
        assignment.judge.name,
        assignment.repeat,
        assignment.order,
    )


def _row(assignment: _Assignment, judgement: Judgement) -> Row:
    return {
        "task_id": assignment.case.task_id,
        "mode": assignment.mode,
        "judge": assignment.judge.name,
        "repeat": assignment.repeat,
        "order": list(assignment.order),
        "marks": [
            {**parse_writer(name).columns, **judgement.marks[name].model_dump()}
            for name in assignment.order
        ],
        "best": judgement.best,
        "cut": list(judgement.cut),
        **asdict(judgement.spent),
    }


def _note(job: Job, results: Sequence[tuple[_Assignment, Judgement]]) -> None:
    """Judgements by mode; to the ledger, what was not judged, and what was cut, once for a task,
    mode and judge, since every repeat cuts the same.
    """
    cut: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for assignment, judgement in results:
        subject, who = assignment.case.task_id, f"{assignment.judge.name}, {assignment.mode}"
        cut[subject, who] |= dict.fromkeys(judgement.cut)
        if judgement.failure is not None:
            reason, detail = judgement.failure
            job.leave_out(subject, reason, f"{who}, {assignment.place}: {detail}")
    for (subject, who), texts in cut.items():
        if texts:
            job.leave_out(
                subject,
                "cut_for_judge",
                f"{who}: the judge read the beginning of: {', '.join(texts)}",
            )
    judged = Counter(
        assignment.mode for assignment, judgement in results if judgement.failure is None
    )
    job.notes["judged"] = dict(sorted(judged.items()))


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What judgements depend on besides tables and settings: the judges and their prompt."""
    return {"prompt": prompt_digest(), "judges": judges_fingerprint(workspace.settings)}
