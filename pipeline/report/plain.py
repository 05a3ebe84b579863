"""A month's report as Markdown and as JSON: the same tables as on its page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pipeline.evaluation.cited import printable
from pipeline.report.filters import count, month_name, number_of, words
from pipeline.report.grid import Grid, Section
from pipeline.report.views import FailedView, MonthView

# What Markdown, or HTML within it, could take for markup.
_MARKUP = "\\`*_{}[]()<>#+!|~$&"


def month_json(view: MonthView, failed: FailedView) -> bytes:
    """The month's numbers as JSON, UTF-8: `tables` by key, each a title, what it rests on, and rows as objects."""
    sections = (*view.related.sections, *view.answers.sections)
    told = {
        "month": view.month,
        "corpus": {
            "pages": view.pages,
            "papers": view.papers_in_all,
            "passages": view.passages,
            "steps": [{"step": step.name, "rows": step.rows, "left_out": dict(step.left_out)} for step in view.steps],
        },
        "tasks": view.related.tasks,
        "systems": list(view.related.systems),
        "small_model": view.related.small_model or view.answers.small_model,
        "questions": view.answers.questions,
        "answering_systems": list(view.answers.systems),
        "no_questions": view.answers.why_none,
        "notes": {section.key: list(section.paragraphs) for section in sections if section.paragraphs},
        "tables": {grid.key: grid.as_json() for section in sections for grid in section.grids()}
        | {failed.counts.key: failed.counts.as_json()},
    }
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()


def month_markdown(view: MonthView, failed: FailedView) -> bytes:
    """The month's numbers as Markdown, UTF-8; whatever could be markup in a text is escaped."""
    return ("\n".join(_lines(view, failed)).rstrip() + "\n").encode()


def _lines(view: MonthView, failed: FailedView) -> Iterator[str]:
    yield f"# {month_name(view.month)}"
    yield ""
    yield (
        f"{number_of(view.papers_in_all, 'paper')} of {number_of(view.pages, 'page')} in the dump, "
        f"{number_of(view.passages, 'passage')}, {number_of(view.related.tasks, 'related-work task')}."
    )
    yield ""
    small = view.related.small_model or view.answers.small_model
    if small:
        yield (
            f"{escaped(small)} wrote or judged here, the small model that citeloom carries: its "
            "texts and scores show that the path works, not how good the method is."
        )
        yield ""
    yield from _corpus(view)
    for section in (*view.related.sections, *view.answers.sections):
        yield from _section(section)
    if not view.answers.questions:
        yield from ("## Answers to questions", "", f"No question was asked: {escaped(view.answers.why_none)}.", "")
    yield from _grid(failed.counts)


def _corpus(view: MonthView) -> Iterator[str]:
    yield "## From the dump to the index"
    yield ""
    yield "| Step | Comes out | Left out, and why |"
    yield "| --- | ---: | --- |"
    for step in view.steps:
        why = ", ".join(f"{escaped(words(reason))} ({count(times)})" for reason, times in step.left_out) or "nothing"
        yield f"| {step.name} | {number_of(step.rows, step.counted)} | {why} |"
    yield ""


def _section(section: Section) -> Iterator[str]:
    yield f"## {escaped(section.title)}"
    yield ""
    for paragraph in section.paragraphs:
        yield escaped(paragraph)
        yield ""
    for grid in section.grids():
        yield from _grid(grid)


def _grid(grid: Grid) -> Iterator[str]:
    yield f"### {escaped(grid.title)}"
    yield ""
    for text in (grid.about, *(f"{group.title}: {group.about}" for group in grid.groups if group.about)):
        if text:
            yield escaped(text)
            yield ""
    if grid.rows():
        yield from _table(grid)
    else:
        yield "Nothing."
    yield ""
    for note in grid.notes:
        yield escaped(note)
        yield ""


def _table(grid: Grid) -> Iterator[str]:
    grouped = any(group.title for group in grid.groups)
    head = (("",) if grouped else ()) + tuple(grid.head)
    yield _row([escaped(name) for name in head])
    rules = ["---:" if grid.numeric(place) else "---" for place in range(len(grid.head))]
    yield _row((["---"] if grouped else []) + rules)
    for group in grid.groups:
        for row in group.rows:
            yield _row(([escaped(group.title)] if grouped else []) + [escaped(cell.plain()) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """A text of a paper or a model as one line of Markdown that says what it says, and does nothing."""
    folded = " ".join(printable(text).split())
    return "".join(f"\\{sign}" if sign in _MARKUP else sign for sign in folded)
