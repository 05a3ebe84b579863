"""The stage retrieval_scores with an embedder that counts words: what it searches, measures and
leaves out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline import tables
from pipeline.engine.progress import Outcome
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure
from pipeline.evaluation.retrieval.pool import MOST_PASSAGES, matrix_of
from pipeline.evaluation.retrieval.rows import build_scores, score_inputs
from pipeline.evaluation.stages import RETRIEVAL_QUERIES, RETRIEVAL_SCORES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import workspace
from tests.unit.evaluation.retrieval.corpus import (
    APRIL,
    MARCH,
    MAY,
    Backwards,
    WordEmbedder,
    Written,
    small_corpus,
    write_papers,
)

pytestmark = pytest.mark.slow

Row = dict[str, Any]


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    made = workspace(tmp_path)
    small_corpus(made)
    return made


def scored(
    work: Workspace,
    embedder: WordEmbedder,
    month: str = APRIL,
    *,
    reranker: Backwards | None = None,
    most_passages: int = MOST_PASSAGES,
    force: bool = False,
) -> tuple[list[Row], Outcome]:
    """The rows of a month and what is told of the run; the queries are made first."""
    run_stage(RETRIEVAL_QUERIES, work, month)
    build = partial(
        build_scores,
        make=lambda settings: embedder,
        make_reranker=lambda settings: reranker,
        most_passages=most_passages,
    )
    outcome = run_stage(replace(RETRIEVAL_SCORES, build=build), work, month, force=force)
    return work.root.rows(tables.RETRIEVAL_SCORES, month), outcome


def value(rows: list[Row], method: str, metric: str) -> float:
    (row,) = [row for row in rows if (row["method"], row["metric"]) == (method, metric)]
    return float(row["value"])


def test_every_method_is_measured_over_the_month_and_what_it_cites(work: Workspace) -> None:
    embedder = WordEmbedder()
    rows, outcome = scored(work, embedder)
    assert {row["method"] for row in rows} == {"dense", "lexical", "sparse", "fused"}
    assert {(row["queries"], row["papers"], row["passages"]) for row in rows} == {(3, 5, 7)}
    assert outcome.notes["asking_papers"] == 2
    # A number that cannot tell the methods apart is not written.
    assert {row["metric"] for row in rows} == {"R@1", "RR@50", "nDCG@10"}
    assert outcome.notes["not_measured"].keys() == {
        "colbert",
        "cross_encoder",
        "R@5",
        "R@10",
        "R@50",
    }
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert {row["model"] for row in rows if row["method"] != "lexical"} == {"words"}
    # Quartz finds its paper, lantern one of its two at rank 1, violin and meadow theirs.
    assert value(rows, "dense", "R@1") == pytest.approx((1 + 0.5 + 1) / 3)
    assert value(rows, "dense", "RR@50") == 1.0
    assert not embedder.encoded, "the vectors are in the table"


def test_the_asking_papers_own_passages_never_count(tmp_path: Path) -> None:
    """The asking paper says the sentence itself, word for word; had it counted, it would be first
    everywhere.
    """
    work = workspace(tmp_path)
    write_papers(work, MARCH, [Written("2403.00000", "Known", [("abstract", "copper")])])
    sentence = "Copper dune copper ember shines brightly [@a]."
    asking = Written(
        "2404.00001",
        "Copper",
        [("paragraph", sentence), ("caption", sentence[:-6])],
        {"a": "2403.00000"},
    )
    write_papers(work, APRIL, [asking])
    rows, _ = scored(work, WordEmbedder())
    for method in ("dense", "lexical", "sparse", "fused"):
        assert value(rows, method, "RR@50") == 1.0
    # Only one paper asks, and so there is no interval.
    assert {(row["low"], row["high"]) for row in rows} == {(None, None)}


def test_the_difference_of_fused_and_lexical_is_paired(tmp_path: Path) -> None:
    work = workspace(tmp_path)
    others = [
        Written(f"2404.001{n:02}", f"Other {n}", [("abstract", "cobalt walnut")]) for n in range(20)
    ]
    small_corpus(work, others=others)
    rows, _ = scored(work, WordEmbedder())
    (gain,) = [row for row in rows if row["method"] == "fused_minus_lexical"]
    assert gain["metric"] == "R@10"
    apart = value(rows, "fused", "R@10") - value(rows, "lexical", "R@10")
    assert gain["value"] == pytest.approx(apart)
    assert gain["low"] <= gain["value"] <= gain["high"]


def test_vectors_of_another_model_are_not_searched(work: Workspace) -> None:
    other = WordEmbedder("other words")
    _, outcome = scored(work, other)
    assert outcome.notes["no_scores"] == "no query fits the pool"
    assert dict(outcome.left_out) == {"cited_paper_not_embedded": 3}
    small_corpus(work, other)
    rows, _ = scored(work, other, force=True)
    assert {row["model"] for row in rows if row["method"] != "lexical"} == {"other words"}


def test_a_month_without_embeddings_is_not_searched(work: Workspace) -> None:
    work.root.file(tables.EMBEDDINGS, MARCH).unlink()
    rows, outcome = scored(work, WordEmbedder())
    assert {(row["queries"], row["papers"]) for row in rows} == {(1, 2)}
    assert dict(outcome.left_out) == {"cited_paper_not_embedded": 2}


def test_embeddings_of_earlier_texts_are_refused_with_what_to_run(work: Workspace) -> None:
    kept = work.root.file(tables.EMBEDDINGS, MARCH).read_bytes()
    papers = [Written(f"2403.0000{n}", f"Anew {n}", [("abstract", "quartz")]) for n in range(4)]
    write_papers(work, MARCH, papers)
    work.root.file(tables.EMBEDDINGS, MARCH).write_bytes(kept)
    with pytest.raises(PermanentFailure, match="citeloom run --months 2024-03 --until embeddings"):
        scored(work, WordEmbedder())


def test_rows_are_taken_from_chunks_in_any_order() -> None:
    rows = np.arange(24, dtype=np.float16).reshape(8, 3)
    chunks = [
        pa.array(list(rows[start:end]), pa.list_(pa.float16()))
        for start, end in ((0, 1), (1, 1), (1, 6), (6, 8))
    ]
    wanted = np.array([7, 2, 2, 5, 0, 6])
    assert (matrix_of(pa.chunked_array(chunks), wanted) == rows[wanted]).all()
    assert (matrix_of(pa.chunked_array(chunks).slice(2), wanted[:1] - 2) == rows[wanted[:1]]).all()


def test_scores_depend_on_cited_months_alone(work: Workspace) -> None:
    first, _ = scored(work, WordEmbedder())
    noted = score_inputs(work, APRIL)
    write_table(
        work.root, tables.RETRIEVAL_QUERIES, APRIL, work.root.rows(tables.RETRIEVAL_QUERIES, APRIL)
    )
    assert score_inputs(work, APRIL) == noted, "a file of before has no note of what it cites"
    for month, paper in (("2024-02", "2402.00001"), (MAY, "2405.00001")):
        write_papers(work, month, [Written(paper, "Other", [("abstract", "quartz quartz shine")])])
    assert state(RETRIEVAL_SCORES, work, APRIL) is State.DONE
    assert scored(work, WordEmbedder(), force=True)[0] == first
    write_papers(work, MARCH, [Written("2403.00000", "Quartz", [("abstract", "quartz")])])
    assert state(RETRIEVAL_SCORES, work, APRIL) is State.STALE


@pytest.mark.parametrize(
    ("wanted", "papers", "said"),
    [
        (
            0,
            [Written("2404.00001", "Alone", [("abstract", "Copper.")])],
            "CITELOOM_RETRIEVAL_QUERIES is 0",
        ),
        (
            10,
            [Written("2404.00001", "Alone", [("abstract", "Copper.")])],
            "no sentence of the month",
        ),
        (10, [], "no sentence of the month"),
    ],
    ids=["no query is wanted", "nothing is cited", "no paper"],
)
def test_a_month_without_queries_has_no_rows_and_loads_no_model(
    tmp_path: Path, wanted: int, papers: list[Written], said: str
) -> None:
    work = workspace(tmp_path, retrieval_queries=wanted)
    write_papers(work, APRIL, papers)
    assert run_stage(RETRIEVAL_QUERIES, work, APRIL).rows == 0

    def no_model(settings: object) -> Any:
        raise AssertionError

    stage = replace(
        RETRIEVAL_SCORES, build=partial(build_scores, make=no_model, make_reranker=no_model)
    )
    outcome = run_stage(stage, work, APRIL)
    assert outcome.rows == 0
    assert outcome.notes["no_scores"].startswith(said)


def test_a_pool_that_is_cut_says_so_and_holds_the_cited_papers(tmp_path: Path) -> None:
    work = workspace(tmp_path)
    many = [Written(f"2404.{n:05}", "Many", [("abstract", "copper")] * 3) for n in range(10, 100)]
    small_corpus(work, others=many)
    rows, outcome = scored(work, WordEmbedder(), most_passages=100)
    notes = outcome.notes
    assert (notes["papers_in_all"], notes["passages_in_all"]) == (95, 277)
    assert 97 < notes["passages"] <= 100
    assert {row["passages"] for row in rows} == {notes["passages"]}
    assert value(rows, "dense", "R@5") > 0


def test_queries_whose_papers_do_not_fit_are_in_the_ledger(tmp_path: Path) -> None:
    work = workspace(tmp_path)
    known = [Written(f"2403.0000{n}", "Known", [("abstract", "copper")] * 60) for n in range(3)]
    write_papers(work, MARCH, known)
    sentences = " ".join(f"Copper shines brightly number {n} tonight [@k{n}]." for n in range(3))
    cites = {f"k{n}": f"2403.0000{n}" for n in range(3)}
    write_papers(work, APRIL, [Written("2404.00001", "Asking", [("paragraph", sentences)], cites)])
    rows, outcome = scored(work, WordEmbedder(), most_passages=100)
    assert dict(outcome.left_out) == {"over_retrieval_pool": 2}
    assert {row["queries"] for row in rows} == {1}


def test_colbert_is_measured_where_the_table_has_its_vectors(tmp_path: Path) -> None:
    work, embedder = workspace(tmp_path), WordEmbedder(colbert=True)
    small_corpus(work, embedder)
    rows, outcome = scored(work, embedder)
    assert "colbert" not in outcome.notes["not_measured"]
    # One token of "violin meadow" is in each of two papers: alike to MaxSim, and the wrong one has
    # the lower id.
    assert value(rows, "colbert", "R@1") == pytest.approx((1 + 0.5 + 0) / 3)


def test_colbert_is_not_measured_where_vectors_are_missing(work: Workspace) -> None:
    rows, outcome = scored(work, WordEmbedder(colbert=True))
    assert "have no ColBERT vectors" in outcome.notes["not_measured"]["colbert"]
    assert not [row for row in rows if row["method"] == "colbert"]


def test_the_cross_encoder_ranks_the_best_of_the_fused_again(tmp_path: Path) -> None:
    work, reranker = workspace(tmp_path, reranker="some/model"), Backwards()
    small_corpus(work)
    rows, outcome = scored(work, WordEmbedder(), reranker=reranker)
    assert outcome.notes["not_measured"].keys().isdisjoint({"cross_encoder"})
    assert {row["model"] for row in rows if row["method"] == "cross_encoder"} == {"some/model"}
    assert value(rows, "cross_encoder", "R@1") < value(rows, "fused", "R@1")
    query, texts = reranker.read[0]
    assert "[@" not in query
    assert all("\n" in text for text in texts)
