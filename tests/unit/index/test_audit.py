"""Audits of many months on Edge: what they name, what the receipts say afterwards, and mending."""

import json
import uuid
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline import tables
from pipeline.doors.cli.index import audit_lines
from pipeline.embedding.embedder import SparseRows
from pipeline.engine.run import State, state
from pipeline.errors import MissingInput, SettingError
from pipeline.index.audit import audit_months, remove_outside, repair
from pipeline.index.batch import PointBatch
from pipeline.index.opening import close_indexes, live_index
from pipeline.index.stages import INDEX_RECEIPTS
from tests.unit.index.building import (
    TEXTS,
    embed,
    in_another_form,
    load,
    make_workspace,
    write_month,
)

pytestmark = pytest.mark.slow

FIRST, SECOND = "2024-03", "2024-04"
STRANGER = str(uuid.UUID(int=7, version=4))


@pytest.fixture
def workspace(workspace):
    """A workspace with two months in its index."""
    for month in (FIRST, SECOND):
        load(workspace, month)
    return workspace


def ids_of(workspace, month=FIRST):
    """The passages of a month."""
    return [
        row["passage_id"] for row in workspace.root.rows(tables.PASSAGES, month, ["passage_id"])
    ]


def put(workspace, identifier, payload):
    """A point that no load would send."""
    vectors = np.ones((1, 384), np.float32)
    points = PointBatch([identifier], vectors, SparseRows.nothing(1), [payload])
    live_index(workspace).upsert(points)


def receipt_bytes(workspace):
    """The receipts' files."""
    return {
        month: workspace.root.file(tables.INDEX_RECEIPTS, month).read_bytes()
        for month in (FIRST, SECOND)
    }


def test_every_kind_of_damage_is_named_and_a_repair_restores_points_and_receipts(workspace):
    before = receipt_bytes(workspace)
    clean = audit_months(workspace)
    assert clean.clean
    present = [(month.month, month.present) for month in clean.months]
    assert present == [(FIRST, len(TEXTS)), (SECOND, len(TEXTS))]
    assert receipt_bytes(workspace) == before
    index, (missing, stale, copied, *_) = live_index(workspace), ids_of(workspace)
    digests = dict(index.contents(FIRST))
    duplicate = str(uuid.uuid5(uuid.NAMESPACE_URL, "a copy"))
    index.delete([missing])
    put(workspace, stale, {"month": FIRST, "digest": "of an older text"})
    put(workspace, duplicate, {"month": FIRST, "digest": digests[copied]})
    put(workspace, STRANGER, {"month": FIRST})
    put(workspace, 8, {"colour": "green"})
    close_indexes()
    audit = audit_months(workspace)
    first, second = audit.months
    assert (first.missing, first.stale) == ((missing,), (stale,))
    assert (first.duplicate, first.foreign) == ((duplicate,), (STRANGER,))
    assert second.clean
    assert audit.outside == ((first.collection, (8,)),)
    assert audit_months(workspace, SECOND).clean, "points of no month belong to all months"
    assert audit_months(workspace, f"{FIRST}..{SECOND}").outside_count == 1
    assert (
        audit.describe()
        == "12 points of 2 months: 1 missing, 1 stale, 1 duplicate, 2 foreign, 0 unindexed"
    )
    assert json.loads(json.dumps(audit.as_json()))["outside"][0]["foreign"] == [8]
    assert receipt_bytes(workspace) != before
    assert repair(workspace, audit).clean
    assert audit_months(workspace).clean
    assert receipt_bytes(workspace) == before


def test_a_receipt_tells_what_an_audit_found_and_is_believed_again_once_it_finds_the_points(
    workspace,
):
    """As many points as there should be: counting them would see nothing."""
    before, index, ids = receipt_bytes(workspace), live_index(workspace), ids_of(workspace)
    digest = dict(index.contents(FIRST))[ids[0]]
    index.delete([ids[0]])
    put(workspace, STRANGER, {"month": FIRST})
    assert state(INDEX_RECEIPTS, workspace, FIRST) is State.DONE
    audit_months(workspace)
    (receipt,) = workspace.root.rows(tables.INDEX_RECEIPTS, FIRST)
    assert (receipt["present"], receipt["missing"], receipt["stale"]) == (len(TEXTS) - 1, 1, 1)
    assert state(INDEX_RECEIPTS, workspace, FIRST) is State.STALE
    assert state(INDEX_RECEIPTS, workspace, SECOND) is State.DONE
    index.delete([STRANGER])
    put(workspace, ids[0], {"month": FIRST, "digest": digest})
    assert audit_months(workspace).clean
    assert receipt_bytes(workspace) == before
    assert state(INDEX_RECEIPTS, workspace, FIRST) is State.DONE


def test_a_month_that_was_embedded_and_never_loaded_is_missing_and_a_repair_loads_it(workspace):
    write_month(workspace, "2024-05")
    embed(workspace, "2024-05")
    audit = audit_months(workspace, "2024-05")
    assert len(audit.months[0].missing) == len(TEXTS)
    assert repair(workspace, audit).clean
    assert state(INDEX_RECEIPTS, workspace, "2024-05") is State.DONE


def test_a_month_whose_tables_are_gone_is_told_and_its_points_stay(workspace):
    workspace.root.file(tables.EMBEDDINGS, FIRST).unlink()
    audit = audit_months(workspace)
    assert [month for month, _ in audit.failures] == [FIRST]
    assert (audit.outside_count, audit.clean) == (0, False)
    assert [month.month for month in audit.months] == [SECOND]
    repair(workspace, audit)
    assert live_index(workspace).count(FIRST) == len(TEXTS)


def test_points_of_a_month_that_is_loaded_during_the_audit_are_nobodys_to_remove(workspace):
    """The months are looked at again after the listing, in which another run may have begun on one
    more.
    """

    asked = []

    def outside(months):
        """Lists a point of the new month, which is embedded by then."""
        asked.append(months)
        if len(asked) == 1:
            write_month(workspace, "2024-05", texts=TEXTS[:1])
            embed(workspace, "2024-05")
        return [] if "2024-05" in months else ["a point of 2024-05"]

    removed = []
    remove_outside(workspace, SimpleNamespace(outside=outside, delete=removed.extend))
    assert asked == [[FIRST, SECOND], [FIRST, SECOND, "2024-05"]]
    assert removed == []


def test_months_that_searches_do_not_ask_are_told(workspace):
    in_another_form(workspace, SECOND)
    audit = audit_months(workspace)
    assert (audit.live, audit.months_not_live) == (audit.months[0].collection, (SECOND,))
    assert any(SECOND in line for line in audit_lines(audit))
    assert audit.as_json()["live"] == audit.live


def test_a_month_with_a_damaged_table_is_named_and_the_others_are_audited(workspace):
    root = workspace.root
    papers, file = (root.file(table, FIRST) for table in (tables.PAPERS, tables.EMBEDDINGS))
    ledger = root.ledger_file("embeddings", FIRST)
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    for broken in (papers, ledger):
        broken.write_bytes(broken.read_bytes()[:-1])
    audit = audit_months(workspace)
    assert_first_month_has_damaged(audit, papers, file, ledger)
    assert set(repair(workspace, audit).failures) == set(audit.failures)


def assert_first_month_has_damaged(audit, *files):
    named = [(month, message.partition(" is ")[0]) for month, message in audit.failures]
    assert named == [(FIRST, str(file)) for file in files]
    assert [month.month for month in audit.months] == [SECOND]


def test_a_ledger_that_is_gone_or_not_of_the_run_that_wrote_its_table_is_named(workspace):
    root = workspace.root
    root.ledger_file("papers", FIRST).unlink()
    foreign = {"passages": ("embeddings", FIRST), "index_receipts": ("index_receipts", SECOND)}
    for stage, other in foreign.items():
        root.ledger_file(stage, FIRST).write_bytes(root.ledger_file(*other).read_bytes())
    ledgers = [root.ledger_file(stage, FIRST) for stage in ("papers", *foreign)]
    assert_first_month_has_damaged(audit_months(workspace), *ledgers)


def test_what_cannot_be_audited_is_named(workspace, tmp_path_factory):
    with pytest.raises(SettingError, match="2031-01"):
        audit_months(workspace, "2031-01")
    with pytest.raises(MissingInput, match="holds no embeddings yet"):
        audit_months(make_workspace(tmp_path_factory.mktemp("empty")))
