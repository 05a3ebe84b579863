"""Search: encode queries, rank passages of the live collection, and add their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.arxiv.titles import title_words
from pipeline.corpus.passages.text import FORM, embedded_text
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import lexical_query, words_of
from pipeline.embedding.minilm import NAME as MINILM
from pipeline.errors import PermanentFailure
from pipeline.index.author_queries import with_whole_names
from pipeline.index.fusion import rank, with_payloads
from pipeline.index.no_results import explain_nothing
from pipeline.index.opening import live_index, missing_index
from pipeline.index.papers import read_texts
from pipeline.index.passage_index import PassageIndex, QueryVectors, ScoredPoint
from pipeline.index.relevance import coverage, relevance_of
from pipeline.index.scored import IndexedPassage, Scored
from pipeline.index.search_options import FIRST_DEPTH, SearchOptions, check_queries

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Layout
    from pipeline.settings import Settings


def search(workspace: Workspace, query: str, **options: Any) -> list[Scored[IndexedPassage]]:
    """The passages that fit a query best, best first. options: fields of `SearchOptions`, by name.

    Raises SettingError for a wrong option, or for a category or kind that no passage has;
    MissingInput if nothing is indexed; PermanentFailure if the collection's model is missing, or a
    table is broken; TransientFailure if the index does not answer or another process holds it.
    Creates no collection.
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
    batch = QueryBatch(workspace, index, queries, options, typed)
    numbers = range(len(queries))
    if options.per_paper:
        rankings = [
            [point for points in papers[options.offset : options.end] for point in points]
            for papers in PaperRankings(batch, passages=1).up_to(numbers, options.end)
        ]
    else:
        whole = batch.rank(numbers, options.depth())
        rankings = [ranking[options.offset : options.end] for ranking in whole]
    return batch.passages(numbers, rankings)


class QueryBatch:
    """Queries encoded for one collection, to be ranked together."""

    def __init__(
        self,
        workspace: Workspace,
        index: PassageIndex,
        queries: Sequence[str],
        options: SearchOptions,
        typed: Sequence[str] | None = None,
    ) -> None:
        """Arguments and errors as those of `search_index`."""
        layout = index.layout()
        if layout is None:  # another process has dropped it
            raise missing_index(workspace)
        self.options = options = with_whole_names(workspace, options)
        self.layout = layout
        self._workspace = workspace
        self._index = index
        self._queries = queries
        self._typed = queries if typed is None else typed
        words = [_with_typed_words(*pair) for pair in zip(queries, self._typed, strict=True)]
        embedder = _embedder_of(layout, workspace.settings)
        self._vectors = _query_vectors(embedder, queries, words, options)

    def __len__(self) -> int:
        return len(self._queries)

    def rank(self, numbers: Sequence[int], depth: int) -> list[list[ScoredPoint]]:
        """The `depth` best passages of these queries, best first; of their payloads, at least kind
        and arxiv_id.

        Raises MissingInput or SettingError where a filter leaves nothing, as `search` does.
        """
        vectors = [self._vectors[number] for number in numbers]
        rankings = rank(self._index, vectors, self.options.ranking(depth))
        if not any(rankings):
            explain_nothing(self._workspace, self._index, self.options)
        return rankings

    def passages(
        self, numbers: Sequence[int], rankings: Sequence[Sequence[ScoredPoint]]
    ) -> list[list[Scored[IndexedPassage]]]:
        """The passages of points of these queries, with texts and relevance; those whose text or
        payload is gone are left out.
        """
        points = with_payloads(self._index, rankings)
        texts = read_texts(self._workspace, (point for ranking in points for point in ranking))
        return [
            _with_texts(ranking, texts, self.readings(number), self.layout)
            for number, ranking in zip(numbers, points, strict=True)
        ]

    def readings(self, number: int) -> tuple[str, ...]:
        """The different spellings of a query, of which a passage has to fit one."""
        return tuple(dict.fromkeys((self._queries[number], self._typed[number])))


class PaperRankings:
    """The papers of queries in the order of their best passages, extended on request.

    A deeper ranking of passages may order those that came before anew. It only adds papers behind
    the ones that are there, so that pages of papers are parts of one list.
    """

    def __init__(self, batch: QueryBatch, passages: int) -> None:
        """passages: most of each paper."""
        self._batch = batch
        self._passages = passages
        self._papers: list[dict[str, list[ScoredPoint]]] = [{} for _ in range(len(batch))]
        # Passages that a query's papers are from; None where the index has no more.
        self._depths: list[int | None] = [0] * len(batch)

    def up_to(self, numbers: Sequence[int], count: int) -> list[list[list[ScoredPoint]]]:
        """The papers of these queries, at least `count` of each if there are so many, each with
        its best passages.
        """
        while short := [
            number
            for number in numbers
            if self._depths[number] is not None and len(self._papers[number]) < count
        ]:
            depth = min(self._depths[number] or 0 for number in short)
            self._extend([number for number in short if self._depths[number] == depth], depth)
        return [list(self._papers[number].values()) for number in numbers]

    def _extend(self, numbers: Sequence[int], depth: int) -> None:
        deeper = 2 * depth or FIRST_DEPTH
        for number, ranking in zip(numbers, self._batch.rank(numbers, deeper), strict=True):
            papers = self._papers[number]
            for paper, points in _by_paper(ranking).items():
                papers.setdefault(paper, points[: self._passages])
            self._depths[number] = deeper if len(ranking) >= deeper else None


def _by_paper(ranking: Sequence[ScoredPoint]) -> dict[str, list[ScoredPoint]]:
    papers: dict[str, list[ScoredPoint]] = {}
    for point in ranking:
        papers.setdefault(point.payload["arxiv_id"], []).append(point)
    return papers


def encode_queries(
    embedder: Embedder, queries: Sequence[str], words: Sequence[str] | None = None
) -> list[QueryVectors]:
    """The vectors of queries: dense and lexical, and the model's sparse ones where it has them.
    words: the texts of the lexical vectors; None for the queries.
    """
    words = queries if words is None else words
    return [
        QueryVectors(
            vectors.dense,
            lexical_query(text),
            vectors.sparse if embedder.has_sparse else None,
        )
        for text, vectors in zip(words, embedder.encode_queries(queries), strict=True)
    ]


def _query_vectors(
    embedder: Embedder, queries: Sequence[str], words: Sequence[str], options: SearchOptions
) -> list[QueryVectors]:
    """The vectors that a search needs: by words alone, the model does not run."""
    if options.by != "lexical":
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


def _embedder_of(layout: Layout, settings: Settings) -> Embedder:
    """The model of the collection's vectors, whatever model the settings name for new ones."""
    if layout.form != FORM:
        raise PermanentFailure(
            f"the index holds vectors of an earlier version ({layout.describe()}), which embedded"
            " other headings with a passage: run citeloom reindex"
        )
    if layout.model == MINILM:
        return make_embedder(settings.model_copy(update={"embedder": "minilm"}))
    if settings.embedder == "minilm" or model_name(settings) != layout.model:
        raise PermanentFailure(
            f"the index holds vectors of {layout.model}, and the settings name"
            f" {model_name(settings)}: set CITELOOM_EMBEDDER to the former (bge-m3, or its folder"
            " or hub name), or run citeloom reindex"
        )
    return make_embedder(settings)


def _with_texts(
    page: Sequence[ScoredPoint],
    texts: Mapping[str, str],
    readings: Sequence[str],
    layout: Layout,
) -> list[Scored[IndexedPassage]]:
    """The passages of a page whose texts are there, each with its relevance to the query.

    readings: the different spellings of the query, of which a passage has to fit one.
    """
    words = set(title_words(" ".join(readings)))
    passages = []
    for point in page:
        text = texts.get(point.passage_id)
        if text is None:
            continue
        passage = IndexedPassage.from_payload(point.passage_id, point.payload, text)
        embedded = embedded_text(passage.title, passage.section_path, text)
        # Beside others, an author's family name is a word of the paper too: Blei topic models.
        authors = point.payload.get("authors", ())
        named = (name for name in authors if words > set(name.split()))
        evidence = " ".join([embedded, *named])
        query = readings[0]
        if len(readings) > 1:
            query = max(readings, key=lambda reading: coverage(reading, evidence))
        relevance = relevance_of(layout.model, query, evidence, point.cosine)
        passages.append(Scored(passage, point.score, relevance))
    return passages
