"""Scores of a month's summaries: ROUGE for each, and one judgement for each task. Not here: the measures themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline import progress, tables
from pipeline.evaluation.g_score import (
    Case,
    Conversation,
    Judgement,
    NoRoom,
    conversation,
    judge,
    metrics,
    prompt_digest,
    write_order,
)
from pipeline.evaluation.rouge import rouge
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.messages import LlmAnswerError
from pipeline.stages import Job, Workspace
from pipeline.tables import Row

if TYPE_CHECKING:
    from pipeline.llm.client import LlmClient

_TASK_COLUMNS = ["task_id", "description", "references", "gold"]
# Four times what the judge reads of the target at most, so that a month of full papers is never held.
_DESCRIPTION_CHARS = 8_000


def score(job: Job) -> Iterator[Row]:
    """Rows of `scores`, by task, system and metric."""
    cases = _cases(job)
    rows = [row for case in cases for row in _rouge_rows(case)]
    rows.extend(_judged_rows(job, cases))
    yield from sorted(rows, key=lambda row: (row["task_id"], row["system"], row["metric"]))


def _cases(job: Job) -> list[Case]:
    """The tasks for which anything was written, by task id."""
    written: dict[str, dict[str, str]] = defaultdict(dict)
    for row in job.iterate(tables.SUMMARIES, ["task_id", "system", "text"]):
        written[row["task_id"]][row["system"]] = row["text"]
    tasks = job.iterate(tables.RELATED_WORK_TASKS, _TASK_COLUMNS)
    cases = [_case(task, written[task["task_id"]]) for task in tasks if task["task_id"] in written]
    return sorted(cases, key=lambda case: case.task_id)


def _case(task: Mapping[str, Any], sections: Mapping[str, str]) -> Case:
    return Case(
        task_id=task["task_id"],
        target=task["description"][:_DESCRIPTION_CHARS],
        references="\n".join(_reference_line(reference) for reference in task["references"]),
        gold=task["gold"],
        sections=dict(sorted(sections.items())),
    )


def _reference_line(reference: Mapping[str, Any]) -> str:
    year = f" ({reference['year']})" if reference["year"] else ""
    return f"[Reference {reference['number']}] {reference['title']}{year}"


def _rouge_rows(case: Case) -> Iterator[dict[str, Any]]:
    for system, text in case.sections.items():
        for metric, value in rouge(case.gold, text).items():
            yield _row(case, system, metric, value)


def _row(
    case: Case, system: str, metric: str, value: float, judge: str | None = None, order: str | None = None
) -> dict[str, Any]:
    return {
        "task_id": case.task_id,
        "system": system,
        "metric": metric,
        "value": value,
        "judge": judge,
        "order": order,
        "repeat": 0,
    }


def _judged_rows(job: Job, cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    asked = {case.task_id: _conversation(job, case) for case in cases}
    open_cases = [(case, made) for case in cases if (made := asked[case.task_id]) is not None]
    answers = run(_judge_all(job, [made for _, made in open_cases])) if open_cases else []
    for (case, made), answer in zip(open_cases, answers, strict=True):
        _note_cuts(job, case, made)
        if isinstance(answer, Judgement):
            yield from _g_rows(case, answer, job.settings.llm_model)
        else:
            job.leave_out(case.task_id, "unreadable_judgement", str(answer))
    job.notes["judged"] = sum(isinstance(answer, Judgement) for answer in answers)


def _conversation(job: Job, case: Case) -> Conversation | None:
    try:
        return conversation(case, job.settings.llm_context)
    except NoRoom as error:
        job.leave_out(case.task_id, "no_room_for_judge", str(error))
        return None


def _note_cuts(job: Job, case: Case, made: Conversation) -> None:
    if made.cut:
        job.leave_out(case.task_id, "cut_for_judge", f"the judge read the beginning of: {', '.join(made.cut)}")


def _g_rows(case: Case, judgement: Judgement, model: str) -> Iterator[dict[str, Any]]:
    for system in case.sections:
        for metric, value in metrics(judgement, system).items():
            yield _row(case, system, metric, value, model, write_order(judgement.order))


async def _judge_all(job: Job, asked: Sequence[Conversation]) -> list[Judgement | LlmAnswerError]:
    """All judgements in the order asked; the client limits how many are in flight."""
    from pipeline.llm.client import open_client

    done = 0

    async def one(client: LlmClient, made: Conversation) -> Judgement | LlmAnswerError:
        nonlocal done
        answer = await _judged(client, made)
        done += 1
        progress.advanced(job.stage.name, job.month, done)
        return answer

    async with open_client(job.workspace) as client:
        answers = await side_by_side(one(client, made) for made in asked)
        job.measured.update(client.usage.measured())
    return answers


async def _judged(client: LlmClient, made: Conversation) -> Judgement | LlmAnswerError:
    try:
        return await judge(client, made)
    except LlmAnswerError as error:
        return error


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What scores depend on besides tables: the judge's prompt."""
    return {"prompt": prompt_digest()}
