"""The pages of a report that consist of sections: of a month, its answers, failures and runs, and
of all months.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline import tables
from pipeline.identity.months import month_name
from pipeline.report import answers, related_work
from pipeline.report.corpus import (
    corpus_section,
    failure_sections,
    months_section,
    papers_section,
)
from pipeline.report.data import LeftOut, ReportData, read_ledger
from pipeline.report.formatting import (
    FAILURES_PAGE,
    answering_system,
    count,
    percent,
    question_file,
    small_model_note,
    task_file,
    words,
)
from pipeline.report.grid import PageSection, present
from pipeline.report.summary import ANSWER_STAGES, FUNNEL, FUNNEL_STAGES, MODEL_STAGES
from pipeline.text import number_of

SAMPLE_NOTE = (
    "These are the invented papers of citeloom's sample corpus; arXiv does not have their ids."
)
_HOME = ("citeloom", "../index.html")
_JSON = ("JSON", "report.json")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of sections.

    path: (text, address) of the pages above it, then its own text with ''. headline: (name, value,
    remark) of its main figures. links: (text, address). notes: shown framed below the lead.
    made_from: a digest that the page's head records.
    """

    title: str
    path: Sequence[tuple[str, str]]
    lead: str
    sections: Sequence[PageSection]
    headline: Sequence[tuple[str, str, str]] = ()
    links: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    contents: bool = True
    made_from: str = ""

    @property
    def sortable(self) -> bool:
        """Whether a table of the page can be sorted, for which it needs the script."""
        return any(grid.sortable for section in self.sections for grid in section.grids)


@dataclass(frozen=True, slots=True)
class MonthReport:
    """The sections of a month's pages.

    ledger: items that the stages from the dump to the index left out. failed: how many items failed
    or were left out where a model was called.
    """

    data: ReportData
    ledger: Sequence[LeftOut]
    related_work: Sequence[PageSection]
    answers: Sequence[PageSection]
    failures: Sequence[PageSection]
    failed: int

    @property
    def month(self) -> str:
        (month,) = self.data.months
        return month.month

    @property
    def sections(self) -> list[PageSection]:
        """The sections whose tables are in `report.json`."""
        return [*self.related_work, *self.answers, self.failures[0]]


def month_report(data: ReportData, unreadable: Sequence[LeftOut]) -> MonthReport:
    """The report of a month. unreadable: answers of models that systems went on without."""
    (month,) = data.months
    tasks = related_work.read_tasks(data.root, month.month)
    task_ids = {task["task_id"] for task in tasks}
    question_ids = {question["id"] for question in data.answers.questions}
    ledger = read_ledger(data.root, month.month, MODEL_STAGES)
    failures = [replace(item, page=_page_of(item, task_ids, question_ids)) for item in ledger]
    failures += unreadable
    return MonthReport(
        data=data,
        ledger=read_ledger(data.root, month.month, FUNNEL_STAGES),
        related_work=related_work.sections(data.related, tasks),
        answers=answers.sections(data.answers, with_pages=True),
        failures=failure_sections(data, failures),
        failed=len(failures),
    )


def _page_of(item: LeftOut, tasks: set[str], questions: set[str]) -> str:
    """The page of the task or question that an item of the ledger is of; '' for none.

    A subject is the id of a task or question, or begins with it and a space.
    """
    for name in (item.subject, item.subject.split(" ")[0]):
        if item.stage in ANSWER_STAGES and name in questions:
            return question_file(name)
        if item.stage not in ANSWER_STAGES and name in tasks:
            return task_file(name)
    return ""


def _notes(data: ReportData) -> list[str]:
    """Warnings to read before any number."""
    notes = []
    small_model = data.related.small_model or data.answers.small_model
    if small_model:
        notes.append(small_model_note(small_model))
    served_as = data.related.served_as | data.answers.served_as
    notes += [f"What is named {name} here is {served}." for name, served in served_as.items()]
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
    return Page(
        title=month_name(month),
        path=[_HOME, (month, "")],
        lead=(
            f"{number_of(data.rows(tables.PAPERS), 'paper')} of"
            f" {number_of(data.rows(tables.DUMP_MEMBERS), 'page')} in the dump,"
            f" {number_of(data.rows(tables.PASSAGES), 'passage')},"
            f" {number_of(data.related.tasks, 'related-work task')}."
        ),
        links=[(failed, FAILURES_PAGE), _JSON],
        notes=_notes(data),
        sections=[
            corpus_section(data, report.ledger),
            papers_section(data.root, month),
            related_work.month_intro(data),
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
        links=[("What failed or was left out", FAILURES_PAGE), _JSON],
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


def overall_page(data: ReportData, made_from: str = "") -> Page:
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
        made_from=made_from,
        path=[("citeloom", "")],
        lead=f"{', '.join(counts)}.",
        headline=_headline(data),
        notes=_notes(data),
        sections=present(
            corpus_section(data),
            months_section(data),
            *related_work.sections(data.related),
            *answers.sections(data.answers, with_pages=False),
        ),
    )


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
    related = related_work.best_first(data.related, data.related.sets[0])
    graded = answers.best_first(data.answers) if data.answers.judge else []
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
            grid.key: grid.as_json() for section in report.sections for grid in section.grids
        },
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
