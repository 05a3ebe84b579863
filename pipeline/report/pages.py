"""The pages of a report that consist of sections: of a month, its answers and failures, and of all
months.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.corpus.passages.packing import FEWEST_WORDS, LONG, MOST_WORDS, SHORT
from pipeline.identity.months import month_name
from pipeline.report import ANSWER_TABLES, FUNNEL, MODEL_TABLES, answers, related_work
from pipeline.report.figures import Bar, BarFigure
from pipeline.report.formatting import (
    ANSWERS_PAGE,
    FAILURES_PAGE,
    FEW,
    answering_system,
    count,
    percent,
    question_file,
    small_model_note,
    task_file,
    words,
)
from pipeline.report.frames import (
    LeftOut,
    ReportData,
    read_ledger,
    read_or_empty,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    first_rows,
    percent_cell,
    present,
)
from pipeline.report.rendering import render
from pipeline.storage.writing import write_whole
from pipeline.text import number_of

SAMPLE_NOTE = (
    "These are the invented papers of citeloom's sample corpus; arXiv does not have their ids."
)
_HOME = ("citeloom", "../index.html")
_JSON = ("JSON", "report.json")
_MOST_OPEN_PAPERS = 25
_MONTH_COLUMNS = {
    "Pages": tables.DUMP_MEMBERS,
    "Papers": tables.PAPERS,
    "Passages": tables.PASSAGES,
    "In the index": tables.INDEX_RECEIPTS,
    "References": tables.REFERENCES,
    "Tasks": tables.RELATED_WORK_TASKS,
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of sections.

    path: (text, address) of the pages above it, then its own text with ''. headline: (name, value,
    remark) of its main figures. links: (text, address). notes: shown framed below the lead.
    """

    title: str
    path: Sequence[tuple[str, str]]
    lead: str
    sections: Sequence[PageSection]
    headline: Sequence[tuple[str, str, str]] = ()
    links: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    contents: bool = True

    @property
    def sortable(self) -> bool:
        """Whether a table of the page can be sorted, for which it needs the script."""
        return any(grid.sortable for section in self.sections for grid in section.grids)


def write_single_page(
    file: Path,
    title: str,
    lead: str,
    sections: Sequence[PageSection],
    headline: Sequence[tuple[str, str, str]],
    notes: Sequence[str],
) -> None:
    """Write a page that stands alone, in the look of the reports; its folder is made."""
    page = Page(title, [], lead, sections, headline, notes=notes)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, render("page.html.j2", page))


def month_pages(
    data: ReportData, failures: Sequence[LeftOut]
) -> tuple[dict[str, Page], dict[str, Any]]:
    """The pages of a month by their files' names, and its numbers as `report.json` has them:
    `tables` by key, each with title, notes, and rows as objects.

    failures: answers of models that systems went on without.
    """
    month, name = data.months[0].month, month_name(data.months[0].month)
    tasks = related_work.read_tasks(data)
    failures = [*_failures(data, {str(task["task_id"]) for task in tasks}), *failures]
    on_failures = _failure_sections(data, failures)
    on_answers = answers.sections(data.answers, with_pages=True)
    on_related = related_work.sections(data.related, tasks)
    failed = "What failed or was left out where a model was called"
    questions = number_of(len(data.answers.questions), "question")
    systems = "; ".join(map(answering_system, data.answers.systems)) or "no system"
    pages = {
        "index.html": Page(
            title=name,
            path=[_HOME, (month, "")],
            lead=_counts(data),
            headline=_cards(data),
            links=[(f"{failed}: {count(len(failures))}", FAILURES_PAGE), _JSON],
            notes=_notes(data),
            sections=[
                _corpus_section(
                    data, read_ledger(data.root, month, [table for table, *_ in FUNNEL])
                ),
                _papers_section(data),
                related_work.month_intro(data),
                *on_related,
                answers.month_intro(data.answers),
            ],
        ),
        FAILURES_PAGE: Page(
            title=f"What failed or was left out, {name}",
            path=[_HOME, (month, "index.html"), ("failures", "")],
            lead="Stages that call a language model. The month's page has what others left out.",
            sections=on_failures,
            contents=False,
        ),
    }
    if data.answers.questions:
        pages[ANSWERS_PAGE] = Page(
            title=f"Answers to questions, {name}",
            path=[_HOME, (month, "index.html"), ("answers", "")],
            lead=f"{questions} answered by {systems}, each from the papers up to this month.",
            links=[("What failed or was left out", FAILURES_PAGE), _JSON],
            notes=_notes(data),
            sections=on_answers,
        )
    return pages, _month_json(data, [*on_related, *on_answers, on_failures[0]])


def _failures(data: ReportData, tasks: set[str]) -> list[LeftOut]:
    """What stages that call a model left out, each with the page of its task or question.

    A subject is the id of a task or question, or begins with it and a space.
    """
    questions = {row["question_id"] for row in data.answers.questions.values()}
    items = []
    for item in read_ledger(data.root, data.months[0].month, MODEL_TABLES):
        is_answer = tables.TABLES[item.stage] in ANSWER_TABLES
        known, file_of = (questions, question_file) if is_answer else (tasks, task_file)
        names = [name for name in (item.subject, item.subject.split(" ")[0]) if name in known]
        items.append(replace(item, page=file_of(names[0]) if names else ""))
    return items


def overall_page(data: ReportData) -> Page:
    """The page over all months. A month with unreadable tables stays in the list with a remark."""
    papers, passages = data.rows(tables.PAPERS), data.rows(tables.PASSAGES)
    pages, months = data.rows(tables.DUMP_MEMBERS), len(data.months)
    headline = [
        *_cards(data),
        ("Papers", count(papers), f"of {number_of(pages, 'page')} in the dump"),
        ("Passages", count(passages), f"in {number_of(months, 'month')}"),
    ]
    audit = data.audit
    if audit["expected"]:
        wrong = [f"{count(audit[name])} {name}" for name in ("missing", "stale") if audit[name]]
        remark = ", ".join(wrong) or f"all of {number_of(audit['expected'], 'point')} found"
        headline.append(("Index audit", percent(audit["present"] / audit["expected"]), remark))
    return Page(
        title="All months",
        path=[("citeloom", "")],
        lead=f"{number_of(months + len(data.unreadable), 'month')}: {_counts(data)}",
        headline=headline,
        notes=_notes(data),
        sections=[
            _corpus_section(data),
            _months_section(data),
            *related_work.sections(data.related),
            *answers.sections(data.answers, with_pages=False),
        ],
    )


def _cards(data: ReportData) -> list[tuple[str, str, str]]:
    return [*related_work.card(data.related), *answers.card(data.answers)]


def _counts(data: ReportData) -> str:
    counts = [
        number_of(data.rows(tables.PAPERS), "paper"),
        f"{number_of(data.rows(tables.DUMP_MEMBERS), 'page')} in the dump",
        number_of(data.rows(tables.PASSAGES), "passage"),
        number_of(data.rows(tables.RELATED_WORK_TASKS), "related-work task"),
        number_of(len(data.answers.questions), "question"),
    ]
    return f"{', '.join(counts)}."


def _notes(data: ReportData) -> list[str]:
    """Warnings to read before any number."""
    small_model = data.related.small_model or data.answers.small_model
    notes = [small_model_note(small_model)] if small_model else []
    served_as = data.related.served_as | data.answers.served_as
    notes += [f"What is named {name} here is {served}." for name, served in served_as.items()]
    return [*notes, SAMPLE_NOTE] if data.sample else notes


def reasons_text(left_out: Mapping[str, int]) -> str:
    """`not in categories (12), withdrawn (1)`; `nothing` where nothing was left out."""
    in_order = sorted(left_out.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{words(name)} ({count(n)})" for name, n in in_order) or "nothing"


def _corpus_section(data: ReportData, ledger: Sequence[LeftOut] = ()) -> PageSection:
    """The way from the dump to the index, and, of a month, everything that was left out."""
    rows = [
        [name, number_of(data.rows(step), noun), reasons_text(data.left_out(step.name))]
        for step, name, noun in FUNNEL
    ]
    title = "Steps, and what was left out"
    parts: list[Grid | BarFigure] = [Grid("funnel", title, ["Step", "Result", "Left out"], rows)]
    if ledger:
        grid = _left_out_grid("left_out", "What was left out", ledger, "ledger")
        grid.folded = f"Everything that was left out, one by one ({count(len(ledger))})"
        parts.append(grid)
    lengths = data.lengths
    if lengths and (len(data.months) > 1 or data.rows(tables.PAPERS) >= FEW):
        most, passages = max(lengths.values()), lengths.total()
        inside = 1 - (lengths[SHORT] + lengths[LONG]) / passages
        bars = [Bar(name, count(number), number / most, 1) for name, number in lengths.items()]
        share = f"{percent(inside)} of {number_of(passages, 'passage')}"
        about = f"{share} have {FEWEST_WORDS} to {MOST_WORDS} words."
        figure = BarFigure("Histogram of passage lengths", [("Words: passages", bars)], about)
        parts.append(figure)
    return PageSection("corpus", "From the dump to the index", (), parts)


def _left_out_grid(key: str, title: str, items: Sequence[LeftOut], where: str) -> Grid:
    """Items one by one, as many as a page lists. where: the table that has the others."""
    listed, notes = first_rows(items, where)
    rows = [
        [Cell(item.subject, page=item.page), words(item.stage), words(item.reason), item.detail]
        for item in listed
    ]
    columns = ["What", "Stage", "Reason", "Detail"]
    return Grid(key, title, columns, rows, notes=notes, stacked=True)


def _papers_section(data: ReportData) -> PageSection:
    """The month's papers by identifier."""
    root, month = data.root, data.months[0].month
    names = ["arxiv_id", "title", "primary_category", "chars_seen", "chars_kept", "truncated"]
    papers = read_or_empty(root, tables.PAPERS, month, names).sort_by("arxiv_id").to_pylist()
    if not papers:
        text = "No paper of this month was kept; the steps above say what was left out."
        return PageSection("papers", "Papers", (text,))
    passages = _count_values(read_or_empty(root, tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"])
    columns = ["arxiv_id", "cited_arxiv_id"]
    cited = read_or_empty(root, tables.REFERENCES, month, columns)
    references = _count_values(cited["arxiv_id"])
    known = _count_values(cited.filter(pc.is_valid(cited["cited_arxiv_id"]))["arxiv_id"])
    listed, notes = first_rows(papers, "the table papers")
    rows = []
    for paper in listed:
        name = paper["arxiv_id"]
        rows.append(
            [
                Cell(paper["title"], tag="page truncated" if paper["truncated"] else ""),
                Cell(name, arxiv_id=name),
                paper["primary_category"],
                passages[name],
                references[name] or "no bibliography",
                known[name],
                share_kept(paper),
            ]
        )
    about = (
        "Known: references that are papers on arXiv. Kept: the share of the page's visible"
        " characters that were kept."
    )
    columns = ["Title", "Paper", "Category", "Passages", "References", "Known", "Kept"]
    grid = Grid("papers", "Papers", columns, rows, about=about, notes=notes, stacked=True)
    if len(papers) > _MOST_OPEN_PAPERS:
        grid.folded = f"All papers ({count(len(papers))})"
    return PageSection("papers", "Papers", (), (grid,))


def share_kept(paper: Mapping[str, Any]) -> Cell:
    """The share of a paper's visible characters that were kept; none without visible text."""
    seen = paper["chars_seen"]
    return percent_cell(paper["chars_kept"] / seen if seen else None)


def _count_values(column: pa.ChunkedArray) -> Counter[str]:
    return Counter({pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()})


def _months_section(data: ReportData) -> PageSection:
    """Every month with its counts; those with tables that cannot be read have a remark."""
    remark = "has tables that cannot be read: see citeloom status"
    rows: dict[str, GridRow] = {
        month: [Cell(month_name(month), tag=remark), *[None] * len(_MONTH_COLUMNS)]
        for month in data.unreadable
    }
    for item in data.months:
        page = f"{item.month}/index.html" if item.finished else ""
        name = Cell(month_name(item.month), page=page, tag="" if page else "not finished")
        rows[item.month] = [
            name,
            *(item.rows.get(table.name, 0) for table in _MONTH_COLUMNS.values()),
        ]
    in_order = [rows[month] for month in sorted(rows)]
    grid = Grid("months", "Months", ["Month", *_MONTH_COLUMNS], in_order, stacked=True)
    return PageSection("months", "Months", (), (grid,))


def _failure_sections(data: ReportData, failures: Sequence[LeftOut]) -> list[PageSection]:
    """What failed or was left out where a model was called: by stage and reason, one by one."""
    counts = Counter((item.stage, item.reason) for item in failures)
    in_order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = [[words(stage), words(reason), number] for (stage, reason), number in in_order]
    disabled: dict[str, list[str]] = defaultdict(list)
    for table in MODEL_TABLES:
        if reason := data.note(table, "off"):
            disabled[reason].append(words(table.name))
    notes = [f"{', '.join(stages)}: not run; {reason}." for reason, stages in disabled.items()]
    title = "By stage and reason"
    grid = Grid("failed", title, ["Stage", "Reason", "Times"], rows, notes=notes)
    items = _left_out_grid("items", "What failed or was left out", failures, "the tables")
    return present(
        PageSection("counts", title, (), (grid,)),
        PageSection("left-out", "One by one", (), (items,)) if failures else None,
    )


def _month_json(data: ReportData, sections: Sequence[PageSection]) -> dict[str, Any]:
    related, answered = data.related, data.answers
    return {
        "month": data.months[0].month,
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
        "no_questions": answers.why_none(answered),
        "notes": {
            section.key: [*section.paragraphs, *section.definitions]
            for section in sections
            if section.paragraphs or section.definitions
        },
        "tables": {grid.key: grid.as_json() for section in sections for grid in section.grids},
    }
