"""A month's report as Markdown and as JSON, with the same tables as its page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pipeline.evaluation.cited import printable
from pipeline.report.corpus import funnel_grid
from pipeline.report.formatting import month_name
from pipeline.report.grid import Grid, Section
from pipeline.report.pages import MonthReport

# What Markdown, or HTML within it, could take for markup.
_MARKUP = "\\`*_{}[]()<>#+!|~$&"


def month_json(report: MonthReport) -> bytes:
    """The month's numbers as JSON, UTF-8: `tables` by key, each with title, notes, and rows as objects."""
    related, answers = report.related, report.answers
    sections = [report.retrieval, *report.related_sections, *report.answer_sections]
    pages, _, papers, passages, *_ = report.steps
    document = {
        "month": report.month,
        "corpus": {
            "pages": pages.rows,
            "papers": papers.rows,
            "passages": passages.rows,
            "steps": [{"step": step.name, "rows": step.rows, "left_out": dict(step.left_out)} for step in report.steps],
        },
        "tasks": related.tasks,
        "systems": related.systems,
        "small_model": related.small_model or answers.small_model,
        "questions": len(answers.questions),
        "answering_systems": answers.systems,
        "no_questions": "" if answers.questions else answers.why_none,
        "notes": {
            section.key: [*section.paragraphs, *section.definitions]
            for section in sections
            if section.paragraphs or section.definitions
        },
        "tables": {grid.key: grid.as_json() for section in (*sections, report.failures[0]) for grid in section.grids},
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def month_markdown(report: MonthReport) -> bytes:
    """The month's numbers as Markdown, UTF-8; whatever could be markup in a text is escaped."""
    return ("\n".join(_lines(report)).rstrip() + "\n").encode()


def _lines(report: MonthReport) -> Iterator[str]:
    yield from (f"# {month_name(report.month)}", "", report.lead, "")
    for note in report.notes:
        yield from (escape_markdown(note), "")
    yield from ("## From the dump to the index", "", *_table(funnel_grid(report.steps)), "")
    for section in (report.retrieval, *report.related_sections, *report.answer_sections):
        yield from _section(section)
    if not report.answers.questions:
        reason = escape_markdown(report.answers.why_none)
        yield from ("## Answers to questions", "", f"No question was asked: {reason}.", "")
    yield from _grid(report.failures[0].grids[0], "What failed or was left out")


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {escape_markdown(section.title)}", "")
    for paragraph in (*section.paragraphs, *section.definitions):
        yield from (escape_markdown(paragraph), "")
    for grid in section.grids:
        yield from _grid(grid, grid.title)


def _grid(grid: Grid, title: str) -> Iterator[str]:
    yield from (f"### {escape_markdown(title)}", "")
    for text in (grid.about, *(f"{group.title}: {group.about}" for group in grid.groups if group.about)):
        if text:
            yield from (escape_markdown(text), "")
    yield from (*(_table(grid) if grid.rows else ("Nothing.",)), "")
    for note in grid.notes:
        yield from (escape_markdown(note), "")


def _table(grid: Grid) -> Iterator[str]:
    grouped = any(group.title for group in grid.groups)
    yield _row([*([""] if grouped else []), *map(escape_markdown, grid.columns)])
    rules = ["---:" if grid.numeric(place) else "---" for place in range(len(grid.columns))]
    yield _row([*(["---"] if grouped else []), *rules])
    for group in grid.groups:
        heading = [escape_markdown(group.title)] if grouped else []
        for row in group.rows:
            yield _row(heading + [escape_markdown(cell.plain()) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """A text of a paper or a model as one line of Markdown without markup."""
    folded = " ".join(printable(text).split())
    return "".join(f"\\{character}" if character in _MARKUP else character for character in folded)
