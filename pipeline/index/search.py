"""Search: encode queries, rank passages of the live collection, and add their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, get_args

from rapidfuzz import fuzz, process

from pipeline import tables
from pipeline.corpus.nouns import Passage
from pipeline.corpus.paper_index import authors_like, authors_named
from pipeline.corpus.passages.text import FORM, embedded_text
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import lexical_query, term_id, terms_of
from pipeline.embedding.minilm import NAME as MINILM
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.identity.people import author_keys
from pipeline.identity.titles import title_words
from pipeline.index.fusion import rank, with_payloads
from pipeline.index.opening import live_index, missing_index
from pipeline.index.papers import read_texts
from pipeline.index.passage_index import (
    MONTH_NUMBER,
    MOST_VALUES,
    PassageIndex,
    Quantization,
    QueryVectors,
    ScoredPoint,
    month_number,
)
from pipeline.index.scored import Scored
from pipeline.index.search_options import FIRST_DEPTH, MOST, SearchOptions, check_queries

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Layout
    from pipeline.settings import Settings

# The least evidence that a passage fits a query, and in it the weight of the words that they share.
# Fitted for MiniLM on SciFact's training claims and DeepScholar-Bench (`benchmarks.retrieval`).
_LEAST_EVIDENCE, _COVERAGE_WEIGHT = 0.52, 0.4
# Options whose values the index can list, by their field, and how many near ones a message names.
_LISTED = {"category_keys": "--category", "kind": "--kind", "venue": "--venue"}
_SUGGESTED = 5


def search(workspace: Workspace, query: str, **options: Any) -> list[Scored[Passage]]:
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
) -> list[list[Scored[Passage]]]:
    """The passages of several queries, encoded and searched together. Raises as `search` does."""
    checked = options.checked()
    check_queries(queries)
    if not queries:
        return []
    return search_index(workspace, live_index(workspace), queries, checked)


def search_index(
    workspace: Workspace,
    index: PassageIndex,
    queries: Sequence[str],
    options: SearchOptions,
) -> list[list[Scored[Passage]]]:
    """As `search_many`, in one collection. options: as `SearchOptions.checked` returns them."""
    batch = QueryBatch(workspace, index, queries, options)
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
    ) -> None:
        """Arguments and errors as those of `search_index`."""
        layout = index.layout()
        if layout is None:  # another process has dropped it
            raise missing_index(workspace)
        self.options = options = _with_whole_names(workspace, options)
        self.layout = layout
        self._workspace = workspace
        self._index = index
        self._queries = queries
        embedder = _embedder_of(layout, workspace.settings)
        self._vectors = _query_vectors(embedder, queries, options)

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
    ) -> list[list[Scored[Passage]]]:
        """The passages of points of these queries, with texts; those whose text or payload is gone
        are left out.
        """
        points = with_payloads(self._index, rankings)
        texts = read_texts(self._workspace, (point for ranking in points for point in ranking))
        return [
            _with_texts(ranking, texts, self._queries[number], self.layout.model)
            for number, ranking in zip(numbers, points, strict=True)
        ]

    def of_paper(self, number: int, paper: str) -> list[ScoredPoint]:
        """The points of one paper, best first; none where the options leave them out."""
        own = replace(self.options, papers=(paper,), without_papers=())
        return rank(self._index, [self._vectors[number]], own.ranking(MOST))[0]


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


def _with_whole_names(workspace: Workspace, options: SearchOptions) -> SearchOptions:
    """The options with each author who is named otherwise than by whole or family name under the
    whole names that fit. Raises SettingError for one whom the corpus lacks.
    """
    names: list[str] = []
    for name in options.authors:
        authors = authors_named(workspace, name)
        if not authors:
            near = ", ".join(authors_like(workspace, name)[:_SUGGESTED])
            raise SettingError(f"--author: no author has the name {name!r}; near: {near or 'none'}")
        key = " ".join(title_words(name))
        names += [name] if any(key in author_keys(author) for author in authors) else authors
    return replace(options, authors=tuple(names))


def encode_queries(embedder: Embedder, queries: Sequence[str]) -> list[QueryVectors]:
    """The vectors of queries: dense and lexical, and the model's sparse ones where it has them."""
    return [
        QueryVectors(
            vectors.dense,
            lexical_query(query),
            vectors.sparse if embedder.has_sparse else None,
        )
        for query, vectors in zip(queries, embedder.encode_queries(queries), strict=True)
    ]


def _query_vectors(
    embedder: Embedder, queries: Sequence[str], options: SearchOptions
) -> list[QueryVectors]:
    """The vectors that a search needs: by words alone, the model does not run."""
    if options.by != "lexical":
        return encode_queries(embedder, queries)
    import numpy as np

    none = np.zeros(0, np.float32)
    return [QueryVectors(none, lexical_query(query)) for query in queries]


def _embedder_of(layout: Layout, settings: Settings) -> Embedder:
    """The model of the collection's vectors, whatever model the settings name for new ones."""
    if layout.form != FORM:
        raise PermanentFailure(
            f"the index holds vectors of an earlier version ({layout.describe()}), which embedded"
            " other headings with a passage: run citeloom reindex"
        )
    if layout.quantization not in get_args(Quantization):
        raise PermanentFailure(
            f"the index holds vectors of an earlier version ({layout.describe()}), in a compression"
            " that no search reads any more: run citeloom reindex"
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
    page: Sequence[ScoredPoint], texts: Mapping[str, str], query: str, model: str
) -> list[Scored[Passage]]:
    """The passages of a page whose texts are there, and whether each fits the query."""
    passages = []
    for point in page:
        text = texts.get(point.passage_id)
        if text is None:
            continue
        row = {**point.payload, "passage_id": point.passage_id, "text": text}
        passage = Passage.from_row(row)
        is_fit = fits(model, query, (passage.title, own_words(passage)), point.cosine)
        passages.append(Scored(passage, point.score, is_fit))
    return passages


def own_words(passage: Passage) -> str:
    """The text that is embedded for a passage, without the title of its paper."""
    return embedded_text("", passage.section_path, passage.text)


def fits(model: str, query: str, texts: Sequence[str], cosine: float | None) -> bool:
    """Whether a passage fits a query: by the cosine of its vector, and the share of the query's
    words that it has, so that a name that the model does not know counts too.

    texts: what was embedded, in parts. cosine: None if unknown; then, and with other models than
    MiniLM, every passage fits: their cosines lie in other ranges, which were not measured.
    """
    if model != MINILM or cosine is None:
        return True
    return cosine + _COVERAGE_WEIGHT * coverage(query, texts) >= _LEAST_EVIDENCE


def coverage(query: str, texts: Sequence[str]) -> float:
    """The share of a query's distinct stems that some texts have; 0 for a query without words."""
    stems = _stems_of(query)
    found = stems.intersection(chain.from_iterable(map(_stems_of, texts)))
    return len(found) / len(stems) if stems else 0.0


# The passages of a page are compared with its query twice: by themselves, and under their titles.
@lru_cache(maxsize=512)
def _stems_of(text: str) -> frozenset[int]:
    return frozenset(map(term_id, terms_of(text)))


def explain_nothing(workspace: Workspace, index: PassageIndex, options: SearchOptions) -> None:
    """Raise where a search finds nothing because the index is empty, or because no passage has the
    value of a filter; the message names values that are near.

    Only then: to count and list values costs more than a search. Raises MissingInput or
    SettingError.
    """
    if index.count() == 0:
        raise MissingInput(
            f"the collection {index.name} is empty: run citeloom run --months all --until index"
        )
    months = workspace.root.months(tables.PASSAGES)
    numbers = {
        MONTH_NUMBER: [month_number(month) for month in months],
        "year": [int(month[:4]) for month in months],
    }
    for condition in options.conditions():
        option = _LISTED.get(condition.field)
        known = index.values(condition.field) if option else []
        if 0 < len(known) < MOST_VALUES and not set(condition.values) & set(known):
            near = process.extract(condition.values[0], known, scorer=fuzz.ratio, limit=_SUGGESTED)
            raise SettingError(
                f"{option}: no passage has {' or '.join(condition.values)}; near:"
                f" {', '.join(value for value, *_ in near)}"
            )
        low, high = condition.low or 0, condition.high or month_number("9999-12")
        span = numbers.get(condition.field)
        if span and not any(low <= number <= high for number in span):
            raise SettingError(
                "--from, --to, --year: the corpus has no paper of this time; its months are"
                f" {months[0]} to {months[-1]}"
            )
