"""From a month's tables to what its own page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline import tables
from pipeline.report.citations import retention_grid, support_section
from pipeline.report.comparison import criteria_section, paper_section, preference_section, tasks_grid
from pipeline.report.corpus import (
    CORPUS_STAGES,
    MOST_LINES,
    ledger_of,
    length_bars,
    papers,
    reasons,
    retrieval,
    rows_out,
    steps,
)
from pipeline.report.costs import cost_section
from pipeline.report.found import Found
from pipeline.report.grid import Section
from pipeline.report.reliability import asked_section, human_section, stability_section
from pipeline.report.views import AnswersView, FailedView, MonthView, RelatedView
from pipeline.storage.data_root import DataRoot


def month_view(
    root: DataRoot,
    month: str,
    found: Found,
    failed: FailedView,
    lines: Sequence[Mapping[str, Any]],
    answers: AnswersView,
) -> MonthView:
    """What the page of a month shows. `lines`: its tasks, as `comparison.tasks_grid` takes them.

    Raises as `DataRoot.read` does where a table of the corpus is not there.
    """
    ledger = ledger_of(root, month, CORPUS_STAGES)
    stage = tables.RELATED_WORK_TASKS.name
    known = papers(root, month)
    return MonthView(
        month=month,
        pages=rows_out(root, month, tables.DUMP_MEMBERS),
        papers_in_all=len(known),
        passages=rows_out(root, month, tables.PASSAGES),
        steps=steps(root, month, ledger),
        receipts=root.rows(tables.INDEX_RECEIPTS, month),
        left_out=ledger[:MOST_LINES],
        left_out_in_all=len(ledger),
        papers=known[:MOST_LINES],
        lengths=length_bars(root.read(tables.PASSAGES, month, ["words"])["words"].to_pylist()),
        retrieval=retrieval(root, month),
        no_task=[item for item in ledger if item.stage == stage][:MOST_LINES],
        why_no_task=reasons(ledger, stage),
        related=related_view(found, lines),
        answers=answers,
        failed=failed.items_in_all + failed.recovered_in_all,
    )


def related_view(found: Found, lines: Sequence[Mapping[str, Any]] = ()) -> RelatedView:
    """The related work of a month, with its tasks in `lines`, or of all months, without."""
    return RelatedView(found.tasks, found.systems, _sections(found, lines), found.small_model)


def _sections(found: Found, lines: Sequence[Mapping[str, Any]]) -> list[Section]:
    if not found.tasks:
        return []
    one_month = bool(lines)
    support = support_section(found)
    steps_kept = retention_grid(found)
    if steps_kept is not None:
        support = Section(support.key, support.title, support.paragraphs, (*support.parts, steps_kept))
    sections = [
        paper_section(found),
        criteria_section(found),
        preference_section(found),
        stability_section(found) if one_month else None,
        support if found.systems else None,
        asked_section(found),
        human_section(found) if one_month else None,
        cost_section(found) if found.systems else None,
        Section("tasks", "Tasks", (), (tasks_grid(found, [dict(line) for line in lines], MOST_LINES),))
        if lines
        else None,
    ]
    return [section for section in sections if section is not None]
