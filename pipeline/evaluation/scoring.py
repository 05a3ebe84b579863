"""The stage `scores`: every measure of every section in long form. It asks no model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pipeline import tables
from pipeline.engine.stage import Job
from pipeline.evaluation.citation_support.measures import citation_measures
from pipeline.evaluation.g_score import metrics, write_order
from pipeline.evaluation.rouge import FLOOR, floor_task, rouge
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer, writer_of

_TASK_COLUMNS = ["task_id", "references", "gold"]
_JUDGEMENT_COLUMNS = ["task_id", "mode", "judge", "repeat", "order", "marks", "best"]
# All but what the judge was shown: three passages for each of 60 citations are 300 KB for a
# section.
_SUPPORT_COLUMNS = [name for name in tables.CITATION_SUPPORT.schema.names if name != "passages"]
# Those measures of citations that a judge's verdicts make; the others follow from the text alone.
_BY_VERDICT = ("citation_precision", "citation_recall")


class _Score(NamedTuple):
    """One row, its columns in the order by which rows are sorted; a tuple, since a month has some
    100,000 of them.
    """

    task_id: str
    system: str
    model: str
    metric: str
    mode: str
    judge: str
    repeat: int
    order: str
    value: float


def build(job: Job) -> Iterator[Row]:
    """Rows of `scores`, by task, system, model, metric, mode, judge and repeat."""
    tasks = {row["task_id"]: row for row in job.iterate(tables.RELATED_WORK_TASKS, _TASK_COLUMNS)}
    found = sorted([*_of_sections(job, tasks), *_of_floor(tasks), *_of_judgements(job)])
    job.notes["metrics"] = dict(sorted(Counter(score.metric for score in found).items()))
    yield from (_row(score) for score in found)


def _row(score: _Score) -> Row:
    nullable = {name: getattr(score, name) or None for name in ("model", "mode", "judge", "order")}
    return {**score._asdict(), **nullable}


def _of_sections(job: Job, tasks: Mapping[str, Row]) -> Iterator[_Score]:
    """What follows from each section, its task and the verdicts on its citations; holds those of
    one writer.
    """
    supports: dict[str, list[Row]] = {}
    writer: Writer | None = None
    for summary in job.iterate(tables.SUMMARIES):
        if writer_of(summary) != writer:
            writer = writer_of(summary)
            supports = _supports(job, writer)
        task = tasks.get(summary["task_id"])
        if task is None:
            job.leave_out(
                summary["task_id"],
                "task_gone",
                f"{writer.name} wrote for a task that the month does not have now",
            )
            continue
        yield from _plain(task, summary)
        judged = None if summary["repeat"] else supports.get(summary["task_id"], [])
        yield from _citations(task, summary, judged)


def _of_floor(tasks: Mapping[str, Row]) -> Iterator[_Score]:
    """ROUGE of a gold section of another task of the month, which any section of the field
    reaches.
    """
    golds = {task_id: task["gold"] for task_id, task in tasks.items()}
    for task_id, gold in golds.items():
        other = floor_task(task_id, golds)
        if other is not None and gold.strip():
            for metric, value in rouge(gold, golds[other]).items():
                yield _Score(task_id, FLOOR, "", metric, "", "", 0, "", value)


def _supports(job: Job, writer: Writer) -> dict[str, list[Row]]:
    """Task → the rows of `citation_support` for one writer's section."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in job.iterate(tables.CITATION_SUPPORT, _SUPPORT_COLUMNS):
        if writer_of(row) == writer:
            found[row["task_id"]].append(row)
    return found


def _plain(task: Row, summary: Row) -> Iterator[_Score]:
    against_gold = rouge(task["gold"], summary["text"]) if task["gold"].strip() else {}
    for metric, value in {**against_gold, "words": float(len(summary["text"].split()))}.items():
        yield _of_section(summary, metric, value)


def _citations(task: Row, summary: Row, support: list[Row] | None) -> Iterator[_Score]:
    """support: the verdicts on its citations; None for a repeat, of which nobody judges them."""
    judge = _judge(support or ())
    for metric, value in citation_measures(task, summary, support or ()).items():
        by_verdict = metric.startswith(_BY_VERDICT)
        # A section that cites nothing has a recall of 0, but a repeat has none.
        if not by_verdict or support is not None:
            yield _of_section(summary, metric, value, judge if by_verdict else "")


def _of_section(summary: Row, metric: str, value: float, judge: str = "") -> _Score:
    model = summary["model"] or ""
    return _Score(
        summary["task_id"],
        summary["system"],
        model,
        metric,
        "",
        judge,
        summary["repeat"],
        "",
        value,
    )


def _judge(support: Iterable[Row]) -> str:
    return next((row["judge"] for row in support if row["judge"]), "")


def _of_judgements(job: Job) -> Iterator[_Score]:
    for row in job.iterate(tables.G_SCORES, _JUDGEMENT_COLUMNS):
        order = write_order(row["order"])
        for marks in row["marks"]:
            for metric, value in metrics(marks, row["best"]).items():
                yield _Score(
                    row["task_id"],
                    marks["system"],
                    marks["model"] or "",
                    metric,
                    row["mode"],
                    row["judge"],
                    row["repeat"],
                    order,
                    value,
                )
