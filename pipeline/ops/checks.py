"""Checks of a month: what one stage hands on is what the next one holds, and its figures are within
fixed bounds.
"""

from __future__ import annotations

from pipeline import tables
from pipeline.corpus.passages.packing import FEWEST_WORDS, MOST_WORDS
from pipeline.engine.checks import Check, CheckResult
from pipeline.engine.stage import Workspace
from pipeline.index.audit import audit_and_receipt
from pipeline.index.load import KINDS
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table

# Points of one kind that a check names; `citeloom audit --json` names all.
_MOST_NAMED = 20
# What the settings or arXiv keep out is no failure to parse.
_UNWANTED = frozenset({"no_metadata", "withdrawn", "not_computer_science", "other_category"})
# Share of a month's papers or wanted pages. Of the 49 pages of which the grades were set, one is C
# and none is D.
_FEWEST_PARSED, _MOST_LOW_GRADES, _MOST_CUT_OFF = 0.8, 0.5, 0.2


def _rows_and_left_out(workspace: Workspace, table: Table, month: str) -> tuple[int, int]:
    written = read_provenance(workspace.root.file(table, month))
    return (written.rows, sum(written.left_out.values())) if written else (0, 0)


def _every_member_is_accounted_for(workspace: Workspace, month: str) -> CheckResult:
    members, _ = _rows_and_left_out(workspace, tables.DUMP_MEMBERS, month)
    papers, left_out = _rows_and_left_out(workspace, tables.PAPERS, month)
    return CheckResult(
        members == papers + left_out, {"members": members, "papers": papers, "left_out": left_out}
    )


def _passages_are_within_bounds(workspace: Workspace, month: str) -> CheckResult:
    words = workspace.root.read(tables.PASSAGES, month, ["words"])["words"].to_pylist()
    over = sum(count > MOST_WORDS for count in words)
    under = sum(count < FEWEST_WORDS for count in words)
    return CheckResult(
        over == 0 and under * 10 <= len(words),
        {"passages": len(words), "over": over, "under": under},
    )


def _every_paper_has_passages(workspace: Workspace, month: str) -> CheckResult:
    papers = set(workspace.root.read(tables.PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    with_passages = set(
        workspace.root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"].to_pylist()
    )
    return CheckResult(
        papers == with_passages, {"papers": len(papers), "without": sorted(papers - with_passages)}
    )


def _every_passage_is_embedded(workspace: Workspace, month: str) -> CheckResult:
    columns = ["passage_id", "text_sha256"]
    passages = workspace.root.read(tables.PASSAGES, month, columns)
    embeddings = workspace.root.read(tables.EMBEDDINGS, month, columns)
    written = read_provenance(workspace.root.file(tables.EMBEDDINGS, month))
    # Vectors whose length is not 1 ± 0.01: no text changes that, only a faulty model or GPU.
    off_norm = written.notes.get("off_norm", 0) if written else 0
    missing = foreign = 0
    if not passages.equals(
        embeddings
    ):  # as columns, a month of a million passages is 0.2 GB, and as sets over 1 GB
        expected = {tuple(row.values()) for row in passages.to_pylist()}
        embedded = {tuple(row.values()) for row in embeddings.to_pylist()}
        missing, foreign = len(expected - embedded), len(embedded - expected)
    facts = {
        "passages": passages.num_rows,
        "missing": missing,
        "foreign": foreign,
        "off_norm": off_norm,
    }
    return CheckResult(not (missing or foreign or off_norm), facts)


def _index_holds_the_embeddings(workspace: Workspace, month: str) -> CheckResult:
    audit, receipt = audit_and_receipt(workspace, month)
    points = {kind: list(map(str, getattr(audit, kind)[:_MOST_NAMED])) for kind in KINDS}
    facts = {
        "collection": audit.collection,
        "expected": audit.expected,
        "present": audit.present,
        **points,
    }
    return CheckResult(
        audit.clean and [receipt] == workspace.root.rows(tables.INDEX_RECEIPTS, month), facts
    )


def _most_pages_are_read_whole(workspace: Workspace, month: str) -> CheckResult:
    written = read_provenance(workspace.root.file(tables.PAPERS, month))
    if written is None or not written.rows:
        return CheckResult(True, {})
    lost = sum(count for reason, count in written.left_out.items() if reason not in _UNWANTED)
    parsed = written.rows / (written.rows + lost)
    low_grades, cut_off = (
        written.notes.get(name, 0) / written.rows for name in ("low_grades", "cut_off")
    )
    return CheckResult(
        parsed >= _FEWEST_PARSED and low_grades <= _MOST_LOW_GRADES and cut_off <= _MOST_CUT_OFF,
        {
            "parsed": round(parsed, 4),
            "low_grades": round(low_grades, 4),
            "cut_off": round(cut_off, 4),
        },
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
        "papers",
        "most_pages_are_read_whole",
        "At least 80 % of the wanted pages are papers; at most 50 % of these have grade C or D, 20"
        " % break off.",
        _most_pages_are_read_whole,
        warning=True,
    ),
    Check(
        "passages",
        "passages_are_within_bounds",
        "No passage is over 300 words, and those under 20 are whole sections or front matter: at"
        " most one in ten.",
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
        "The embeddings hold exactly the passages of the month, with the text they have now, as"
        " vectors of length 1.",
        _every_passage_is_embedded,
        blocking=True,
    ),
    Check(
        "index_receipts",
        "index_holds_the_embeddings",
        "The index holds the points that the month's tables ask for, id by id and as they are now,"
        " and no other.",
        _index_holds_the_embeddings,
        blocking=True,
        uses_pool=True,
    ),
)
"""In the order in which they are evaluated; those of a stage come right after it."""
