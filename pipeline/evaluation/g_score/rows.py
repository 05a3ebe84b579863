"""The stage `g_scores`: the judge's conversations about the sections of a month.

Every conversation is a coroutine of its own, and none waits for another's answer. A row counts
cached calls and their tokens as the rest, so that a resumed run writes the same bytes as an
undisturbed one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.g_score.judge import PROMPT, PROMPTS, Judgement, judge
from pipeline.evaluation.g_score.sample import Assignment, assign, candidate_sets, read_repeats
from pipeline.llm.loop import run
from pipeline.llm.models import Model, judge_model
from pipeline.llm.stage_loop import job_client, map_concurrently
from pipeline.storage.writing import Row
from pipeline.tables.writers import parse_writer


def build(job: Job) -> Iterator[Row]:
    """Rows of `g_scores`, by task, candidate set, repeat of the sections and repeat; failures are
    in the ledger.
    """
    model = judge_model(job.settings)
    tasks = read_repeats(job)
    sets = candidate_sets(
        job.settings, {writer for repeats in tasks for writer in repeats[0].sections}
    )
    assignments: list[Assignment] = []
    for repeats in tasks:
        if repeats[0].gold.strip():
            assignments += assign(repeats, sets, job.settings.judge_repeats)
        else:
            reason = "the task has no gold section, which is what sections are measured by"
            job.leave_out(repeats[0].task_id, "no_gold", reason)
    judgements = run(_judge_all(job, model, assignments)) if assignments else []
    results = sorted(zip(assignments, judgements, strict=True), key=lambda pair: pair[0].key)
    _note(job, model, results)
    for assignment, judgement in results:
        if judgement.failure is None:
            yield _row(assignment, judgement, model.name)


async def _judge_all(job: Job, model: Model, assignments: Sequence[Assignment]) -> list[Judgement]:
    """The judgements of all assignments, in their order."""
    async with job_client(job, model.name) as client:
        return await map_concurrently(
            job,
            assignments,
            lambda assignment: judge(client, assignment.task, assignment.order, model.context),
            at_once=model.concurrency,
        )


def _row(assignment: Assignment, judgement: Judgement, judge_name: str) -> Row:
    return {
        "task_id": assignment.task.task_id,
        "candidate_set": assignment.candidate_set,
        "section_repeat": assignment.section_repeat,
        "judge": judge_name,
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


def _note(job: Job, model: Model, results: Sequence[tuple[Assignment, Judgement]]) -> None:
    """Judgements by candidate set; to the ledger, what was not judged, and what was cut, once for a
    task and set, since every order cuts the same.
    """
    cut: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    judged: Counter[str] = Counter()
    for assignment, judgement in results:
        task_id = assignment.task.task_id
        conversation = f"{model.name}, candidate set {assignment.candidate_set}"
        cut[task_id, conversation] |= dict.fromkeys(judgement.cut)
        if judgement.failure is None:
            judged[assignment.candidate_set] += 1
            continue
        reason, detail = judgement.failure
        place = f"repeat {assignment.repeat}"
        if assignment.section_repeat:
            place = f"repeat {assignment.section_repeat} of the sections"
        job.leave_out(task_id, reason, f"{conversation}, {place}: {detail}")
    for (task_id, conversation), texts in cut.items():
        if texts:
            read = f"the judge read the beginning of: {', '.join(texts)}"
            job.leave_out(task_id, "cut_for_judge", f"{conversation}: {read}")
    job.notes["judged"] = dict(sorted(judged.items()))


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Inputs besides tables and settings: the judge and its prompt."""
    judge_fingerprint = judge_model(workspace.settings).fingerprint
    return {"prompt": PROMPTS.digest(PROMPT), "judges": judge_fingerprint}
