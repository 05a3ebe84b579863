"""The stages `scores` and `answer_scores`: every measure in long form. They ask no model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipeline import tables
from pipeline.answering.answer import answer_of_row
from pipeline.answering.questions import read_posed_questions
from pipeline.answering.systems import writes_answers
from pipeline.engine.stage import Job
from pipeline.evaluation.answers.measures import answer_measures, gold_shown_by_hop
from pipeline.evaluation.answers.sample import ANSWER_COLUMNS
from pipeline.evaluation.citation_support.measures import citation_measures
from pipeline.evaluation.g_score.measures import metrics
from pipeline.evaluation.rouge import FLOOR, floor_task, rouge
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer, writer_of

_TASK_COLUMNS = ["task_id", "references", "gold"]
_JUDGEMENT_COLUMNS = [
    "task_id", "candidate_set", "section_repeat", "judge", "order", "marks", "best",
]  # fmt: skip
# All but what the judge was shown: three passages for each of 60 citations are 300 KB for a
# section.
_SUPPORT_COLUMNS = [name for name in tables.CITATION_SUPPORT.schema.names if name != "passages"]
_NULLABLE = ("model", "candidate_set", "judge", "order")
# Those measures of citations that a judge's verdicts make; the others follow from the text alone.
_BY_VERDICT = ("citation_precision", "citation_recall")


class _Score(NamedTuple):
    """A row, columns in order of sorting; a tuple, since a month has some 100,000 of them."""

    task_id: str
    system: str
    model: str
    metric: str
    candidate_set: str = ""
    judge: str = ""
    repeat: int = 0
    order: str = ""
    value: float = 0.0


def build_scores(job: Job) -> Iterator[Row]:
    """Rows of `scores`, by task, system, model, metric, candidate set, judge, repeat, order."""
    tasks = {row["task_id"]: row for row in job.iterate(tables.RELATED_WORK_TASKS, _TASK_COLUMNS)}
    scores = sorted([*_of_sections(job, tasks), *_of_floor(tasks), *_of_judgements(job)])
    job.notes["metrics"] = dict(sorted(Counter(score.metric for score in scores).items()))
    for score in scores:
        row = score._asdict()
        yield row | {name: row[name] or None for name in _NULLABLE}


def _of_sections(job: Job, tasks: Mapping[str, Row]) -> Iterator[_Score]:
    """Scores of each section by its text, its task and the verdicts on its citations. The verdicts
    on one writer's sections are held at a time.
    """
    verdicts: dict[str, list[Row]] = {}
    writer: Writer | None = None
    for summary in job.iterate(tables.SUMMARIES):
        if writer_of(summary) != writer:
            writer = writer_of(summary)
            verdicts = defaultdict(list)
            for row in job.iterate(tables.CITATION_SUPPORT, _SUPPORT_COLUMNS):
                if writer_of(row) == writer:
                    verdicts[row["task_id"]].append(row)
        task = tasks.get(summary["task_id"])
        if task is None:
            job.leave_out(
                summary["task_id"],
                "task_gone",
                f"{writer.name} wrote for a task that the month does not have now",
            )
            continue
        section = _Score(
            summary["task_id"],
            summary["system"],
            summary["model"] or "",
            "words",
            repeat=summary["repeat"],
            value=float(len(summary["text"].split())),
        )
        yield section
        if task["gold"].strip():
            for metric, value in rouge(task["gold"], summary["text"]).items():
                yield section._replace(metric=metric, value=value)
        yield from _of_citations(section, task, summary, verdicts.get(summary["task_id"], []))


def _of_citations(
    section: _Score, task: Row, summary: Row, verdicts: list[Row]
) -> Iterator[_Score]:
    # Nobody judges the citations of a repeat.
    rows = [] if section.repeat else verdicts
    judge = next((row["judge"] for row in rows if row["judge"]), "")
    for metric, value in citation_measures(task, summary, rows).items():
        if not metric.startswith(_BY_VERDICT):
            yield section._replace(metric=metric, value=value)
        # A section that cites nothing has a recall of 0, but a repeat has none.
        elif not section.repeat:
            yield section._replace(metric=metric, judge=judge, value=value)


def _of_floor(tasks: Mapping[str, Row]) -> Iterator[_Score]:
    """ROUGE of another task's gold section, which any section of the field reaches."""
    golds = {task_id: task["gold"] for task_id, task in tasks.items()}
    for task_id, gold in golds.items():
        other = floor_task(task_id, golds)
        if other is not None and gold.strip():
            for metric, value in rouge(gold, golds[other]).items():
                yield _Score(task_id, FLOOR, "", metric, value=value)


def _of_judgements(job: Job) -> Iterator[_Score]:
    for row in job.iterate(tables.G_SCORES, _JUDGEMENT_COLUMNS):
        order = ",".join(row["order"])
        for marks in row["marks"]:
            for metric, value in metrics(marks, row["best"]).items():
                yield _Score(
                    row["task_id"],
                    marks["system"],
                    marks["model"] or "",
                    metric,
                    row["candidate_set"],
                    row["judge"],
                    row["section_repeat"],
                    order,
                    value,
                )


def build_answer_scores(job: Job) -> Iterator[Row]:
    """Rows of `answer_scores`: of graded answers by question, writer, judge and metric, then of
    those that only show passages.
    """
    columns = ("question_id", "system", "model", "judge", "kind", "date")
    metrics: Counter[str] = Counter()
    for row in job.iterate(tables.ANSWER_GRADES):
        graded = {name: row[name] for name in columns}
        for metric, value in answer_measures(row).items():
            metrics[metric] += 1
            yield {**graded, "metric": metric, "value": value}
    for shown in _of_shown_passages(job):
        metrics[shown["metric"]] += 1
        yield shown
    job.notes["metrics"] = dict(sorted(metrics.items()))


def _of_shown_passages(job: Job) -> Iterator[Row]:
    """How many of the gold claims have a passage among those that a system shows which writes no
    answer.
    """
    posed = {each.question.id: each for each in read_posed_questions(job.rows(tables.QUESTIONS))}
    for row in job.iterate(tables.ANSWERS, ANSWER_COLUMNS):
        asked = posed.get(row["question_id"])
        if asked is None or writes_answers(row["system"]):
            continue
        shares, _ = gold_shown_by_hop(asked.question, answer_of_row(row), asked.gold_passages)
        if shares:
            yield {
                "question_id": asked.question.id,
                "system": row["system"],
                "model": None,
                "judge": None,
                "kind": asked.question.kind,
                "date": asked.question.date or asked.question.month,
                "metric": "gold_shown",
                "value": shares[-1],
            }
