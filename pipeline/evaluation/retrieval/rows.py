"""The stage `retrieval_scores`: a month's queries asked over a pool of passages by each method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.corpus.references.cited_months import cited_months
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import K1, B
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.retrieval import pool as pools
from pipeline.evaluation.retrieval import rankings
from pipeline.evaluation.retrieval.measures import DIFFERENCE, DIFFERENCE_METRIC, RECALLS, per_query
from pipeline.evaluation.retrieval.pool import earlier_digests
from pipeline.evaluation.statistics import mean_ends
from pipeline.index.rerank import Reranker, make_reranker
from pipeline.settings import Settings
from pipeline.storage.writing import Row
from pipeline.text import text_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder

LEXICAL_NAME = f"BM25 of English stems, k1 {K1}, b {B}"

Rows = Sequence[Mapping[str, Any]]


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
        job.notes["no_scores"] = (
            "no sentence of the month cites a paper of the corpus"
            if job.settings.retrieval_queries
            else "CITELOOM_RETRIEVAL_QUERIES is 0"
        )
        return
    embedder = make(job.settings)
    choice = pools.choose(
        job.workspace, job.month, [row["cited"] for row in drawn], embedder.name, most_passages
    )
    queries = _queries_that_fit(job, drawn, choice, most_passages)
    if not queries:
        job.notes["no_scores"] = "no query fits the pool"
        return
    pool = pools.read_pool(job.workspace, choice)
    by_method, not_measured = _rank(job, queries, choice, pool, embedder, make_reranker)
    papers = len(choice.papers)
    for metric, depth in RECALLS.items():
        if papers <= depth + 1:
            not_measured[metric] = f"{papers} papers are searched, so whoever finds them all has 1"
    _note(job, queries, choice, pool, not_measured)
    models = {"lexical": LEXICAL_NAME, "cross_encoder": job.settings.reranker}
    # Sentences of one paper are not independent: its authors and its topic are behind all of them.
    asking = [row["arxiv_id"] for row in queries]
    for (method, metric), values in _measures(queries, pool, by_method).items():
        if metric in not_measured:
            continue
        low, high = mean_ends(values, asking)
        yield {
            "method": method,
            "metric": metric,
            "value": float(values.mean()),
            "low": low,
            "high": high,
            "queries": len(queries),
            "papers": papers,
            "passages": len(pool),
            "model": models.get(method, embedder.name),
        }


def _note(
    job: Job,
    queries: Rows,
    choice: pools.Choice,
    pool: pools.Pool,
    not_measured: Mapping[str, str],
) -> None:
    """Add what is searched, by how many queries, and why some measures are absent to the notes."""
    job.notes.update(
        queries=len(queries),
        asking_papers=len({row["arxiv_id"] for row in queries}),
        papers=len(choice.papers),
        passages=len(pool),
        papers_in_all=choice.papers_in_all,
        passages_in_all=choice.passages_in_all,
        not_measured=not_measured,
    )


def _queries_that_fit(job: Job, queries: Rows, choice: pools.Choice, most_passages: int) -> Rows:
    """The queries that are asked; the others go to the ledger."""
    for row in queries[choice.queries :]:
        detail = f"the papers that it cites do not fit into the pool of {most_passages:,} passages"
        job.leave_out(row["passage_id"], "over_retrieval_pool", detail)
    answerable = []
    for row in queries[: choice.queries]:
        if any(paper in choice.papers for paper in row["cited"]):
            answerable.append(row)
        else:
            job.leave_out(row["passage_id"], "cited_paper_not_embedded", ", ".join(row["cited"]))
    return answerable


def _rank(
    job: Job,
    queries: Rows,
    choice: pools.Choice,
    pool: pools.Pool,
    embedder: Embedder,
    make_reranker: Callable[[Settings], Reranker | None],
) -> tuple[dict[str, list[rankings.Ranking]], dict[str, str]]:
    """Method → a ranking for each query; and method → why it has none."""
    texts = [row["text"] for row in queries]
    own = [next(iter(pool.numbers([row["arxiv_id"]])), -1) for row in queries]
    reranker = make_reranker(job.settings)
    query_set = rankings.Queries(texts, own, embedder.encode_queries(texts))
    vectors = pools.pool_vectors(
        job.workspace, choice, pool, embedder.name, has_sparse=embedder.has_sparse
    )
    ranked = rankings.rank(query_set, pool, vectors)
    by_method = {"dense": ranked.dense, "lexical": ranked.lexical, "fused": ranked.fused}
    not_measured: dict[str, str] = {}
    if ranked.sparse:
        by_method["sparse"] = ranked.sparse
    tokens = [vector.colbert for vector in query_set.vectors if vector.colbert is not None]
    score: rankings.Score | str = (
        "the embedder gives no ColBERT vectors (CITELOOM_EMBEDDER_COLBERT)"
    )
    if len(tokens) == len(queries):
        score = rankings.by_colbert(job.workspace, pool, ranked, tokens, embedder.name)
    if isinstance(score, str):
        not_measured["colbert"] = score
    else:
        by_method["colbert"] = rankings.rank_again(ranked, pool, score)
    if reranker is None:
        not_measured["cross_encoder"] = "CITELOOM_RERANKER names none"
    else:
        reading = rankings.by_cross_encoder(reranker, texts, pool.texts)
        by_method["cross_encoder"] = rankings.rank_again(ranked, pool, reading)
    return by_method, not_measured


def _measures(
    queries: Rows, pool: pools.Pool, by_method: Mapping[str, Sequence[rankings.Ranking]]
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """(Method, metric) → a value for each query; last fused search less lexical search."""
    relevant = [pool.numbers(row["cited"]) for row in queries]
    values = {
        (method, metric): of_queries
        for method, ranked in by_method.items()
        for metric, of_queries in per_query(ranked, relevant).items()
    }
    fused, lexical = (values[method, DIFFERENCE_METRIC] for method in ("fused", "lexical"))
    return values | {(DIFFERENCE, DIFFERENCE_METRIC): fused - lexical}


def score_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The model, and digests of the earlier months of the papers that the queries cite."""

    def read_cited() -> set[str]:
        rows = workspace.root.rows(tables.RETRIEVAL_QUERIES, month, ["cited"])
        return {paper for row in rows for paper in row["cited"]}

    cited = cited_months(workspace, tables.RETRIEVAL_QUERIES, month, read_cited)
    earlier = earlier_digests(workspace, month, cited, tables.PASSAGES, tables.EMBEDDINGS)
    return {"model": model_name(workspace.settings), **earlier}
