"""The stage embeddings: rows in the order of passages, no text encoded twice, an interrupted run
taken up.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pipeline import tables
from pipeline.embedding.reuse import TEXTS as SHARD
from pipeline.embedding.reuse import KnownVectors
from pipeline.embedding.stages import EMBEDDINGS, count_off_norm
from pipeline.engine.checks import run_checks
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Job
from pipeline.errors import PermanentFailure
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import MonthWriter
from tests.month_tables import write_table
from tests.unit.embedding.hashing_embedder import HashingEmbedder, stage_with
from tests.unit.embedding.tiny_m3 import DIMENSIONS as M3_DIMENSIONS
from tests.unit.index.building import TEXTS, make_workspace, write_month

pytestmark = pytest.mark.slow

MONTH = "2024-03"


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path / "data")


def _many(count, salt=""):
    return [f"passage {salt}{number} " + "word " * (number % 7) for number in range(count)]


def _file(workspace):
    return workspace.root.file(tables.EMBEDDINGS, MONTH)


def _shards(workspace):
    return sorted((workspace.root.path / "cache" / "embeddings" / MONTH).glob("[!.]*"))


def _undisturbed(folder, texts):
    """The month's file as a run of its own makes it, with nothing to take over."""
    apart = make_workspace(folder)
    write_month(apart, texts=texts)
    _run(apart)
    return _file(apart).read_bytes()


class Stopped(Exception):
    """What the embedder below ends with."""


def _run(workspace, embedder=None, **options):
    """A run of the stage with an embedder."""
    return run_stage(stage_with(embedder or HashingEmbedder()), workspace, MONTH, **options)


def _stop_after(workspace, count):
    """A run whose embedder fails once it has encoded so many texts."""

    class Stopping(HashingEmbedder):
        def encode_stream(self, texts):
            for batch in super().encode_stream(texts):
                if len(self.encoded) > count:
                    raise Stopped
                yield batch

    with pytest.raises(Stopped):
        _run(workspace, Stopping())


def test_every_passage_has_its_vectors_in_order_and_an_empty_month_says_what_they_would_be(
    workspace,
):
    write_month(workspace, texts=[])
    model = {"model": "all-MiniLM-L6-v2", "dimensions": 384, "sparse": False, "form": "sections"}
    counts = {"truncated": 0, "off_norm": 0}
    assert run_stage(EMBEDDINGS, workspace, MONTH).notes == counts | model
    write_month(workspace, texts=["word " * 600, *TEXTS])
    outcome = run_stage(EMBEDDINGS, workspace, MONTH)
    rows = workspace.root.rows(tables.EMBEDDINGS, MONTH)
    passages = workspace.root.rows(tables.PASSAGES, MONTH)
    for name in ("passage_id", "arxiv_id", "text_sha256"):
        assert [row[name] for row in rows] == [passage[name] for passage in passages]
    assert {(row["model"], len(row["dense"])) for row in rows} == {("all-MiniLM-L6-v2", 384)}
    assert np.linalg.norm(np.array(rows[0]["dense"])) == pytest.approx(1.0, abs=2e-3)
    assert outcome.notes == counts | model | {"truncated": 1}
    measured = {"reused": 0, "encoded": len(TEXTS) + 1, "devices": "cpu"}
    assert outcome.measured == outcome.measured | measured


def test_vectors_that_are_not_of_unit_length_are_counted():
    vectors = [[0.6, 0.8], [float("nan"), 0.8], [0.0, 0.0], [0.8, 0.6], [0.6, 0.85]]
    assert count_off_norm(pa.array(vectors, pa.list_(pa.float16()))) == 3


def test_a_month_with_vectors_that_are_not_of_unit_length_fails_its_check(workspace):
    write_month(workspace, texts=TEXTS)
    run_stage(EMBEDDINGS, workspace, MONTH)
    assert run_checks(EMBEDDINGS, workspace, MONTH)
    rows, written = workspace.root.rows(tables.EMBEDDINGS, MONTH), read_provenance(_file(workspace))
    notes = {**written.notes, "off_norm": 1}
    write_table(workspace.root, tables.EMBEDDINGS, MONTH, rows, notes=notes)
    assert not run_checks(EMBEDDINGS, workspace, MONTH)


@pytest.mark.parametrize("window", [1, 7, 5000])
def test_rows_do_not_depend_on_how_many_the_embedder_gives_at_once(workspace, tmp_path, window):
    texts = _many(2_300 if window > 1 else 30)
    write_month(workspace, texts=texts)
    _run(workspace, HashingEmbedder(window=window))
    assert _file(workspace).read_bytes() == _undisturbed(tmp_path / "apart", texts)


def test_a_row_holds_what_the_embedder_gave(workspace):
    write_month(workspace, texts=_many(10))
    embedder = HashingEmbedder(window=4)
    _run(workspace, embedder)
    (made,) = HashingEmbedder(window=10).encode_stream(embedder.encoded)
    terms = map(made.sparse.row, range(10))
    expected = [
        (dense, row.ids.tolist(), row.weights.tolist(), None)
        for dense, row in zip(made.dense.tolist(), terms, strict=True)
    ]
    columns = ("dense", "sparse_ids", "sparse_weights", "colbert")
    rows = workspace.root.rows(tables.EMBEDDINGS, MONTH)
    assert [tuple(map(row.get, columns)) for row in rows] == expected


def test_vectors_of_unchanged_texts_are_taken_over_whatever_their_passages_ids(workspace, tmp_path):
    before = _many(4_500)
    write_month(workspace, texts=before)
    _run(workspace)
    # Two passages a paper, and the paper's title is embedded too: within the first its two passages
    # change places.
    turned = [before[1], before[0], *before[2:2_100]]
    after = [*turned, "Another passage in its place.", *before[2_101:], "And one more."]
    write_month(workspace, texts=after)
    embedder = HashingEmbedder()
    assert _run(workspace, embedder).measured["reused"] == 4_499
    assert [text.splitlines()[1] for text in embedder.encoded] == [after[2_100], after[-1]]
    assert _file(workspace).read_bytes() == _undisturbed(tmp_path / "apart", after)
    forced = _run(workspace, embedder, force=True).measured
    assert (forced["reused"], forced["encoded"]) == (0, len(after))


def test_a_run_that_ends_early_loses_less_than_a_shard_and_damaged_ones(workspace, tmp_path):
    texts = _many(7_000)
    write_month(workspace, texts=texts)
    _stop_after(workspace, 6_700)
    rest, *whole = sorted(_shards(workspace), key=lambda shard: shard.stat().st_size)
    assert len(whole) == 6, "written before the end, so that a kill leaves them too"
    assert rest.stat().st_size < 0.9 * whole[0].stat().st_size
    content = bytearray(whole[0].read_bytes())
    content[len(content) // 2] ^= 1
    whole[0].write_bytes(content)
    whole[1].write_bytes(whole[1].read_bytes()[:-100])
    embedder, reused = HashingEmbedder(), 6_500 - 2 * SHARD
    assert _run(workspace, embedder).measured["reused"] == reused
    assert len(embedder.encoded) == len(texts) - reused
    assert _file(workspace).read_bytes() == _undisturbed(tmp_path / "apart", texts)
    assert _shards(workspace) == []


@pytest.mark.parametrize(("model", "resumed"), [("hashing", 3_750 - 2), ("another", 0)])
def test_shards_of_an_older_state_serve_by_their_texts_to_the_same_model_and_are_removed(
    workspace, model, resumed
):
    before = _many(5_000)
    write_month(workspace, texts=before)
    _stop_after(workspace, 4_100)
    assert _shards(workspace)
    later = ["A paper that came later.", "Its second passage."]
    write_month(workspace, texts=[*before[:1_000], *later, *before[1_002:]])
    measured = _run(workspace, HashingEmbedder(model)).measured
    assert (measured["reused"], measured["encoded"]) == (resumed, 5_000 - resumed)
    assert _shards(workspace) == []


def group(*numbers):
    """A group of vectors in memory: each is the number of its text."""
    digests = pa.chunked_array([list(map(str, numbers))], pa.string())
    vectors = pa.table({"dense": pa.array(numbers)})
    return SimpleNamespace(digests=lambda: digests, vectors=lambda: vectors)


def test_vectors_of_several_groups_are_taken_in_the_order_of_the_texts():
    known = KnownVectors([group(1, 2, 3, 7), group(7, 4, 5)], group(5, 1, 4, 9, 7, 3).digests())
    rows = known.rows
    assert rows.tolist() == [6, 0, 5, -1, 3, 2], "of two rows of one text the first"
    assert known.take(rows[rows >= 0])["dense"].to_pylist() == [5, 1, 4, 7, 3]


def test_the_embedder_is_told_to_end_where_a_run_fails(workspace):
    write_month(workspace, texts=_many(2_500))
    embedder = HashingEmbedder()
    stage = stage_with(embedder)
    building = stage.build(Job(workspace, MONTH, stage))
    next(iter(building))
    building.close()
    assert embedder.closed


@pytest.mark.parametrize(
    ("factor", "fault"), [(0, "gave 0 vectors for 6 texts"), (2, "more vectors than")]
)
def test_an_embedder_that_loses_a_text_ends_the_run(workspace, factor, fault):
    write_month(workspace)

    class Miscounting(HashingEmbedder):
        def encode_stream(self, texts):
            for batch in super().encode_stream(texts):
                yield from [batch] * factor

    with pytest.raises(ValueError, match=fault):
        _run(workspace, Miscounting())
    assert not _file(workspace).exists()


def test_a_previous_file_that_is_damaged_is_named(workspace):
    write_month(workspace, texts=_many(2_000))
    _run(workspace)
    content = bytearray(_file(workspace).read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    _file(workspace).write_bytes(content)
    write_month(workspace, texts=_many(2_001))
    with pytest.raises(PermanentFailure, match=r"2024-03\.parquet is damaged .*--force"):
        _run(workspace)
    assert _run(workspace, force=True).measured["encoded"] == 2_001


def test_vectors_of_a_version_that_had_those_of_colbert_too_are_taken_over(workspace):
    write_month(workspace)
    run_stage(EMBEDDINGS, workspace, MONTH)
    rows, written = workspace.root.rows(tables.EMBEDDINGS, MONTH), read_provenance(_file(workspace))
    with MonthWriter(tables.EMBEDDINGS, _file(workspace)) as writer:
        for row in rows:
            writer.add({**row, "colbert": [row["dense"]]})
        kinds = f"{written.inputs['vectors']}, colbert"
        writer.commit(replace(written, inputs={**written.inputs, "vectors": kinds}))
    write_month(workspace, texts=[*TEXTS, "And one more."])
    measured = run_stage(EMBEDDINGS, workspace, MONTH).measured
    assert (measured["reused"], measured["encoded"]) == (len(rows), 1)


def test_another_model_takes_nothing_over(workspace, m3):
    write_month(workspace)
    run_stage(EMBEDDINGS, workspace, MONTH)
    settings = {"embedder": "bge-m3", "embedder_path": str(m3), "embedder_device": "cpu"}
    other = make_workspace(workspace.root.path, **settings)
    assert state(EMBEDDINGS, other, MONTH) is State.STALE
    assert run_stage(EMBEDDINGS, other, MONTH).measured["reused"] == 0
    row = workspace.root.rows(tables.EMBEDDINGS, MONTH)[0]
    assert len(row["dense"]) == M3_DIMENSIONS
    write_month(workspace, texts=[*TEXTS, "And one more."])
    assert run_stage(EMBEDDINGS, other, MONTH).measured["reused"] == len(TEXTS)
