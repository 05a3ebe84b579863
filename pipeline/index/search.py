"""Search: encode queries, rank passages of the live collection, rerank them if requested, and add
their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import lexical_query, words_of
from pipeline.embedding.minilm import NAME as MINILM
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.fusion import best_first, rank, with_payloads
from pipeline.index.opening import live_index, missing_index
from pipeline.index.papers import read_texts
from pipeline.index.passage_index import PassageIndex, QueryVectors, ScoredPoint
from pipeline.index.relevance import coverage, relevance_of
from pipeline.index.rerank import make_reranker
from pipeline.index.scored import IndexedPassage, Scored
from pipeline.index.search_options import SearchOptions, check_queries

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Layout
    from pipeline.index.rerank import Reranker
    from pipeline.settings import Settings


def search(workspace: Workspace, query: str, **options: Any) -> list[Scored[IndexedPassage]]:
    """The passages that fit a query best, best first. options: fields of `SearchOptions`, by name.

    Raises SettingError for a wrong option, for a category or kind that no passage has, or for a
    missing reranker; MissingInput if nothing is indexed; PermanentFailure if the collection's model
    or its ColBERT vectors are missing, or a table is broken; TransientFailure if the index does not
    answer or another process holds it. Creates no collection.
    """
    return search_many(workspace, [query], SearchOptions(**options))[0]


def search_many(
    workspace: Workspace,
    queries: Sequence[str],
    options: SearchOptions = SearchOptions(),  # noqa: B008 - frozen
    typed: Sequence[str] | None = None,
) -> list[list[Scored[IndexedPassage]]]:
    """The passages of several queries, encoded and searched together. Raises as `search` does.

    typed: the queries as they were typed, where their spelling is corrected; their words count too.
    """
    checked = options.checked()
    check_queries(queries)
    if not queries:
        return []
    return search_index(workspace, live_index(workspace), queries, checked, typed)


def search_index(
    workspace: Workspace,
    index: PassageIndex,
    queries: Sequence[str],
    options: SearchOptions,
    typed: Sequence[str] | None = None,
) -> list[list[Scored[IndexedPassage]]]:
    """As `search_many`, in one collection. options: as `SearchOptions.checked` returns them."""
    layout = index.layout()
    if layout is None:  # another process has dropped it
        raise missing_index(workspace)
    reranker = _reranker(workspace.settings) if options.rerank == "cross-encoder" else None
    embedder = _embedder_of(layout, workspace.settings, options)
    typed = queries if typed is None else typed
    words = [
        _with_typed_words(query, as_typed) for query, as_typed in zip(queries, typed, strict=True)
    ]
    rankings = _gather(index, _query_vectors(embedder, queries, words, options), options)
    if not any(rankings):
        _explain_nothing(index, options)
    if reranker is not None:
        candidates = with_payloads(index, rankings)
        texts = read_texts(workspace, (point for ranking in candidates for point in ranking))
        reranked = [
            _reranked(reranker, query, ranking, texts)
            for query, ranking in zip(queries, candidates, strict=True)
        ]
        pages = _pages(reranked, options)
    else:
        pages = with_payloads(index, _pages(rankings, options))
        texts = read_texts(workspace, (point for page in pages for point in page))
    return [
        _with_texts(page, texts, tuple(dict.fromkeys((query, as_typed))), layout)
        for query, as_typed, page in zip(queries, typed, pages, strict=True)
    ]


def encode_queries(
    embedder: Embedder, queries: Sequence[str], words: Sequence[str] | None = None
) -> list[QueryVectors]:
    """The vectors of queries: dense and lexical, and the model's sparse and ColBERT vectors where
    it has them. words: the texts of the lexical vectors; None for the queries.
    """
    words = queries if words is None else words
    return [
        QueryVectors(
            vectors.dense,
            lexical_query(text),
            vectors.sparse if embedder.has_sparse else None,
            vectors.colbert,
        )
        for text, vectors in zip(words, embedder.encode_queries(queries), strict=True)
    ]


def _query_vectors(
    embedder: Embedder, queries: Sequence[str], words: Sequence[str], options: SearchOptions
) -> list[QueryVectors]:
    """The vectors that a search needs: by words alone, the model does not run."""
    if options.by != "lexical" or options.rerank == "colbert":
        return encode_queries(embedder, queries, words)
    import numpy as np

    none = np.zeros(0, np.float32)
    return [QueryVectors(none, lexical_query(text)) for text in words]


def _with_typed_words(query: str, typed: str) -> str:
    """A query with the words of its typed form that it lacks."""
    if typed == query:
        return query
    words = set(words_of(query))
    return " ".join([query, *(word for word in words_of(typed) if word not in words)])


def _reranker(settings: Settings) -> Reranker:
    reranker = make_reranker(settings)
    if reranker is None:
        raise SettingError(
            "--rerank cross-encoder: CITELOOM_RERANKER names no model: set it to a cross-encoder's"
            " folder, or to a name of the Hugging Face hub such as BAAI/bge-reranker-v2-m3"
        )
    return reranker


def _embedder_of(layout: Layout, settings: Settings, options: SearchOptions) -> Embedder:
    """The model of the collection's vectors, whatever model the settings name for new ones."""
    if options.rerank == "colbert":
        if not layout.colbert:
            raise PermanentFailure(
                f"--rerank colbert: the index has no ColBERT vectors ({layout.describe()}): search"
                " without, or set CITELOOM_EMBEDDER=bge-m3 and CITELOOM_EMBEDDER_COLBERT=true and"
                " run citeloom reindex"
            )
        settings = settings.model_copy(update={"embedder_colbert": True})
    if layout.model == MINILM:
        return make_embedder(settings.model_copy(update={"embedder": "minilm"}))
    if settings.embedder == "minilm" or model_name(settings) != layout.model:
        raise PermanentFailure(
            f"the index holds vectors of {layout.model}, and the settings name"
            f" {model_name(settings)}: set CITELOOM_EMBEDDER and CITELOOM_EMBEDDER_PATH to"
            f" {layout.model}, or run citeloom reindex"
        )
    return make_embedder(settings)


def _gather(
    index: PassageIndex, queries: Sequence[QueryVectors], options: SearchOptions
) -> list[list[ScoredPoint]]:
    """Each query's ranking, as deep as the options need: with per_paper, until there are enough
    papers.
    """
    request = options.ranking()
    rankings = rank(index, queries, request)
    while options.per_paper:
        # Those with too few papers that may go on.
        short = [
            number
            for number, ranking in enumerate(rankings)
            if len(ranking) == request.limit and len(_papers_best(ranking)) < options.end
        ]
        if not short:
            break
        request = options.ranking(2 * request.limit)
        deeper = rank(index, [queries[number] for number in short], request)
        for number, ranking in zip(short, deeper, strict=True):
            rankings[number] = ranking
    return rankings


def _papers_best(ranking: Sequence[ScoredPoint]) -> list[ScoredPoint]:
    """The first passage of every paper."""
    first: dict[str, ScoredPoint] = {}
    for point in ranking:
        first.setdefault(point.payload["arxiv_id"], point)
    return list(first.values())


def _reranked(
    reranker: Reranker, query: str, ranking: Sequence[ScoredPoint], texts: Mapping[str, str]
) -> list[ScoredPoint]:
    """The candidates by the reranker's scores, ties by id; those without text are left out. It
    reads headings too.
    """
    with_text = [point for point in ranking if point.passage_id in texts]
    candidates = [
        embedded_text(
            point.payload["title"], point.payload["section_path"], texts[point.passage_id]
        )
        for point in with_text
    ]
    scores = reranker.score(query, candidates).tolist()
    return best_first(
        [point._replace(score=score) for point, score in zip(with_text, scores, strict=True)]
    )


def _pages(
    rankings: Sequence[Sequence[ScoredPoint]], options: SearchOptions
) -> list[Sequence[ScoredPoint]]:
    ordered = [_papers_best(ranking) if options.per_paper else ranking for ranking in rankings]
    return [ranking[options.offset : options.end] for ranking in ordered]


def _with_texts(
    page: Sequence[ScoredPoint],
    texts: Mapping[str, str],
    readings: Sequence[str],
    layout: Layout,
) -> list[Scored[IndexedPassage]]:
    """The passages of a page whose texts are there, each with its relevance to the query.

    readings: the different spellings of the query, of which a passage has to fit one.
    """
    passages = []
    for point in page:
        text = texts.get(point.passage_id)
        if text is None:
            continue
        passage = IndexedPassage.from_payload(point.passage_id, point.payload, text)
        embedded = embedded_text(passage.title, passage.section_path, text, layout.form)
        query = readings[0]
        if len(readings) > 1:
            query = max(readings, key=lambda reading: coverage(reading, embedded))
        relevance = relevance_of(layout.model, query, embedded, point.cosine)
        passages.append(Scored(passage, point.score, relevance))
    return passages


def _explain_nothing(index: PassageIndex, options: SearchOptions) -> None:
    """Raise where a search finds nothing because there is nothing, or nothing of a category or
    kind.

    SearchOptions only then: counting and listing values cost more than a search.
    """
    if index.count() == 0:
        raise MissingInput(
            f"the collection {index.name} is empty: run citeloom run --months all --until"
            f" {tables.INDEX_RECEIPTS.name}"
        )
    for category in options.categories:
        _insist_on_category(index, category)
    kinds = index.values("kind") if options.kinds else []
    for kind in options.kinds:
        if kind not in kinds:
            raise SettingError(
                f"--kind: no passage is of the kind {kind}; the index holds {', '.join(kinds)}"
            )


def _insist_on_category(index: PassageIndex, category: str) -> None:
    archive, dot, _ = category.partition(".")
    names = index.values("category_keys")
    archives = [name for name in names if "." not in name]
    if archive not in archives:
        raise SettingError(
            f"--category: no passage is of the archive {archive}; the index holds"
            f" {', '.join(archives)}"
        )
    of_archive = [name for name in names if name.startswith(f"{archive}.")]
    if dot and category not in of_archive:
        raise SettingError(
            f"--category: no passage is of the category {category}; of {archive}, there are"
            f" {', '.join(of_archive)}"
        )
