"""The pages of a report that consist of sections: of a month, its answers, failures and runs, and
of all months.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipeline import tables
from pipeline.report import answers, related_work
from pipeline.report.corpus import (
    corpus_section,
    failure_sections,
    funnel_grid,
    overall_retrieval,
    papers_section,
    retrieval_section,
)
from pipeline.report.costs import time_sections
from pipeline.report.data import (
    ANSWER_STAGES,
    FUNNEL,
    FUNNEL_STAGES,
    MODEL_STAGES,
    LeftOut,
    ReportData,
    read_ledger,
)
from pipeline.report.formatting import (
    ANSWERS_PAGE,
    FAILURES_PAGE,
    RUN_PAGE,
    answering_system,
    count,
    month_name,
    number_of,
    percent,
    small_model_note,
    words,
)
from pipeline.report.grid import Cell, Grid, GridRow, Section, present
from pipeline.report.question_page import QuestionPage
from pipeline.report.related_work import TaskEntry
from pipeline.report.task_page import TaskPage

SAMPLE_NOTE = (
    "These are the invented papers of citeloom's sample corpus. Their ids are not on arXiv, so they"
    " are not linked."
)
_HOME = ("citeloom", "../index.html")
_JSON = ("JSON", "report.json")
_MONTH_COLUMNS = (
    ("Pages", tables.DUMP_MEMBERS),
    ("Papers", tables.PAPERS),
    ("Passages", tables.PASSAGES),
    ("In the index", tables.INDEX_RECEIPTS),
    ("References", tables.REFERENCES),
    ("Tasks", tables.RELATED_WORK_TASKS),
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of sections.

    path: (text, address) of the pages above it, then its own text with ''. headline: (name, value,
    remark) of its main figures. links: (text, address). notes: shown framed below the lead.
    """

    title: str
    path: Sequence[tuple[str, str]]
    lead: str
    sections: Sequence[Section]
    headline: Sequence[tuple[str, str, str]] = ()
    links: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    contents: bool = True

    @property
    def sortable(self) -> bool:
        """Whether a table of the page can be sorted, for which it needs the script."""
        return any(grid.sortable for section in self.sections for grid in section.grids)


@dataclass(slots=True)
class TextPages:
    """Facts of the task and question pages for the pages of the month, so that no trace is read
    twice.
    """

    tasks: dict[str, TaskEntry] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    """Question id → page."""
    retention: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    recovered: list[LeftOut] = field(default_factory=list)
    """Unreadable answers that a system went on without."""

    def add_task(self, page: TaskPage) -> None:
        """Add a task with its sections."""
        task = page.task
        self.tasks[task["task_id"]] = TaskEntry(
            task["task_id"],
            task["arxiv_id"],
            task["title"],
            len(task["references"]),
            task["outside"],
            page.file,
        )
        self.recovered += page.recovered
        for section in page.sections:
            # The first step of a search has no earlier references to lose.
            for step, share in enumerate(section.trace.retention, 2):
                self.retention.setdefault(section.system, {}).setdefault(step, []).append(share)

    def add_question(self, page: QuestionPage) -> None:
        """Add a question with its answers."""
        self.questions[page.question.id] = page.file
        self.recovered += page.recovered

    def page_of(self, item: LeftOut) -> str:
        """The page of the task or question that an item of the ledger is of; '' for none.

        A subject is the id of a task or question, or begins with it and a space.
        """
        for name in (item.subject, item.subject.split(" ")[0]):
            if item.stage in ANSWER_STAGES and name in self.questions:
                return self.questions[name]
            if item.stage not in ANSWER_STAGES and name in self.tasks:
                return self.tasks[name].page
        return ""


@dataclass(frozen=True, slots=True)
class MonthReport:
    """The sections of a month's pages, and the items that were left out.

    ledger: of the stages from the dump to the index. failed: items that failed or were left out
    where a model was called.
    """

    data: ReportData
    ledger: Sequence[LeftOut]
    retrieval: Section
    related_work: Sequence[Section]
    answers: Sequence[Section]
    failures: Sequence[Section]
    failed: int

    @property
    def month(self) -> str:
        (month,) = self.data.months
        return month.month

    @property
    def sections(self) -> list[Section]:
        """The sections whose tables are in `report.json`."""
        return [self.retrieval, *self.related_work, *self.answers]


def month_report(data: ReportData, texts: TextPages) -> MonthReport:
    """The report of a month. texts: filled with all pages of its tasks and questions."""
    (month,) = data.months
    failed = [
        replace(item, page=texts.page_of(item))
        for item in read_ledger(data.root, month.month, MODEL_STAGES)
    ]
    tasks = list(texts.tasks.values())
    return MonthReport(
        data=data,
        ledger=read_ledger(data.root, month.month, FUNNEL_STAGES),
        retrieval=retrieval_section(month.retrieval),
        related_work=related_work.month_sections(data.related, tasks, texts.retention),
        answers=answers.month_sections(data),
        failures=failure_sections(data, failed, texts.recovered),
        failed=len(failed) + len(texts.recovered),
    )


def _notes(data: ReportData) -> list[str]:
    """Warnings to read before any number."""
    notes = []
    small_model = data.related.small_model or data.answers.small_model
    if small_model:
        notes.append(small_model_note(small_model))
    if data.sample:
        notes.append(SAMPLE_NOTE)
    return notes


def month_page(report: MonthReport) -> Page:
    """The page of a month."""
    data, month = report.data, report.month
    failed = (
        f"What failed or was left out where a model was called: {count(report.failed)}"
        if report.failed
        else "Nothing failed where a model was called"
    )
    times = [("Times of runs", RUN_PAGE)] if data.related.systems or data.answers.systems else []
    return Page(
        title=month_name(month),
        path=[_HOME, (month, "")],
        lead=(
            f"{number_of(data.rows(tables.PAPERS), 'paper')} of"
            f" {number_of(data.rows(tables.DUMP_MEMBERS), 'page')} in the dump,"
            f" {number_of(data.rows(tables.PASSAGES), 'passage')},"
            f" {number_of(data.related.tasks, 'related-work task')}."
        ),
        links=[(failed, FAILURES_PAGE), *times, _JSON],
        notes=_notes(data),
        sections=[
            corpus_section(data, report.ledger),
            papers_section(data.root, month),
            report.retrieval,
            related_work.month_intro(data, report.ledger),
            *report.related_work,
            answers.month_intro(data.answers),
        ],
    )


def answers_page(report: MonthReport) -> Page:
    """The page of a month's answers."""
    data = report.data.answers
    systems = (
        f" answered by {'; '.join(map(answering_system, data.systems))}" if data.systems else ""
    )
    no_answer = [] if data.systems else ["No system answered; the page of failures may say why."]
    questions = number_of(len(data.questions), "question")
    return Page(
        title=f"Answers to questions, {month_name(report.month)}",
        path=[_HOME, (report.month, "index.html"), ("answers", "")],
        lead=f"{questions}{systems}, each from the papers up to this month.",
        links=[("What failed or was left out", FAILURES_PAGE), ("Times of runs", RUN_PAGE), _JSON],
        notes=[*_notes(report.data), *no_answer],
        sections=report.answers,
    )


def failures_page(report: MonthReport) -> Page:
    """The page of failures and omissions of the stages that call a model."""
    return Page(
        title=f"What failed or was left out, {month_name(report.month)}",
        path=[_HOME, (report.month, "index.html"), ("failures", "")],
        lead=(
            "Stages that call a language model: key elements, sections, judgements, citations and"
            " scores; questions, answers and their grades. The month's page has what the earlier"
            " stages left out."
        ),
        sections=report.failures,
        contents=False,
    )


def run_page(data: ReportData) -> Page:
    """The page of the times of a month's runs, the only one that differs from run to run."""
    (month,) = data.months
    links = []
    if data.related.systems:
        links.append(("Calls, tokens and money of related work", "index.html#cost"))
    if data.answers.called_model:
        links.append(("Calls, tokens and money of answers", f"{ANSWERS_PAGE}#cost-of-answers"))
    return Page(
        title=f"Times of runs, {month_name(month.month)}",
        path=[_HOME, (month.month, "index.html"), ("times", "")],
        lead="These figures differ from run to run, so no other page has them.",
        links=links,
        sections=time_sections(data),
        contents=False,
    )


def overall_page(data: ReportData) -> Page:
    """The page over all months. A month with unreadable tables stays in the list with a remark."""
    counts = [
        number_of(len(data.months) + len(data.unreadable), "month"),
        number_of(data.rows(tables.PAPERS), "paper"),
        number_of(data.rows(tables.PASSAGES), "passage"),
        number_of(data.rows(tables.RELATED_WORK_TASKS), "related-work task"),
    ]
    if data.answers.questions:
        counts.append(number_of(len(data.answers.questions), "question"))
    return Page(
        title="All months",
        path=[("citeloom", "")],
        lead=f"{', '.join(counts)}.",
        headline=_headline(data),
        notes=_notes(data),
        sections=present(
            Section("funnel", "From the dump to the index", (), (funnel_grid(data),)),
            _months_section(data),
            overall_retrieval(data.finished),
            *related_work.overall_sections(data.related),
            *answers.overall_sections(data),
        ),
    )


def _months_section(data: ReportData) -> Section:
    rows: dict[str, GridRow] = {
        month: [
            Cell(month_name(month), tag="has tables that cannot be read: see citeloom status"),
            *[0] * len(_MONTH_COLUMNS),
        ]
        for month in data.unreadable
    }
    for month in data.months:
        page = f"{month.month}/index.html" if month.finished else ""
        rows[month.month] = [
            Cell(month_name(month.month), page=page, tag="" if page else "not finished"),
            *(month.rows[counted.name] for _, counted in _MONTH_COLUMNS),
        ]
    columns = ["Month", *(title for title, _ in _MONTH_COLUMNS)]
    grid = Grid("months", "Months", columns, [rows[month] for month in sorted(rows)], stacked=True)
    return Section("months", "Months", (), (grid,))


def _headline(data: ReportData) -> list[tuple[str, str, str]]:
    """Papers, passages, the audit of the index, and the best systems with their intervals."""
    pages, months = data.rows(tables.DUMP_MEMBERS), len(data.months)
    papers, passages = data.rows(tables.PAPERS), data.rows(tables.PASSAGES)
    headline = [
        ("Papers", count(papers), f"of {number_of(pages, 'page')} in the dump"),
        ("Passages", count(passages), f"in {number_of(months, 'month')}"),
    ]
    audit = data.audit
    if audit["expected"]:
        wrong = [f"{count(audit[name])} {name}" for name in ("missing", "stale") if audit[name]]
        remark = ", ".join(wrong) or f"all of {number_of(audit['expected'], 'point')} found"
        headline.append(("Index audit", percent(audit["present"] / audit["expected"]), remark))
    related = related_work.best_first(data.related)
    graded = [name for name in answers.best_first(data.answers) if data.answers.result(name)]
    if related:
        measure = related_work.main_measure(data.related)
        mean = measure.cell(data.related.scores.mean(related[0], measure.metric))
        remark = f"{measure.title} {mean.plain()}"
        headline.append(("Best related work", words(related[0]), remark))
    if graded:
        remark = f"Coverage {answers.coverage_of(data.answers, graded[0]).plain()}"
        headline.append(("Best answers", answering_system(graded[0]), remark))
    return headline


def month_json(report: MonthReport) -> bytes:
    """The month's numbers as JSON, UTF-8: `tables` by key, each with title, notes, and rows as
    objects.
    """
    data, related, answered = report.data, report.data.related, report.data.answers
    document = {
        "month": report.month,
        "corpus": {
            "pages": data.rows(tables.DUMP_MEMBERS),
            "papers": data.rows(tables.PAPERS),
            "passages": data.rows(tables.PASSAGES),
            "steps": [
                {
                    "step": name,
                    "rows": data.rows(step),
                    "left_out": dict(data.left_out(step.name)),
                }
                for step, name, _ in FUNNEL
            ],
        },
        "tasks": related.tasks,
        "systems": related.systems,
        "small_model": related.small_model or answered.small_model,
        "questions": len(answered.questions),
        "answering_systems": answered.systems,
        "no_questions": "" if answered.questions else answered.why_none,
        "notes": {
            section.key: [*section.paragraphs, *section.definitions]
            for section in report.sections
            if section.paragraphs or section.definitions
        },
        "tables": {
            grid.key: grid.as_json()
            for section in (*report.sections, report.failures[0])
            for grid in section.grids
        },
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
