"""Checks of a month: what one stage hands on is what the next one holds, and its figures are those of other months."""

from __future__ import annotations

from collections.abc import Callable

from pipeline import tables
from pipeline.corpus.passages.packing import FEWEST_WORDS, MOST_WORDS
from pipeline.engine.checks import Check, CheckResult
from pipeline.engine.stage import Workspace
from pipeline.evaluation.quality import findings
from pipeline.index import close_indexes
from pipeline.index.audit import audit_and_receipt
from pipeline.index.load import KINDS
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table

# Points of one kind that a check names; `citeloom audit --json` names all.
_MOST_NAMED = 20


def _rows_and_left_out(workspace: Workspace, table: Table, month: str) -> tuple[int, int]:
    written = read_provenance(workspace.root.file(table, month))
    return (written.rows, sum(written.left_out.values())) if written else (0, 0)


def _every_member_is_accounted_for(workspace: Workspace, month: str) -> CheckResult:
    members, _ = _rows_and_left_out(workspace, tables.DUMP_MEMBERS, month)
    papers, left_out = _rows_and_left_out(workspace, tables.PAPERS, month)
    return CheckResult(members == papers + left_out, {"members": members, "papers": papers, "left_out": left_out})


def _passages_are_within_bounds(workspace: Workspace, month: str) -> CheckResult:
    words = workspace.root.read(tables.PASSAGES, month, ["words"])["words"].to_pylist()
    over = sum(count > MOST_WORDS for count in words)
    under = sum(count < FEWEST_WORDS for count in words)
    return CheckResult(over == 0 and under * 10 <= len(words), {"passages": len(words), "over": over, "under": under})


def _every_paper_has_passages(workspace: Workspace, month: str) -> CheckResult:
    papers = set(workspace.root.read(tables.PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    with_passages = set(workspace.root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    return CheckResult(papers == with_passages, {"papers": len(papers), "without": sorted(papers - with_passages)})


def _every_passage_is_embedded(workspace: Workspace, month: str) -> CheckResult:
    columns = ["passage_id", "text_sha256"]
    passages = workspace.root.read(tables.PASSAGES, month, columns)
    embeddings = workspace.root.read(tables.EMBEDDINGS, month, columns)
    if passages.equals(embeddings):  # as columns, a month of a million passages is 0.2 GB, and as sets over 1 GB
        return CheckResult(True, {"passages": passages.num_rows, "missing": 0, "foreign": 0})
    expected = {tuple(row.values()) for row in passages.to_pylist()}
    embedded = {tuple(row.values()) for row in embeddings.to_pylist()}
    return CheckResult(
        expected == embedded,
        {"passages": len(expected), "missing": len(expected - embedded), "foreign": len(embedded - expected)},
    )


def _index_holds_the_embeddings(workspace: Workspace, month: str) -> CheckResult:
    try:
        audit, receipt = audit_and_receipt(workspace, month)
    finally:
        close_indexes()
    points = {kind: list(map(str, getattr(audit, kind)[:_MOST_NAMED])) for kind in KINDS}
    facts = {"collection": audit.collection, "expected": audit.expected, "present": audit.present, **points}
    return CheckResult(audit.clean and [receipt] == workspace.root.rows(tables.INDEX_RECEIPTS, month), facts)


def _measures_of(table: Table) -> Callable[[Workspace, str], CheckResult]:
    """A check of a table's measures against fixed bounds and the months around it (`evaluation.quality`)."""

    def evaluate(workspace: Workspace, month: str) -> CheckResult:
        measures = findings(workspace, month, table)
        outliers = [measure.describe() for measure in measures if not measure.holds]
        facts = {}
        for measure in measures:
            facts[measure.measure] = round(measure.value, 6)
            facts[f"{measure.measure}/low"] = round(measure.low, 6)
            facts[f"{measure.measure}/high"] = round(measure.high, 6)
        return CheckResult(not outliers, facts, "; ".join(outliers))

    return evaluate


def _quality_check(table: Table) -> Check:
    return Check(
        table.name,
        f"{table.name}_are_as_in_other_months",
        "The month's measures lie within fixed bounds, and near those of the months around it.",
        _measures_of(table),
        warning=True,
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "papers",
        "every_member_is_accounted_for",
        "Every page of the dump is a paper, or in the ledger with its reason.",
        _every_member_is_accounted_for,
        blocking=True,
    ),
    Check(
        "passages",
        "passages_are_within_bounds",
        "No passage is over 300 words, and those under 20 are whole sections or front matter: at most one in ten.",
        _passages_are_within_bounds,
    ),
    Check(
        "passages",
        "every_paper_has_passages",
        "Every paper of the month has at least one passage.",
        _every_paper_has_passages,
        blocking=True,
    ),
    Check(
        "embeddings",
        "every_passage_is_embedded",
        "The embeddings hold exactly the passages of the month, with the text they have now.",
        _every_passage_is_embedded,
        blocking=True,
    ),
    Check(
        "index_receipts",
        "index_holds_the_embeddings",
        "The index holds the points that the month's tables ask for, id by id and as they are now, and no other.",
        _index_holds_the_embeddings,
        blocking=True,
        uses_pool=True,
    ),
    *(_quality_check(table) for table in (tables.PAPERS, tables.PASSAGES, tables.EMBEDDINGS, tables.INDEX_RECEIPTS)),
)
"""In the order in which they are evaluated; those of a stage come right after it."""
