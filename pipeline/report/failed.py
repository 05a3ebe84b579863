"""What failed or was left out where a language model was asked: ledgers of these stages, and answers done without."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline import tables
from pipeline.report.corpus import MOST_LINES, ledger_of
from pipeline.report.filters import words
from pipeline.report.grid import Grid, Rows, Value
from pipeline.report.views import FailedView, LeftOut
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance

LLM_STAGES = (
    tables.KEY_ELEMENTS.name,
    tables.SUMMARIES.name,
    tables.G_SCORES.name,
    tables.CITATION_SUPPORT.name,
    tables.STABILITY.name,
    tables.SCORES.name,
)
ANSWER_STAGES = (
    tables.QUESTIONS.name,
    tables.ANSWERS.name,
    tables.ANSWER_GRADES.name,
    tables.ANSWER_SCORES.name,
)
_STAGES = (*LLM_STAGES, *ANSWER_STAGES)
PAGE = "failed.html"


def failed_view(
    root: DataRoot,
    month: str,
    pages: Mapping[str, str],
    recovered: Iterable[LeftOut],
    question_pages: Mapping[str, str] | None = None,
) -> FailedView:
    """The page of failures of a month. pages: task id → page; question_pages: question id → page; recovered: answers
    that a system did without, from the traces of its sections and answers."""
    found = {stage: (question_pages or {}) if stage in ANSWER_STAGES else pages for stage in _STAGES}
    ledger = [_with_page(item, found[item.stage]) for item in ledger_of(root, month, _STAGES)]
    mended = list(recovered)
    return FailedView(
        month,
        _counts(root, month, ledger, mended),
        ledger[:MOST_LINES],
        len(ledger),
        mended[:MOST_LINES],
        len(mended),
    )


def _with_page(item: LeftOut, pages: Mapping[str, str]) -> LeftOut:
    """A subject is the id of a task or question, or begins with it, a blank between."""
    subject = item.subject
    page = pages.get(subject) or pages.get(subject.split(" ")[0], "")
    return replace(item, page=page)


def _counts(root: DataRoot, month: str, ledger: Iterable[LeftOut], recovered: Iterable[LeftOut]) -> Grid:
    """Reasons by stage with their counts; stages that were not run, and say so, are named with why."""
    counts = Counter((item.stage, item.reason) for item in ledger)
    rows = [
        [Value(words(stage)), Value(words(reason)), Value(number, "count")]
        for stage in _STAGES
        for (named, reason), number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if named == stage
    ]
    rows += [
        [Value(words(stage)), Value(f"answer done without: {reason}"), Value(number, "count")]
        for (stage, reason), number in sorted(Counter((each.stage, each.reason) for each in recovered).items())
    ]
    return Grid(
        "failed", "What failed or was left out", ("Stage", "Reason", "Times"), [Rows(rows)], notes=_off(root, month)
    )


def _off(root: DataRoot, month: str) -> list[str]:
    """Stages that were not run, by why: without a question set there are eight for one reason."""
    found: dict[str, list[str]] = defaultdict(list)
    for stage in _STAGES:
        written = read_provenance(root.file(tables.TABLES[stage], month))
        if written is not None and written.notes.get("off"):
            found[str(written.notes["off"])].append(words(stage))
    return [f"{', '.join(stages)}: not run; {why}." for why, stages in found.items()]
