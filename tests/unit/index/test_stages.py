"""The stage index_receipts on Edge: loads, second loads, changes, kills, and whether a receipt still holds."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline import tables
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.edge import EdgeIndex
from pipeline.index.load import audit_month, load_month
from pipeline.index.opening import close_indexes, open_index
from pipeline.index.passage_index import Layout, Point
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.stages import Job, State, Workspace, run_stage, state
from tests.unit.index.building import LAYOUT, TEXTS, embed, make_point, make_workspace, write_month, write_table

MONTH = "2024-03"


def test_a_month_is_loaded_and_audited(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    outcome = run_stage(INDEX_RECEIPTS, workspace, MONTH)
    (receipt,) = workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)
    assert (receipt["expected"], receipt["present"], receipt["missing"]) == (len(TEXTS), len(TEXTS), 0)
    assert receipt["engine"] == "edge"
    assert outcome.measured == {"sent": len(TEXTS), "removed": 0}


def test_a_second_load_sends_nothing(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    first = workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes()
    again = run_stage(INDEX_RECEIPTS, workspace, MONTH, force=True)
    assert again.measured == {"sent": 0, "removed": 0}
    assert workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == first


def test_only_what_changed_is_sent_and_what_is_stale_goes(workspace: Workspace) -> None:
    write_month(workspace)
    write_month(workspace, "2024-04")
    for month in (MONTH, "2024-04"):
        embed(workspace, month)
        run_stage(INDEX_RECEIPTS, workspace, month)
    write_month(workspace, texts=["A new beginning of the same paper.", *TEXTS[1:-1]])
    embed(workspace)
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured == {"sent": 1, "removed": 1}
    assert open_index(workspace).count("2024-04") == len(TEXTS)


def test_a_changed_category_is_sent_though_no_text_changed(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    write_month(workspace, categories=["cs.IR"])
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured["sent"] == len(TEXTS)


def test_a_month_without_passages_has_a_receipt_of_zero(workspace: Workspace) -> None:
    write_month(workspace, texts=[])
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    assert workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)[0]["expected"] == 0
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.DONE


def test_a_receipt_does_not_hold_once_the_folder_is_deleted(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.DONE
    shutil.rmtree(workspace.root.path / "qdrant-edge")
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert not (workspace.root.path / "qdrant-edge").exists()
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured["sent"] == len(TEXTS)


def test_a_receipt_does_not_hold_once_points_are_gone(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    index = open_index(workspace)
    index.delete([min(index.ids_of_month(MONTH))])
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured["sent"] == 1


def test_a_receipt_is_believed_while_another_process_uses_the_index(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    close_indexes()
    holder = EdgeIndex(workspace.root.path / "qdrant-edge" / "citeloom")
    assert holder.count(MONTH) == len(TEXTS)
    try:
        assert state(INDEX_RECEIPTS, workspace, MONTH) is State.DONE
    finally:
        holder.close()


def test_embeddings_that_do_not_match_their_passages_are_refused(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    rows = workspace.root.rows(tables.PASSAGES, MONTH)
    write_table(workspace, tables.PASSAGES, MONTH, rows[1:])
    with pytest.raises(PermanentFailure, match="do not agree"):
        run_stage(INDEX_RECEIPTS, workspace, MONTH)


def test_a_collection_made_for_another_model_is_refused(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    open_index(workspace).ensure_collection(Layout(1024, sparse_idf=False))
    with pytest.raises(PermanentFailure, match="1024 dimensions"):
        run_stage(INDEX_RECEIPTS, workspace, MONTH)


class _Forgetful(EdgeIndex):
    """An index that loses one point of every load."""

    def upsert(self, points: Sequence[Point]) -> None:
        super().upsert(points[1:])


def test_an_audit_names_what_a_load_lost(tmp_path: Path) -> None:
    index = _Forgetful(tmp_path / "edge" / "c")
    index.ensure_collection(LAYOUT)
    points = [make_point(number) for number in range(4)]
    load = load_month(index, MONTH, points)
    audit = audit_month(index, MONTH, load.expected)
    index.close()
    assert audit.present == 3
    assert audit.missing == (points[0].passage_id,)


def test_an_audit_sees_changed_content_and_strangers(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    load_month(edge, MONTH, [make_point(1), make_point(2)])
    audit = audit_month(edge, MONTH, {make_point(1).passage_id: make_point(1, content="second").payload["digest"]})
    assert audit.missing == (make_point(1).passage_id,)
    assert audit.stale == (make_point(2).passage_id,)


def test_a_failed_audit_ends_the_stage_without_a_receipt(workspace: Workspace) -> None:
    from pipeline.index import stages
    from pipeline.index.load import Audit

    job = Job(workspace, MONTH, INDEX_RECEIPTS)
    with pytest.raises(TransientFailure, match=r"1 points are missing.*lost one"):
        stages._insist(Audit(present=3, missing=("lost one",), stale=()), job)


_LOADER = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from pipeline.index import load
    from pipeline.index.edge import EdgeIndex
    from pipeline.index.stages import INDEX_RECEIPTS
    from pipeline.index import opening
    from pipeline.stages import run_stage
    from tests.unit.index.building import make_workspace

    class Dying(EdgeIndex):
        batches = 0
        def upsert(self, points):
            super().upsert(points)
            self.batches += 1
            if self.batches == 2:
                os.kill(os.getpid(), signal.SIGKILL)

    load.BATCH = 2
    workspace = make_workspace(Path(sys.argv[1]))
    opening._OPEN[(os.getpid(), str(workspace.root.path), "citeloom", hash(None))] = Dying(
        workspace.root.path / "qdrant-edge" / "citeloom"
    )
    run_stage(INDEX_RECEIPTS, workspace, "2024-03")
    """
)


def test_a_load_that_was_killed_between_batches_goes_on_where_it_was(workspace: Workspace, tmp_path: Path) -> None:
    write_month(workspace)
    embed(workspace)
    killed = subprocess.run([sys.executable, "-c", _LOADER, str(workspace.root.path)], cwd=Path.cwd(), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not workspace.root.file(tables.INDEX_RECEIPTS, MONTH).exists()
    outcome = run_stage(INDEX_RECEIPTS, workspace, MONTH)
    assert outcome.measured["sent"] == len(TEXTS) - 4
    undisturbed = make_workspace(tmp_path / "undisturbed")
    write_month(undisturbed)
    embed(undisturbed)
    run_stage(INDEX_RECEIPTS, undisturbed, MONTH)
    file, other = (each.root.file(tables.INDEX_RECEIPTS, MONTH) for each in (workspace, undisturbed))
    assert file.read_bytes() == other.read_bytes()
