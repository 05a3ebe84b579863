"""The stage index_receipts on Edge: loads, second loads, changes, kills, and whether a receipt
still holds.
"""

import shutil

import numpy as np
import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.edge import EdgeIndex
from pipeline.index.opening import close_indexes, live_index, open_collections
from pipeline.index.stages import INDEX_RECEIPTS
from tests.unit.index.building import (
    TEXTS,
    embed,
    load,
    make_workspace,
    opened_by_another_process,
    write_month,
)

pytestmark = pytest.mark.slow

MONTH = "2024-03"


@pytest.fixture
def loaded(workspace):
    """A workspace whose one month is in the index."""
    load(workspace)
    return workspace


def test_a_month_is_loaded_and_audited_and_a_second_load_sends_nothing(loaded):
    (receipt,) = loaded.root.rows(tables.INDEX_RECEIPTS, MONTH)
    counts = {"expected": len(TEXTS), "present": len(TEXTS), "missing": 0}
    assert receipt == receipt | counts | {"engine": "edge", "collection": live_index(loaded).name}
    again = run_stage(INDEX_RECEIPTS, loaded, MONTH, force=True)
    assert (again.measured["sent"], again.measured["removed"]) == (0, 0)


def test_only_what_changed_is_sent_and_what_is_stale_goes(loaded):
    load(loaded, "2024-04")
    write_month(loaded, texts=["A new beginning of the same paper.", *TEXTS[1:-1]])
    embed(loaded)
    assert state(INDEX_RECEIPTS, loaded, MONTH) is State.STALE
    measured = run_stage(INDEX_RECEIPTS, loaded, MONTH).measured
    assert (measured["sent"], measured["removed"]) == (1, 1)
    assert live_index(loaded).count("2024-04") == len(TEXTS)


def test_a_receipt_does_not_hold_once_the_folder_is_deleted(loaded):
    assert state(INDEX_RECEIPTS, loaded, MONTH) is State.DONE
    close_indexes()
    shutil.rmtree(loaded.root.path / "qdrant-edge")
    assert state(INDEX_RECEIPTS, loaded, MONTH) is State.STALE
    assert not (loaded.root.path / "qdrant-edge").exists()
    assert run_stage(INDEX_RECEIPTS, loaded, MONTH).measured["sent"] == len(TEXTS)


def test_counts_of_points_are_kept_until_points_change(loaded):
    index = live_index(loaded)

    def state_in_a_new_process():
        close_indexes()
        with loaded.read_cache():
            return state(INDEX_RECEIPTS, loaded, MONTH)

    assert state_in_a_new_process() is State.DONE
    with opened_by_another_process(index.folder):
        assert state_in_a_new_process() is State.DONE, "the kept count needs no index"
        assert state(INDEX_RECEIPTS, loaded, MONTH) is State.DONE, "the receipt is believed"
    index.delete([min(str(each) for each, _ in index.contents(MONTH))])
    index.close()
    assert state_in_a_new_process() is State.STALE
    assert run_stage(INDEX_RECEIPTS, loaded, MONTH).measured["sent"] == 1


def test_another_layout_does_not_replace_a_live_one_by_and_by(loaded):
    other = make_workspace(loaded.root.path, qdrant_quantization="none")
    with pytest.raises(PermanentFailure, match=r"quantization turbo4.*quantization none"):
        run_stage(INDEX_RECEIPTS, other, MONTH)
    assert len(open_collections(other).names()) == 1
    assert state(INDEX_RECEIPTS, loaded, MONTH) is State.DONE


class _Forgetful(EdgeIndex):
    """An index that loses the first point of every batch."""

    def upsert(self, points):
        super().upsert(points.take(np.arange(1, len(points))))


def test_a_failed_audit_ends_the_stage_without_a_receipt(loaded):
    before = loaded.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes()
    write_month(loaded, categories=["cs.IR"])
    collections = open_collections(loaded)
    name = collections.live()
    collections._indexes[name] = _Forgetful(collections.folder / name)
    lost = loaded.root.rows(tables.PASSAGES, MONTH)[0]["passage_id"]
    with pytest.raises(TransientFailure, match=f"1 stale.*{lost}"):
        run_stage(INDEX_RECEIPTS, loaded, MONTH)
    assert loaded.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == before
    close_indexes()
    assert run_stage(INDEX_RECEIPTS, loaded, MONTH).rows == 1
