"""Asset checks: that what one stage hands on is what the next one holds."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from assets.partitions import MONTHS
from assets.stage_asset import retry_of_lost_steps
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.errors import TransientFailure
from pipeline.index import close_indexes
from pipeline.index.audit import KINDS
from pipeline.index.upkeep import audit_of
from pipeline.passages.pack import FEWEST_WORDS, MOST_WORDS
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table

Verdict = tuple[bool, Mapping[str, Any]]

# Points of one kind that a check names; `citeloom audit --json` names all.
_NAMED = 20

# A month of a million points takes Edge minutes to load.
_TRIES, _SECONDS_BETWEEN = 40, 15.0


def _check(
    asset: str, *, blocking: bool = False
) -> Callable[[Callable[[Workspace, str], Verdict]], dg.AssetChecksDefinition]:
    """Make a check of a month from a function of the workspace and the month; its docstring is the description."""

    def wrap(verdict: Callable[[Workspace, str], Verdict]) -> dg.AssetChecksDefinition:
        def check(
            context: dg.AssetCheckExecutionContext, workspace: dg.ResourceParam[Workspace]
        ) -> dg.AssetCheckResult:
            month = context.partition_key
            passed, facts = verdict(workspace, month)
            return dg.AssetCheckResult(passed=passed, metadata={"month": month, **facts})

        with warnings.catch_warnings():
            # Checks by partition are a preview in Dagster 1.13, and just what a check of a month is.
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.asset_check(
                asset=asset,
                name=verdict.__name__,
                description=verdict.__doc__,
                blocking=blocking,
                partitions_def=MONTHS,
                retry_policy=retry_of_lost_steps(),
            )(check)

    return wrap


def _rows(workspace: Workspace, table: Table, month: str) -> int:
    written = read_provenance(workspace.root.file(table, month))
    return written.rows if written else 0


def _left_out(workspace: Workspace, table: Table, month: str) -> int:
    written = read_provenance(workspace.root.file(table, month))
    return sum(written.left_out.values()) if written else 0


@_check("papers", blocking=True)
def every_member_is_accounted_for(workspace: Workspace, month: str) -> Verdict:
    """Every page of the dump is a paper, or in the ledger with its reason."""
    members = _rows(workspace, tables.DUMP_MEMBERS, month)
    kept, left_out = _rows(workspace, tables.PAPERS, month), _left_out(workspace, tables.PAPERS, month)
    return members == kept + left_out, {"members": members, "papers": kept, "left_out": left_out}


@_check("passages")
def passages_are_within_bounds(workspace: Workspace, month: str) -> Verdict:
    """No passage is over 300 words, and those under 20 are whole sections or front matter: at most one in ten."""
    words = workspace.root.read(tables.PASSAGES, month, ["words"])["words"].to_pylist()
    over = sum(count > MOST_WORDS for count in words)
    under = sum(count < FEWEST_WORDS for count in words)
    return over == 0 and under * 10 <= len(words), {"passages": len(words), "over": over, "under": under}


@_check("passages", blocking=True)
def every_paper_has_passages(workspace: Workspace, month: str) -> Verdict:
    """Every paper of the month has at least one passage."""
    papers = set(workspace.root.read(tables.PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    found = set(workspace.root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    return papers == found, {"papers": len(papers), "without": sorted(papers - found)}


@_check("embeddings", blocking=True)
def every_passage_is_embedded(workspace: Workspace, month: str) -> Verdict:
    """The embeddings hold exactly the passages of the month, with the text they have now."""
    columns = ["passage_id", "text_sha256"]
    passages = workspace.root.read(tables.PASSAGES, month, columns)
    embeddings = workspace.root.read(tables.EMBEDDINGS, month, columns)
    if passages.equals(embeddings):  # as columns, a month of a million passages is 0.2 GB, and as sets over 1 GB
        return True, {"passages": passages.num_rows, "missing": 0, "foreign": 0}
    asked = {tuple(row.values()) for row in passages.to_pylist()}
    held = {tuple(row.values()) for row in embeddings.to_pylist()}
    return asked == held, {"passages": len(asked), "missing": len(asked - held), "foreign": len(held - asked)}


@_check("index_receipts", blocking=True)
def index_holds_the_embeddings(workspace: Workspace, month: str) -> Verdict:
    """The index holds the points that the month's tables ask for, id by id and as they are now, and no other."""
    try:
        audit, receipt = audit_of(workspace, month)
    except TransientFailure as error:
        # Another run may be loading into Edge. A pool would wait for it too, but in Dagster 1.13 the second of two runs
        # in process that meet at a check's pool was seen to wait for ever.
        raise dg.RetryRequested(_TRIES, _SECONDS_BETWEEN) from error
    finally:
        close_indexes()
    named = {kind: list(map(str, getattr(audit, kind)[:_NAMED])) for kind in KINDS}
    facts = {"collection": audit.collection, "expected": audit.expected, "present": audit.present, **named}
    return audit.clean and [receipt] == workspace.root.rows(tables.INDEX_RECEIPTS, month), facts
