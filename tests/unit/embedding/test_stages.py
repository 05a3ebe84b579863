"""The stage embeddings: rows in the order of passages, vectors of unchanged passages taken over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline import tables
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.stages import State, Workspace, run_stage, state
from tests.unit.embedding.tiny_m3 import DIMENSIONS, make_tiny_m3
from tests.unit.index.building import TEXTS, make_workspace, write_month

MONTH = "2024-03"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "data")


def _file(workspace: Workspace) -> bytes:
    return workspace.root.file(tables.EMBEDDINGS, MONTH).read_bytes()


def test_every_passage_has_its_vectors_in_order(workspace: Workspace) -> None:
    write_month(workspace)
    outcome = run_stage(EMBEDDINGS, workspace, MONTH)
    rows = workspace.root.rows(tables.EMBEDDINGS, MONTH)
    passages = workspace.root.rows(tables.PASSAGES, MONTH)
    for name in ("passage_id", "arxiv_id", "text_sha256"):
        assert [row[name] for row in rows] == [passage[name] for passage in passages]
    assert all(row["colbert"] is None and row["model"] == "all-MiniLM-L6-v2+tf1" for row in rows)
    assert np.linalg.norm(np.array(rows[0]["dense"])) == pytest.approx(1.0, abs=2e-3)
    assert outcome.notes["dimensions"] == len(rows[0]["dense"]) == 384
    assert outcome.measured == {"reused": 0}


def test_cut_passages_are_counted(workspace: Workspace) -> None:
    write_month(workspace, texts=["word " * 600, *TEXTS])
    assert run_stage(EMBEDDINGS, workspace, MONTH).notes["truncated"] == 1


def test_vectors_of_unchanged_passages_are_taken_over(workspace: Workspace) -> None:
    write_month(workspace)
    run_stage(EMBEDDINGS, workspace, MONTH)
    write_month(workspace, texts=["Another first passage.", *TEXTS[1:], "And one more."])
    outcome = run_stage(EMBEDDINGS, workspace, MONTH)
    assert outcome.measured == {"reused": len(TEXTS) - 1}
    kept = _file(workspace)
    workspace.root.file(tables.EMBEDDINGS, MONTH).unlink()
    assert run_stage(EMBEDDINGS, workspace, MONTH).measured == {"reused": 0}
    assert _file(workspace) == kept


def test_a_month_without_passages_says_what_its_vectors_would_be(workspace: Workspace) -> None:
    write_month(workspace, texts=[])
    notes = run_stage(EMBEDDINGS, workspace, MONTH).notes
    assert notes == {"truncated": 0, "model": "all-MiniLM-L6-v2+tf1", "dimensions": 384, "sparse_idf": True}


@pytest.mark.slow
def test_another_model_takes_nothing_over(workspace: Workspace, tmp_path: Path) -> None:
    write_month(workspace)
    run_stage(EMBEDDINGS, workspace, MONTH)
    model = make_tiny_m3(tmp_path / "tiny-m3")
    settings = {"embedder": "bge-m3", "embedder_path": str(model), "embedder_device": "cpu"}
    other = make_workspace(workspace.root.path, **settings)
    assert state(EMBEDDINGS, other, MONTH) is State.STALE
    assert run_stage(EMBEDDINGS, other, MONTH).measured == {"reused": 0}
    with_colbert = make_workspace(workspace.root.path, **settings, embedder_colbert=True)
    assert run_stage(EMBEDDINGS, with_colbert, MONTH).measured == {"reused": 0}
    row = workspace.root.rows(tables.EMBEDDINGS, MONTH)[0]
    assert len(row["dense"]) == DIMENSIONS
    assert {len(vector) for vector in row["colbert"]} == {DIMENSIONS}
    write_month(workspace, texts=[*TEXTS, "And one more."])
    assert run_stage(EMBEDDINGS, with_colbert, MONTH).measured == {"reused": len(TEXTS)}
    taken_over = _file(workspace)
    assert run_stage(EMBEDDINGS, with_colbert, MONTH, force=True).measured == {"reused": 0}
    assert _file(workspace) == taken_over
