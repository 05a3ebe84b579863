"""From the tables of all months to what the overall index shows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeline import tables
from pipeline.errors import CiteloomError
from pipeline.evaluation.annotation.grade_results import MonthGrades, read_month_grades
from pipeline.report.answer_people import pooled_people
from pipeline.report.answers.found import CONTROLS, AnswersFound, add_answers, read_answers
from pipeline.report.answers.view import pooled_view
from pipeline.report.corpus import rows_out
from pipeline.report.found import Found, PriceList, add_month, read_month, shown_writers
from pipeline.report.month import related_view
from pipeline.report.scores import Scores
from pipeline.report.views import IndexView, MonthLine
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table


def index_view(root: DataRoot, judges: Sequence[str], prices: PriceList, cutoff: str = "") -> IndexView:
    """What the page over all months shows, from the tables that are there; a month of which some cannot be read
    stays in the list with a remark, since its own report is another run's business. cutoff: the knowledge cut-off by
    which questions are old or recent."""
    every = root.months(tables.DUMP_MEMBERS)
    found = Found(Scores(judges), prices=prices, shown=_readable_writers(root, tables.SUMMARIES, every))
    answered_by = _readable_writers(root, tables.ANSWERS, every)
    answers = AnswersFound(prices=prices, wanted=judges, cutoff=cutoff, shown=answered_by)
    people: dict[str, MonthGrades] = {}
    months = [_month_line(root, month, found, answers, people) for month in every]
    return IndexView(
        months=months,
        papers=sum(line.papers for line in months),
        passages=sum(line.passages for line in months),
        tasks=sum(line.tasks for line in months),
        related=related_view(found),
        answers=pooled_view(answers, pooled_people(people)),
        changes=bool(root.months(tables.CHANGES)),
    )


def _readable_writers(root: DataRoot, table: Table, months: Sequence[str]) -> dict[str, str]:
    """As `shown_writers`, over the months of a table that can be read."""
    readable = []
    for month in months:
        with contextlib.suppress(CiteloomError):
            shown_writers(root, table, [month])
            readable.append(month)
    return shown_writers(root, table, readable)


def _month_line(
    root: DataRoot, month: str, found: Found, answers: AnswersFound, people: dict[str, MonthGrades]
) -> MonthLine:
    """A month's line; what it holds of related work, answers and grades is added to what was found of the others."""
    try:
        counts = _month_counts(root, month)
        if read_provenance(root.file(tables.SCORES, month)) is None:
            return MonthLine(month, linked=False, remark="not finished", **counts)
        related, answered = read_month(root, month, deep=False), read_answers(root, month, answers.shown)
        grades = [
            replace(grade, system=answers.shown.get(grade.system, grade.system))
            for grade in answered.grades
            if grade.system not in CONTROLS
        ]
        graded = read_month_grades(root, month, grades, shown=answers.shown)
        add_month(found, root, month, related)
        add_answers(answers, root, month, answered, apart=True)
        people[month] = graded
    except CiteloomError:
        return MonthLine(month, linked=False, remark="has tables that cannot be read: see citeloom status")
    return MonthLine(month, linked=True, **counts)


def _month_counts(root: DataRoot, month: str) -> dict[str, Any]:
    counted = {
        "pages": tables.DUMP_MEMBERS, "papers": tables.PAPERS, "passages": tables.PASSAGES,
        "indexed": tables.INDEX_RECEIPTS, "references": tables.REFERENCES, "tasks": tables.RELATED_WORK_TASKS,
    }  # fmt: skip
    return {name: rows_out(root, month, table) for name, table in counted.items()}
