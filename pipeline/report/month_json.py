"""A month's report as JSON, with the same tables as its page."""

from __future__ import annotations

import json

from pipeline.report.pages import MonthReport


def month_json(report: MonthReport) -> bytes:
    """The month's numbers as JSON, UTF-8: `tables` by key, each with title, notes, and rows as
    objects.
    """
    related, answers = report.related, report.answers
    sections = [report.retrieval, *report.related_sections, *report.answer_sections]
    pages, _, papers, passages, *_ = report.steps
    document = {
        "month": report.month,
        "corpus": {
            "pages": pages.rows,
            "papers": papers.rows,
            "passages": passages.rows,
            "steps": [
                {"step": step.name, "rows": step.rows, "left_out": dict(step.left_out)}
                for step in report.steps
            ],
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
        "tables": {
            grid.key: grid.as_json()
            for section in (*sections, report.failures[0])
            for grid in section.grids
        },
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
