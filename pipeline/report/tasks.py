"""The pages of a month's tasks, one task after another in bounded memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline import tables
from pipeline.evaluation.cited import paragraphs
from pipeline.evaluation.judging import named_judgement
from pipeline.llm.models import is_small_model
from pipeline.report.comparison import name_of
from pipeline.report.figures import series_of
from pipeline.report.filters import task_file, words
from pipeline.report.found import Found, Retained
from pipeline.report.grid import NOTHING, Form, Grid, Rows, Value
from pipeline.report.grouped import Grouped, grouped_by_writer
from pipeline.report.sentences import VERDICTS, laid_out, passage_view, sentence_views
from pipeline.report.trace import trace_view
from pipeline.report.views import ElementsView, LeftOut, PassageView, SystemView, TaskView
from pipeline.storage.data_root import DataRoot
from pipeline.tables import CRITERIA, with_shown_name

Row = dict[str, Any]

WRITTEN_PART = "-written"
_TASK_COLUMNS = ["task_id", "arxiv_id", "title", "section_title", "references", "outside", "gold"]
_ANSWERS = (
    "research_questions", "methodology", "results", "conclusions", "contributions", "innovations", "limitations",
)  # fmt: skip
_METRICS: tuple[tuple[str, str, Form], ...] = (
    ("rouge1", "ROUGE-1", "two"),
    ("rouge2", "ROUGE-2", "two"),
    ("rougeLsum", "ROUGE-L by sentence", "two"),
    ("rougeL", "ROUGE-L of the whole", "two"),
    *((f"g_{criterion}", name_of(criterion), "two") for criterion in CRITERIA),
    ("g_score", "G-Score, mean of the six", "two"),
    ("g_vote", "Voted the best", "percent"),
    ("citation_precision", "Citation precision", "percent"),
    ("citation_recall", "Citation recall", "percent"),
    ("reference_coverage", "References cited", "percent"),
    ("retention", "Retention", "percent"),
    ("citation_exact", "Exact format", "percent"),
    ("citation_out_of_range", "Out of range", "count"),
    ("words", "Words", "count"),
)
# What stands over a metric and those that follow it; {judge}: who gave them.
_HEADINGS = {
    "rouge1": ("ROUGE", "F1 against the gold section, percent"),
    "g_consistency": ("G-Score", "marks from 1 to 5 by {judge}, all systems in one conversation, mean over the orders"),
    "citation_precision": ("Citations", "verdicts by {judge}"),
    "words": ("Length", ""),
}


@dataclass(slots=True)
class Tally:
    """What is counted while the tasks go by, so that no trace is read twice."""

    retained: Retained = field(default_factory=Retained)
    recovered: list[LeftOut] = field(default_factory=list)
    """Answers that could not be read and were done without."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    """The tasks as the month's page lists them."""

    @property
    def pages(self) -> dict[str, str]:
        """Task id → page."""
        return {line["task_id"]: line["page"] for line in self.lines}

    def add(self, view: TaskView, task_id: str, traces: Mapping[str, str]) -> None:
        """Take one task."""
        from pipeline.evaluation.citation_support.measures import retention_by_round

        told = {"page": view.page, "arxiv_id": view.arxiv_id, "title": view.title, "outside": view.outside}
        self.lines.append(told | {"task_id": task_id, "references": len(view.references)})
        for system in view.systems:
            self.retained.add(system.system, retention_by_round(json.loads(traces[system.system] or "{}")))
            self.recovered += [
                LeftOut(system.system, task_id, at.split(" of ")[0].split(" for ")[0], f"{at}: {why}", view.page)
                for at, why in system.trace.failures
            ]


@dataclass(frozen=True, slots=True)
class _Of:
    """All rows of one task."""

    task: Row
    summaries: Sequence[Row]
    elements: Sequence[Row]
    judgements: Sequence[Row]
    support: Sequence[Row]

    @property
    def models(self) -> set[str]:
        """Every model that wrote or judged."""
        judged = {row["judge"] for row in (*self.judgements, *self.support)}
        return {name for name in judged | {row["model"] for row in self.summaries} if name}

    @property
    def titles(self) -> dict[int, str]:
        return {each["number"]: each["title"] for each in self.task["references"]}


def task_views(root: DataRoot, month: str, found: Found, tally: Tally) -> Iterator[TaskView]:
    """Each task of a month, by task id; the tally takes what the month's own page needs of it."""
    tasks = Grouped(root, month, tables.RELATED_WORK_TASKS, _TASK_COLUMNS)
    summaries = grouped_by_writer(root, month, tables.SUMMARIES)
    elements = Grouped(root, month, tables.KEY_ELEMENTS)
    judgements = Grouped(root, month, tables.G_SCORES)
    support = Grouped(root, month, tables.CITATION_SUPPORT)
    for task_id in task_ids(root, month):
        (task,) = tasks.of(task_id)
        rows = [with_shown_name(row, found.shown) for writer in summaries for row in writer.of(task_id)]
        known = sorted(elements.of(task_id), key=lambda row: (row["number"], row["model"]))
        judged = [named_judgement(row, found.shown) for row in judgements.of(task_id)]
        supported = [with_shown_name(row, found.shown) for row in support.of(task_id)]
        mine = _Of(task, rows, known, judged, supported)
        view = _task_view(month, mine, found)
        tally.add(view, task_id, {row["system"]: row["trace"] for row in rows})
        yield view


def task_ids(root: DataRoot, month: str) -> list[str]:
    """The tasks of a month in order."""
    return sorted(root.read(tables.RELATED_WORK_TASKS, month, ["task_id"])["task_id"].to_pylist())


def _task_view(month: str, mine: _Of, found: Found) -> TaskView:
    task, numbers = mine.task, set(mine.titles)
    names = [row["system"] for row in mine.summaries]
    votes = found.scores.of_task(task["task_id"], names, "g_vote")
    return TaskView(
        month=month,
        page=task_file(task["task_id"]),
        written_page=task_file(task["task_id"], WRITTEN_PART),
        arxiv_id=task["arxiv_id"],
        title=task["title"],
        section_title=task["section_title"],
        outside=task["outside"],
        references=task["references"],
        gold=paragraphs(task["gold"], numbers),
        gold_words=len(task["gold"].split()),
        systems=[_system_view(row, mine, votes) for row in mine.summaries],
        scores=_scores_grid(task["task_id"], names, found),
        judgements=_judgements_grid(mine.judgements),
        elements=[_elements_view(row, mine) for row in mine.elements],
        small_model=min(filter(is_small_model, mine.models), default=""),
        judge_notes=found.judge_checks.sentences(
            sorted({row["judge"] for row in mine.support if row["judge"]}), "citation_support"
        ),
    )


def _system_view(row: Row, mine: _Of, votes: Mapping[str, float]) -> SystemView:
    numbers = set(mine.titles)
    support = [each for each in mine.support if each["system"] == row["system"]]
    shown = _own_passages(row, mine.task)
    sentences = sentence_views(row, support, mine.titles, shown)
    counts = Counter(each["verdict"] or "unjudged" for each in support)
    best = max(votes.values(), default=0.0)
    return SystemView(
        system=row["system"],
        series=series_of(row["system"]),
        model=row["model"],
        paragraphs=laid_out(row["text"], sentences, [each["text"] for each in row["sentences"]], numbers),
        words=len(row["text"].split()),
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        tag="best" if best and votes.get(row["system"]) == best else "",
        trace=trace_view(row["trace"], numbers),
        support=[(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
    )


def _own_passages(row: Row, task: Row) -> dict[str, PassageView]:
    """Passages that a system itself rested sentences on, by id; of which work each is, its name tells: R3P12."""
    told = json.loads(row["trace"] or "{}").get("passages", {})
    papers = {each["number"]: each["arxiv_id"] for each in task["references"]}
    return {
        each["passage_id"]: passage_view(each["text"], papers.get(_number_in(name)), None)
        for name, each in sorted(told.items())
    }


def _number_in(name: str) -> int:
    number = name.removeprefix("R").partition("P")[0]
    return int(number) if number.isdecimal() and len(number) < 5 else 0


def _scores_grid(task_id: str, systems: Sequence[str], found: Found) -> Grid | None:
    groups: list[tuple[str, str, list[list[Value]]]] = [("", "", [])]
    for metric, name, form in _METRICS:
        values = found.scores.of_task(task_id, systems, metric)
        if metric in _HEADINGS:
            title, about = _HEADINGS[metric]
            groups.append((title, about.format(judge=_judge_of(found, metric)), []))
        if values:
            groups[-1][2].append([Value(name), *(Value(values.get(system), form) for system in systems)])
    rows = [Rows(each, title, about) for title, about, each in groups if each]
    notes = [
        f"{NOTHING}: there is no such number. Retention is of systems that write step by step; citation precision "
        "needs a cited work with a text."
    ]
    head = ("Metric", *map(words, systems))
    return Grid("scores", "Scores", head, rows, notes=notes) if rows and systems else None


def _judge_of(found: Found, metric: str) -> str:
    if metric.startswith("g_"):
        return found.scores.judge
    return ", ".join(sorted(found.beside[tables.CITATION_SUPPORT.name].models)) or "nobody"


def _judgements_grid(judgements: Sequence[Row]) -> Grid | None:
    """Every conversation with a judge: in which order it saw the systems, what it gave them, and whom it voted for."""
    rows = [
        [
            Value(row["judge"]),
            Value(row["mode"]),
            Value(row["repeat"] + 1, "count"),
            Value(", ".join(f"{words(each['system'])} {_marks(each)}" for each in row["marks"])),
            Value(words(row["best"]) if row["best"] else None),
            Value(", ".join(words(text) for text in row["cut"] or ())),
        ]
        for row in judgements
    ]
    head = ("Judge", "Mode", "Time", "Order seen, with marks", "Voted", "Cut")
    about = (
        f"Marks in this order: {', '.join(name_of(each).lower() for each in CRITERIA)}. No name was shown to the judge."
    )
    return Grid("judgements", "What the judges said", head, [Rows(rows)], about) if rows else None


def _marks(marks: Mapping[str, Any]) -> str:
    return "-".join(str(marks[criterion]) for criterion in CRITERIA)


def _elements_view(row: Row, mine: _Of) -> ElementsView:
    titles = {0: mine.task["title"], **mine.titles}
    title = titles.get(row["number"], str(row["arxiv_id"]))
    if len({other["model"] for other in mine.elements}) > 1:
        title = f"{title} ({row['model']})"
    answers = [(name, row[name] or "") for name in _ANSWERS]
    return ElementsView(row["number"], title, bool(row["content_cut"]), answers)
