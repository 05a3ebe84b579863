"""Search: questions against the live collection, ranked again where asked, with the texts of what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar, Unpack

from pipeline import tables
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import lexical_query
from pipeline.embedding.minilm import NAME as MINILM
from pipeline.errors import CiteloomError, MissingInput, PermanentFailure, SettingError, TransientFailure
from pipeline.index.asked import Asked, Options, check_query
from pipeline.index.fusion import Fusion, rank
from pipeline.index.links import abstract_url, passage_url
from pipeline.index.opening import missing_index, open_collections
from pipeline.index.passage_index import Found, PassageIndex, Query
from pipeline.index.passage_texts import read_texts
from pipeline.index.relevance import Relevance, relevance_of
from pipeline.index.rerank import make_reranker

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.index.layout import Layout
    from pipeline.index.passage_index import Collections
    from pipeline.index.rerank import Reranker
    from pipeline.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage found.

    score: of fusion (0 to 1), of a vector alone (dense: cosine) or of the reranker; it orders one search's hits and
    compares with nothing else. relevance: whether it fits the query at all; None where that is not known. url: the
    paper's page on arXiv. passage_url: the paper as HTML, at this passage.
    """

    score: float
    relevance: Relevance | None
    arxiv_id: str
    title: str
    section_path: tuple[str, ...]
    anchor: str
    kind: str
    month: str
    text: str
    passage_id: str
    categories: tuple[str, ...]
    primary_category: str
    subset: str
    grade: str
    url: str
    passage_url: str


def search(workspace: Workspace, query: str, **options: Unpack[Options]) -> list[Hit]:
    """The passages that answer a query best, best first; options as in `pipeline.index.asked.Asked`.

    Raises SettingError for an argument that is wrong, a category or kind that no passage has, or a reranker that is
    not there; MissingInput where nothing is indexed; PermanentFailure where the collection's model or its ColBERT
    vectors are not to be had, or a table is broken; TransientFailure where the index does not answer or another
    process holds it. Never makes a collection.
    """
    return search_many(workspace, [query], **options)[0]


def search_many(workspace: Workspace, queries: Sequence[str], **options: Unpack[Options]) -> list[list[Hit]]:
    """What `search` says to each query; the model and the index get all of them at once. Raises as `search` does."""
    return ask(workspace, queries, Asked(**options))


def ask(
    workspace: Workspace,
    queries: Sequence[str],
    asked: Asked,
    *,
    collections: Collections | None = None,
) -> list[list[Hit]]:
    """`search_many`, with the options in one value. collections: to be asked instead of the workspace's own."""
    checked = asked.checked()
    for number, query in enumerate(queries, 1):
        check_query(query, f"query {number}" if len(queries) > 1 else "the query")
    if not queries:
        return []
    opened = collections or open_collections(workspace)
    try:
        return on_live(opened, partial(_answer, workspace, queries, checked))
    except _NoCollection:
        raise missing_index(workspace, opened) from None


class _NoCollection(MissingInput):
    """No collection is live."""


def on_live(collections: Collections, work: Callable[[PassageIndex, Layout], T]) -> T:
    """What `work` makes of the live collection, asked by its own name: nothing mixes if another one is made live.

    Where it is gone meanwhile, the work is done once more, on the collection that took its place.
    """
    name = _live(collections)
    try:
        return work(*_opened(collections, name))
    except TransientFailure:
        raise
    except CiteloomError:
        now = collections.live()
        if now is None or now == name:
            raise
    return work(*_opened(collections, now))


def _live(collections: Collections) -> str:
    name = collections.live()
    if name is None:
        raise _NoCollection(_nothing_in(collections.alias, "is not there"))
    return name


def _opened(collections: Collections, name: str) -> tuple[PassageIndex, Layout]:
    index = collections.collection(name)
    layout = index.layout()
    if layout is None:
        raise MissingInput(_nothing_in(name, "is not there"))
    return index, layout


def _nothing_in(name: str, state: str) -> str:
    return f"the collection {name} {state}: run citeloom run --months all --until {tables.INDEX_RECEIPTS.name}"


def _answer(
    workspace: Workspace, queries: Sequence[str], asked: Asked, index: PassageIndex, layout: Layout
) -> list[list[Hit]]:
    reranker = _reranker(workspace.settings) if asked.rerank == "cross-encoder" else None
    embedder = _embedder_of(layout, workspace.settings, asked)
    fusion = workspace.settings.search_fusion
    rankings = _gather(index, encode_queries(embedder, queries), asked, fusion)
    if not any(rankings):
        _explain_nothing(index, asked)
    if reranker is not None:
        texts = read_texts(workspace, (point for ranking in rankings for point in ranking))
        reranked = [_reranked(reranker, *pair, texts) for pair in zip(queries, rankings, strict=True)]
        pages = _pages(reranked, asked)
    else:
        pages = _pages(rankings, asked)
        texts = read_texts(workspace, (point for page in pages for point in page))
    return [_hits(page, texts, query, layout) for query, page in zip(queries, pages, strict=True)]


def encode_queries(embedder: Embedder, queries: Sequence[str]) -> list[Query]:
    """The vectors of questions that an index is asked with."""
    return [
        Query(vectors.dense, lexical_query(query), vectors.sparse if embedder.has_sparse else None, vectors.colbert)
        for query, vectors in zip(queries, embedder.encode_queries(queries), strict=True)
    ]


def _reranker(settings: Settings) -> Reranker:
    reranker = make_reranker(settings)
    if reranker is None:
        raise SettingError(
            "--rerank cross-encoder: CITELOOM_RERANKER names no model: set it to a cross-encoder's folder, or to a "
            "name of the Hugging Face hub such as BAAI/bge-reranker-v2-m3"
        )
    return reranker


def _embedder_of(layout: Layout, settings: Settings, asked: Asked) -> Embedder:
    """The model that the collection's vectors are of, whatever model the settings make new ones with."""
    if asked.rerank == "colbert":
        if not layout.colbert:
            raise PermanentFailure(
                f"--rerank colbert: the index has no ColBERT vectors ({layout.describe()}): search without, or set "
                f"CITELOOM_EMBEDDER=bge-m3 and CITELOOM_EMBEDDER_COLBERT=true and run citeloom reindex"
            )
        settings = settings.model_copy(update={"embedder_colbert": True})
    if layout.model == MINILM:
        return make_embedder(settings.model_copy(update={"embedder": "minilm"}))
    if settings.embedder == "minilm" or model_name(settings) != layout.model:
        raise PermanentFailure(
            f"the index holds vectors of {layout.model}, and the settings name {model_name(settings)}: set "
            f"CITELOOM_EMBEDDER and CITELOOM_EMBEDDER_PATH to {layout.model}, or run citeloom reindex"
        )
    return make_embedder(settings)


def _gather(index: PassageIndex, queries: Sequence[Query], asked: Asked, fusion: Fusion) -> list[list[Found]]:
    """Each query's ranking, deep enough for what is asked: per paper, as deep as it takes, or to its end."""
    wanted = asked.ranking(fusion)
    rankings = rank(index, queries, wanted)
    while short := [number for number, ranking in enumerate(rankings) if _is_short(ranking, asked, wanted.limit)]:
        wanted = asked.ranking(fusion, 2 * wanted.limit)
        deeper = rank(index, [queries[number] for number in short], wanted)
        for number, ranking in zip(short, deeper, strict=True):
            rankings[number] = ranking
    return rankings


def _is_short(ranking: Sequence[Found], asked: Asked, depth: int) -> bool:
    """Whether a ranking has too few papers and may go on."""
    return asked.per_paper and len(ranking) == depth and len(_papers_best(ranking)) < asked.wanted


def _papers_best(ranking: Sequence[Found]) -> list[Found]:
    """The first passage of every paper."""
    first: dict[str, Found] = {}
    for point in ranking:
        first.setdefault(point.payload["arxiv_id"], point)
    return list(first.values())


def _reranked(reranker: Reranker, query: str, ranking: Sequence[Found], texts: Mapping[str, str]) -> list[Found]:
    """The candidates that have a text by the reranker's scores, ties by id; it reads title and sections too."""
    known = [point for point in ranking if point.passage_id in texts]
    told = [
        embedded_text(point.payload["title"], point.payload["section_path"], texts[point.passage_id]) for point in known
    ]
    scores = reranker.score(query, told).tolist()
    scored = [replace(point, score=score) for point, score in zip(known, scores, strict=True)]
    return sorted(scored, key=lambda point: (-point.score, point.passage_id))


def _pages(rankings: Sequence[Sequence[Found]], asked: Asked) -> list[Sequence[Found]]:
    ordered = [_papers_best(ranking) if asked.per_paper else ranking for ranking in rankings]
    return [ranking[asked.offset : asked.wanted] for ranking in ordered]


def _hits(page: Sequence[Found], texts: Mapping[str, str], query: str, layout: Layout) -> list[Hit]:
    return [_hit(point, texts[point.passage_id], query, layout) for point in page if point.passage_id in texts]


def _hit(point: Found, text: str, query: str, layout: Layout) -> Hit:
    payload = point.payload
    embedded = embedded_text(payload["title"], payload["section_path"], text, layout.form)
    return Hit(
        score=point.score,
        relevance=relevance_of(layout.model, query, embedded, point.cosine),
        arxiv_id=payload["arxiv_id"],
        title=payload["title"],
        section_path=tuple(payload["section_path"]),
        anchor=payload["anchor"],
        kind=payload["kind"],
        month=payload["month"],
        text=text,
        passage_id=point.passage_id,
        categories=tuple(payload["categories"]),
        primary_category=payload["primary_category"],
        subset=payload["subset"],
        grade=payload["grade"],
        url=abstract_url(payload["arxiv_id"]),
        passage_url=passage_url(payload["arxiv_id"], payload["anchor"]),
    )


def _explain_nothing(index: PassageIndex, asked: Asked) -> None:
    """Raise where a search finds nothing because there is nothing, or nothing of a category or kind.

    Asked only then: counting and listing values cost more than a search.
    """
    if index.count() == 0:
        raise MissingInput(_nothing_in(index.name, "is empty"))
    for category in asked.categories:
        _insist_on_category(index, category)
    kinds = index.values("kind") if asked.kinds else []
    for kind in asked.kinds:
        if kind not in kinds:
            raise SettingError(f"--kind: no passage is of the kind {kind}; the index holds {', '.join(kinds)}")


def _insist_on_category(index: PassageIndex, category: str) -> None:
    archive, dot, _ = category.partition(".")
    archives = index.values("archives")
    if archive not in archives:
        raise SettingError(f"--category: no passage is of the archive {archive}; the index holds {', '.join(archives)}")
    of_archive = [each for each in index.values("categories") if each.partition(".")[0] == archive]
    if dot and category not in of_archive:
        raise SettingError(
            f"--category: no passage is of the category {category}; of {archive}, there are {', '.join(of_archive)}"
        )
