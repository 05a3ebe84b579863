"""The stage `retrieval_scores`: a month's queries asked over a pool of passages by each method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.corpus.passages.text import text_digest
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import K1, B
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.retrieval import pool as pools
from pipeline.evaluation.retrieval import rankings
from pipeline.evaluation.retrieval.measures import DIFFERENCE, DIFFERENCE_METRIC, RECALLS, per_query
from pipeline.evaluation.retrieval.pool import earlier_digests, months_until
from pipeline.evaluation.statistics import mean_ends
from pipeline.index.rerank import Reranker, make_reranker
from pipeline.settings import Settings
from pipeline.storage.writing import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder

LEXICAL_NAME = f"BM25 of English stems, k1 {K1}, b {B}"

Rows = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _Run:
    """A month's queries, the pool that they search, and the rankings by each method."""

    job: Job
    queries: Rows
    choice: pools.Choice
    pool: pools.Pool
    embedder: Embedder
    reranker: Reranker | None
    found: dict[str, list[rankings.Ranking]] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)


def build_scores(
    job: Job,
    make: Callable[[Settings], Embedder] = make_embedder,
    make_reranker: Callable[[Settings], Reranker | None] = make_reranker,
    most_passages: int = pools.MOST_PASSAGES,
) -> Iterator[Row]:
    """The month's scores by method and metric, and the paired difference of fused and lexical
    search.

    A month without queries has no rows, and no model is loaded for it. Raises SettingError where a
    model is not there, PermanentFailure where a month's embeddings are of earlier texts than its
    passages.
    """
    drawn = sorted(job.rows(tables.RETRIEVAL_QUERIES), key=lambda row: text_digest(row["query_id"]))
    if not drawn:
        job.notes["no_scores"] = _why_none(job)
        return
    embedder = make(job.settings)
    choice = pools.choose(
        job.workspace, job.month, [row["cited"] for row in drawn], embedder.name, most_passages
    )
    queries = _that_fit(job, drawn, choice, most_passages)
    if not queries:
        job.notes["no_scores"] = "no query fits the pool"
        return
    pool = pools.read_pool(job.workspace, choice)
    run = _Run(job, queries, choice, pool, embedder, make_reranker(job.settings))
    _rank(run)
    _note(run)
    yield from _rows(run)


def _that_fit(job: Job, queries: Rows, choice: pools.Choice, most_passages: int) -> Rows:
    """The queries that are asked; the others go to the ledger."""
    for row in queries[choice.asked :]:
        detail = f"the papers that it cites do not fit into the pool of {most_passages:,} passages"
        job.leave_out(row["passage_id"], "over_retrieval_pool", detail)
    asked = []
    for row in queries[: choice.asked]:
        if any(paper in choice.months for paper in row["cited"]):
            asked.append(row)
        else:
            job.leave_out(row["passage_id"], "cited_paper_not_embedded", ", ".join(row["cited"]))
    return asked


def _why_none(job: Job) -> str:
    if not job.settings.retrieval_queries:
        return "CITELOOM_RETRIEVAL_QUERIES is 0"
    return "no sentence of the month cites a paper of the corpus"


def _rank(run: _Run) -> None:
    """Every ranking; what cannot be measured is said."""
    texts = [row["text"] for row in run.queries]
    own = [next(iter(run.pool.numbers([row["arxiv_id"]])), -1) for row in run.queries]
    queries = rankings.Queries(texts, own, run.embedder.encode_queries(texts))
    vectors = pools.pool_vectors(
        run.job.workspace,
        run.choice,
        run.pool,
        run.embedder.name,
        has_sparse=run.embedder.has_sparse,
    )
    found = rankings.rank(queries, run.pool, vectors)
    run.found |= {"dense": found.dense, "lexical": found.lexical, "fused": found.fused}
    if found.sparse:
        run.found["sparse"] = found.sparse
    _rank_again(run, queries, found)


def _rank_again(run: _Run, queries: rankings.Queries, found: rankings.Rankings) -> None:
    token_vectors = [vector.colbert for vector in queries.vectors if vector.colbert is not None]
    score: rankings.Score | str = (
        "the embedder gives no ColBERT vectors (CITELOOM_EMBEDDER_COLBERT)"
    )
    if len(token_vectors) == len(queries.vectors):
        score = rankings.by_colbert(
            run.job.workspace, run.pool, found, token_vectors, run.embedder.name
        )
    if isinstance(score, str):
        run.not_measured["colbert"] = score
    else:
        run.found["colbert"] = rankings.rank_again(found, run.pool, score)
    if run.reranker is None:
        run.not_measured["cross_encoder"] = "CITELOOM_RERANKER names none"
    else:
        reading = rankings.by_cross_encoder(run.reranker, queries.texts, run.pool.texts)
        run.found["cross_encoder"] = rankings.rank_again(found, run.pool, reading)


def _note(run: _Run) -> None:
    papers = len(run.choice.months)
    for metric, depth in RECALLS.items():
        if papers <= depth + 1:
            run.not_measured[metric] = (
                f"{papers} papers are searched, so whoever finds them all has 1"
            )
    run.job.notes.update(
        queries=len(run.queries),
        asking_papers=len({row["arxiv_id"] for row in run.queries}),
        papers=papers,
        passages=len(run.pool),
        papers_in_all=run.choice.papers_in_all,
        passages_in_all=run.choice.passages_in_all,
        not_measured=run.not_measured,
    )


def _rows(run: _Run) -> Iterator[Row]:
    relevant = [run.pool.numbers(row["cited"]) for row in run.queries]
    # Sentences of one paper are not independent: its authors and its topic are behind all of them.
    papers = [row["arxiv_id"] for row in run.queries]
    values = {key: per_query(ranked, relevant) for key, ranked in run.found.items()}
    for method, metrics in values.items():
        for metric, each in metrics.items():
            if metric not in run.not_measured:
                yield _row(run, papers, method, metric, each)
    if DIFFERENCE_METRIC not in run.not_measured:
        fused, baseline = (values[method][DIFFERENCE_METRIC] for method in ("fused", "lexical"))
        yield _row(run, papers, DIFFERENCE, DIFFERENCE_METRIC, fused - baseline)


def _row(
    run: _Run, papers: Sequence[str], method: str, metric: str, values: NDArray[np.float64]
) -> Row:
    low, high = mean_ends(values, papers)
    return {
        "method": method,
        "metric": metric,
        "value": float(values.mean()),
        "low": low,
        "high": high,
        "queries": len(run.queries),
        "papers": len(run.choice.months),
        "passages": len(run.pool),
        "model": _model(run, method),
    }


def _model(run: _Run, method: str) -> str:
    ranked_by = {"lexical": LEXICAL_NAME, "cross_encoder": run.job.settings.reranker}
    return ranked_by.get(method, run.embedder.name)


def score_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The model, and what the earlier months hold that may be searched."""
    earlier = earlier_digests(
        workspace, month, months_until(workspace, month), tables.PASSAGES, tables.EMBEDDINGS
    )
    return {"model": model_name(workspace.settings), **earlier}
