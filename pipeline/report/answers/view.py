"""From what was found of answers to what the pages show of them: which sections stand where."""

from __future__ import annotations

from pipeline.report.answers.costs import cost_section
from pipeline.report.answers.found import AnswersFound
from pipeline.report.answers.judged import controls_section, differences_section, judges_section
from pipeline.report.answers.main import kinds_section, short_grid, table_section
from pipeline.report.answers.questions import list_section
from pipeline.report.answers.retrieval import retrieval_section
from pipeline.report.grid import Section
from pipeline.report.views import AnswersView


def answers_view(found: AnswersFound, people: Section | None = None) -> AnswersView:
    """The answers of one month; without a question, why there is none. people: their grades, where there are some."""
    sections = [
        table_section(found),
        kinds_section(found),
        retrieval_section(found),
        differences_section(found),
        cost_section(found),
        controls_section(found),
        judges_section(found),
        people,
        list_section(found),
    ]
    return _view(found, sections)


def pooled_view(found: AnswersFound, people: Section | None = None) -> AnswersView:
    """The answers of all months, their questions pooled: what needs no page of a question."""
    return _view(found, [table_section(found), kinds_section(found), retrieval_section(found, linked=False), people])


def _view(found: AnswersFound, sections: list[Section | None]) -> AnswersView:
    if not found.posed:
        return AnswersView(why_none=found.why_none)
    there = [section for section in sections if section is not None]
    return AnswersView(len(found.posed), found.systems, there, short_grid(found), "", found.small_model)
