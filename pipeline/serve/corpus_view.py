"""Overview of the corpus: months, counts, rows left out, and audits of the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.engine.status import month_status
from pipeline.ops.run_months import months_of_status
from pipeline.report.corpus import reasons_text
from pipeline.report.summary import count_left_out, rows_out
from pipeline.stages import STAGES


@dataclass(frozen=True, slots=True)
class CorpusMonth:
    """A month of the corpus.

    counts: rows by table. left_out: what the stages of the corpus left out, in words.
    points_expected, points_present: of the last audited load into the index. stages: how many are
    done, stale, failed and missing. failures: messages.
    """

    month: str
    counts: Mapping[str, int]
    left_out: str
    points_expected: int
    points_present: int
    stages: Mapping[str, int]
    failures: tuple[str, ...]
    has_report: bool


@dataclass(frozen=True, slots=True)
class CorpusView:
    """All months, oldest first."""

    months: tuple[CorpusMonth, ...]

    def total(self, table: str) -> int:
        """Rows of a table over all months."""
        return sum(month.counts[table] for month in self.months)

    @property
    def points_expected(self) -> int:
        return sum(month.points_expected for month in self.months)

    @property
    def points_present(self) -> int:
        return sum(month.points_present for month in self.months)


COUNTED = (tables.DUMP_MEMBERS, tables.PAPERS, tables.PASSAGES, tables.REFERENCES, tables.CITATIONS)


def read_corpus(workspace: Workspace) -> CorpusView:
    """Every month of the data root and the dump. Raises PermanentFailure for a broken table."""
    months, _ = months_of_status(workspace, "all")
    return CorpusView(tuple(_read_month(workspace, month) for month in months))


def _read_month(workspace: Workspace, month: str) -> CorpusMonth:
    root = workspace.root
    receipts = []
    if month in root.months(tables.INDEX_RECEIPTS):
        receipts = root.rows(tables.INDEX_RECEIPTS, month)
    status = [row for row in month_status(STAGES, workspace, month) if not row["off"]]
    states = [row["state"] for row in status]
    reasons = Counter[str]()
    for counts in count_left_out(root, month).values():
        reasons.update(counts)
    return CorpusMonth(
        month=month,
        counts={table.name: rows_out(root, month, table) for table in COUNTED},
        left_out=reasons_text(sorted(reasons.items(), key=lambda pair: -pair[1])),
        points_expected=sum(row["expected"] for row in receipts),
        points_present=sum(row["present"] for row in receipts),
        stages={state: states.count(state) for state in ("done", "stale", "failed", "missing")},
        failures=tuple(f"{row['stage']}: {row['failure']}" for row in status if row["failure"]),
        has_report=(root.path / "reports" / month / "index.html").is_file(),
    )
