"""The pages of a report that consist of sections: of a month, its answers, failures and runs, of
all months, and of changes.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline import tables
from pipeline.errors import CiteloomError
from pipeline.evaluation.answers.people_measures import MonthGrades, read_month_grades
from pipeline.llm.messages import Prices
from pipeline.report import answer_tables, related_work_tables
from pipeline.report.answers_data import AnswersData, read_answers
from pipeline.report.corpus import (
    FUNNEL_STAGES,
    MOST_ROWS,
    FunnelStep,
    LeftOut,
    corpus_section,
    count_left_out,
    funnel,
    funnel_grid,
    left_out_grid,
    papers_section,
    read_ledger,
    reasons_text,
    rows_out,
)
from pipeline.report.costs import answer_cost_section, related_work_cost_section, run_sections
from pipeline.report.formatting import (
    ANSWERS_PAGE,
    FAILURES_PAGE,
    RUN_PAGE,
    answering_system,
    count,
    is_sample,
    month_name,
    number_of,
    percent,
    small_model_note,
    words,
)
from pipeline.report.grid import Cell, Grid, Row, Section, mean_cell
from pipeline.report.month_data import read_or_empty, writer_names
from pipeline.report.people_tables import (
    month_grades_section,
    pooled_grades_section,
    ratings_section,
)
from pipeline.report.related_work_data import RelatedWorkData, Scores, read_month
from pipeline.report.retrieval import RetrievalScores, overall_retrieval, read_retrieval
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table

SAMPLE_NOTE = (
    "These are the invented papers of citeloom's sample corpus. Their ids are not on arXiv, so they"
    " are not linked."
)
# A month of the whole dump has thousands of papers, whose ids need not be read to know that it is
# no sample.
_MOST_SAMPLE_PAPERS = 1_000
_HOME = ("citeloom", "../index.html")
_JSON = ("JSON", "report.json")


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


@dataclass(frozen=True, slots=True)
class MonthReport:
    """What the pages of a month and its JSON form show."""

    month: str
    steps: Sequence[FunnelStep]
    related: RelatedWorkData
    answers: AnswersData
    retrieval: Section
    related_sections: Sequence[Section]
    answer_sections: Sequence[Section]
    failures: Sequence[Section]
    failed: int
    sample: bool = False

    @property
    def lead(self) -> str:
        """Papers, passages and tasks in a sentence."""
        pages, _, papers, passages, *_ = self.steps
        return (
            f"{number_of(papers.rows, 'paper')} of {number_of(pages.rows, 'page')} in the dump,"
            f" {number_of(passages.rows, 'passage')},"
            f" {number_of(self.related.tasks, 'related-work task')}."
        )

    @property
    def notes(self) -> list[str]:
        """What a reader must know before any number."""
        return _notes(self.related, self.answers, self.sample)


def _notes(related: RelatedWorkData, answers: AnswersData, sample: bool) -> list[str]:
    small_model = related.small_model or answers.small_model
    notes = [small_model_note(small_model)] if small_model else []
    return [*notes, SAMPLE_NOTE] if sample else notes


def related_work_sections(
    data: RelatedWorkData, tasks: Sequence[Mapping[str, Any]] = ()
) -> list[Section]:
    """The related work of a month, with its tasks, or of all months, without."""
    if not data.tasks:
        return []
    one_month = bool(tasks)
    sections = [
        related_work_tables.paper_section(data),
        related_work_tables.criteria_section(data),
        related_work_tables.preference_section(data),
        related_work_tables.differences_section(data),
        related_work_tables.stability_section(data) if one_month else None,
        related_work_tables.citation_section(data) if data.systems else None,
        related_work_tables.judges_section(data) if one_month else None,
        ratings_section(data) if one_month else None,
        related_work_cost_section(data) if data.systems else None,
        related_work_tables.tasks_section(data, tasks, MOST_ROWS) if one_month else None,
    ]
    return [section for section in sections if section is not None]


def answer_sections(root: DataRoot, month: str, data: AnswersData) -> list[Section]:
    """The answers of a month; none where there is no question."""
    if not data.questions:
        return []
    sections = [
        answer_tables.table_section(data),
        answer_tables.kinds_section(data),
        answer_tables.retrieval_section(data, MOST_ROWS),
        answer_tables.differences_section(data),
        answer_cost_section(data),
        answer_tables.judges_section(data),
        month_grades_section(root, month, data.grades, data.names),
        answer_tables.questions_section(data, MOST_ROWS),
    ]
    return [section for section in sections if section is not None]


def has_sample_papers(root: DataRoot, month: str) -> bool:
    """Whether a month is one of the sample corpus, which has ten papers a month at most."""
    papers = read_provenance(root.file(tables.PAPERS, month))
    if papers is None or papers.rows > _MOST_SAMPLE_PAPERS:
        return False
    return any(
        map(is_sample, root.read(tables.PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    )


def month_page(root: DataRoot, report: MonthReport) -> Page:
    """The page of a month."""
    month = report.month
    ledger = read_ledger(root, month, FUNNEL_STAGES)
    failed = f"What failed or was left out where a model was called: {count(report.failed)}"
    links = [
        (failed if report.failed else "Nothing failed where a model was called", FAILURES_PAGE)
    ]
    if report.related.systems or report.answers.systems:
        links.append(("Times of runs", RUN_PAGE))
    return Page(
        title=month_name(month),
        path=[_HOME, (month, "")],
        lead=report.lead,
        links=[*links, _JSON],
        notes=report.notes,
        sections=[
            corpus_section(root, month, report.steps, ledger),
            papers_section(root, month),
            report.retrieval,
            _related_work_intro(report.related, report.steps, ledger),
            *report.related_sections,
            _answers_intro(report.answers),
        ],
    )


def _related_work_intro(
    data: RelatedWorkData, steps: Sequence[FunnelStep], ledger: Sequence[LeftOut]
) -> Section:
    stage = tables.RELATED_WORK_TASKS.name
    title = "Related work"
    if data.tasks:
        number = "One target" if data.tasks == 1 else f"{count(data.tasks)} targets, each"
        text = (
            f"{number} without its own related-work section, which is the gold text. Every system"
            " writes the section from the target and its references."
        )
        if data.systems:
            return Section(
                "related-work", title, (text, f"Written by {'; '.join(map(words, data.systems))}.")
            )
        return Section(
            "related-work",
            title,
            (text, "No system wrote anything."),
            links=[("What failed", FAILURES_PAGE)],
        )
    text = (
        "There is no related-work task in this month. A task needs a paper with a related-work"
        " section that cites enough papers of the corpus."
    )
    reasons = next(
        step.left_out for step, name in zip(steps, FUNNEL_STAGES, strict=True) if name == stage
    )
    if not reasons:
        return Section("related-work", title, (text,))
    items = [item for item in ledger if item.stage == stage]
    counts = f"Of {number_of(steps[2].rows, 'paper')}: {reasons_text(reasons)}."
    return Section(
        "related-work",
        title,
        (text, counts),
        (left_out_grid("no_task", "Papers without a task", items, "the ledger"),),
    )


def _answers_intro(data: AnswersData) -> Section:
    title = "Answers to questions"
    if not data.questions:
        return Section("answers", title, (f"No question was asked: {data.why_none}.",))
    links = [
        (
            f"{number_of(len(data.questions), 'question')}, every answer with its evidence",
            ANSWERS_PAGE,
        )
    ]
    if data.systems:
        return Section("answers", title, (), (answer_tables.leaderboard(data),), links=links)
    return Section(
        "answers", title, ("No system answered.",), links=[*links, ("What failed", FAILURES_PAGE)]
    )


def answers_page(report: MonthReport) -> Page:
    """The page of a month's answers."""
    data = report.answers
    systems = (
        f" answered by {'; '.join(map(answering_system, data.systems))}" if data.systems else ""
    )
    no_answer = [] if data.systems else ["No system answered; the page of failures may say why."]
    return Page(
        title=f"Answers to questions, {month_name(report.month)}",
        path=[_HOME, (report.month, "index.html"), ("answers", "")],
        lead=(
            f"{number_of(len(data.questions), 'question')}{systems}, each from the papers up to"
            " this month."
        ),
        links=[("What failed or was left out", FAILURES_PAGE), ("Times of runs", RUN_PAGE), _JSON],
        notes=[*report.notes, *no_answer],
        sections=report.answer_sections,
    )


def failures_page(report: MonthReport) -> Page:
    """The page of what failed or was left out where a model was called."""
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


def run_page(root: DataRoot, month: str, related: RelatedWorkData, answers: AnswersData) -> Page:
    """The page of what runs took, the only one that differs from run to run."""
    links = (
        [("Calls, tokens and money of related work", "index.html#cost")] if related.systems else []
    )
    links += (
        [("Calls, tokens and money of answers", f"{ANSWERS_PAGE}#cost-of-answers")]
        if answers.called_model
        else []
    )
    return Page(
        title=f"Times of runs, {month_name(month)}",
        path=[_HOME, (month, "index.html"), ("times", "")],
        lead="These figures differ from run to run, so no other page has them.",
        links=links,
        sections=run_sections(root, month, related, answers),
        contents=False,
    )


@dataclass
class _AllMonths:
    """What the page over all months pools."""

    related: RelatedWorkData
    answers: AnswersData
    people: dict[str, MonthGrades] = field(default_factory=dict)
    readable: list[str] = field(default_factory=list)
    """Months whose tables can be read, finished or not."""
    audit: Counter[str] = field(default_factory=Counter)
    """Sums of the columns of `index_receipts`."""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    retrieval: dict[str, RetrievalScores] = field(default_factory=dict)
    sample: bool = False
    rows: list[Row] = field(default_factory=list)


_MONTH_COUNTS: tuple[tuple[str, Table], ...] = (
    ("Pages", tables.DUMP_MEMBERS),
    ("Papers", tables.PAPERS),
    ("Passages", tables.PASSAGES),
    ("In the index", tables.INDEX_RECEIPTS),
    ("References", tables.REFERENCES),
    ("Tasks", tables.RELATED_WORK_TASKS),
)


def overall_page(
    root: DataRoot, judges: Sequence[str], prices: Mapping[str, Prices], cutoff: str = ""
) -> Page:
    """The page over all months. A month with unreadable tables stays in the list with a remark.

    cutoff: the knowledge cut-off that divides old from recent questions.
    """
    months = root.months(tables.DUMP_MEMBERS)
    pool = _AllMonths(
        RelatedWorkData(
            prices, _readable_names(root, tables.SUMMARIES, months), scores=Scores(judges)
        ),
        AnswersData(
            prices,
            _readable_names(root, tables.ANSWERS, months),
            preferred_judges=judges,
            cutoff=cutoff,
        ),
    )
    for month in months:
        pool.rows.append(_add_month(root, month, pool))
    related, answers = pool.related, pool.answers
    steps = funnel(root, pool.readable, pool.left_out)
    lead = ", ".join(
        [
            number_of(len(months), "month"),
            number_of(steps[2].rows, "paper"),
            number_of(steps[3].rows, "passage"),
            number_of(sum(row[-1] for row in pool.rows), "related-work task"),
            *([number_of(len(answers.questions), "question")] if answers.questions else []),
        ]
    )
    sections = [
        Section("funnel", "From the dump to the index", (), (funnel_grid(steps),)),
        _months_section(pool),
        *overall_retrieval(pool.retrieval),
        *_overall_related_work(related),
        *_overall_answers(answers, pool.people),
    ]
    return Page(
        title="All months",
        path=[("citeloom", "")],
        lead=f"{lead}.",
        headline=_headline(steps, pool),
        notes=_notes(related, answers, pool.sample),
        sections=sections,
    )


def _readable_names(root: DataRoot, table: Table, months: Sequence[str]) -> dict[str, str]:
    """As `writer_names`, over the months of a table that can be read."""
    readable = []
    for month in months:
        with contextlib.suppress(CiteloomError):
            writer_names(root, [month], table)
            readable.append(month)
    return writer_names(root, readable, table)


def _add_month(root: DataRoot, month: str, pool: _AllMonths) -> Row:
    """The month's row, after its data was added to the others'."""
    try:
        counts = [rows_out(root, month, table) for _, table in _MONTH_COUNTS]
        receipts = read_or_empty(root, tables.INDEX_RECEIPTS, month).to_pylist()
        left_out, sample = count_left_out(root, month), has_sample_papers(root, month)
        finished = read_provenance(root.file(tables.SCORES, month)) is not None
        if finished:
            related = read_month(root, month, details=False)
            answered = read_answers(root, month, pool.answers.names)
            grades = [
                {**grade, "system": pool.answers.names.get(grade["system"], grade["system"])}
                for grade in answered.grades
            ]
            people = read_month_grades(root, month, grades, shown=pool.answers.names)
            retrieval = read_retrieval(root, month)
            pool.related.add_month(root, month, related)
            pool.answers.add_month(month, answered, qualify=True)
            pool.people[month] = people
            pool.retrieval[month] = retrieval
    except CiteloomError:
        return [
            Cell(month_name(month), tag="has tables that cannot be read: see citeloom status"),
            *[0] * len(_MONTH_COUNTS),
        ]
    for receipt in receipts:
        pool.audit.update(
            {name: receipt[name] for name in ("expected", "present", "missing", "stale")}
        )
    pool.left_out.update(left_out)
    pool.sample |= sample
    pool.readable.append(month)
    page = f"{month}/index.html" if finished else ""
    return [Cell(month_name(month), page=page, tag="" if finished else "not finished"), *counts]


def _months_section(pool: _AllMonths) -> Section:
    columns = ["Month", *(name for name, _ in _MONTH_COUNTS)]
    return Section(
        "months", "Months", (), (Grid("months", "Months", columns, pool.rows, stacked=True),)
    )


def _headline(steps: Sequence[FunnelStep], pool: _AllMonths) -> list[tuple[str, str, str]]:
    """Papers, passages, the audit of the index, and the best systems with their intervals."""
    related, answers, audit = pool.related, pool.answers, pool.audit
    headline = [
        ("Papers", count(steps[2].rows), f"of {number_of(steps[0].rows, 'page')} in the dump"),
        ("Passages", count(steps[3].rows), f"in {number_of(len(pool.readable), 'month')}"),
    ]
    if audit["expected"]:
        wrong = [f"{count(audit[name])} {name}" for name in ("missing", "stale") if audit[name]]
        remark = ", ".join(wrong) or f"all of {number_of(audit['expected'], 'point')} found"
        headline.append(("Index audit", percent(audit["present"] / audit["expected"]), remark))
    if related.systems:
        _, name = related_work_tables.main_metric(related)
        best = max(
            related.systems,
            key=lambda system: related_work_tables.main_mean(related, system).value or 0,
        )
        cell = mean_cell(related_work_tables.main_mean(related, best), "two")
        headline.append(("Best related work", words(best), f"{name} {cell.plain()}"))
    graded = [system for system in answers.systems if answers.result(system) is not None]
    if graded:
        cells = {
            system: answer_tables.measure_cell(answers.result(system), "coverage")
            for system in graded
        }
        best = max(graded, key=lambda system: float(cells[system].value or 0))
        headline.append(("Best answers", answering_system(best), f"Coverage {cells[best].plain()}"))
    return headline


def _overall_related_work(data: RelatedWorkData) -> list[Section]:
    sections = related_work_sections(data)
    if not sections:
        return []
    parts: list[Any] = [related_work_tables.leaderboard(data)] if data.systems else []
    parts += related_work_tables.published_figures(data)
    text = (
        "All finished months together, by the first judge where there is one. A month's own page"
        " adds its tasks, preference (Figure 5), stability (Figure 3), other judges, and people's"
        " ratings."
    )
    return [Section("related-work", "Related work", (text,), parts), *sections]


def _overall_answers(data: AnswersData, people: Mapping[str, MonthGrades]) -> list[Section]:
    if not data.questions:
        return []
    parts: list[Any] = [answer_tables.leaderboard(data)] if data.systems else []
    parts += answer_tables.published_figures(data)
    text = (
        "The questions of all finished months together, by the first judge where there is one. A"
        " month's own page of answers adds cost, other judges, and every question with its answers."
    )
    sections = [
        Section("questions-and-answers", "Answers to questions", (text,), parts),
        answer_tables.table_section(data),
        answer_tables.kinds_section(data),
        answer_tables.retrieval_section(data),
        answer_tables.differences_section(data),
        pooled_grades_section(people),
    ]
    return [section for section in sections if section is not None]
