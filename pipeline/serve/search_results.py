"""Search for a page of results: parameters of a request, passages by paper, and the sentences that fit best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pipeline.arxiv.identifiers import normalize_arxiv_id
from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.embedding.lexical import term_id, words_of
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.search import Hit, search_many
from pipeline.index.search_options import SearchOptions, parse_years
from pipeline.serve.index_access import IndexAccess

PASSAGES_PER_PAGE = 20
# A query of one page of text. The models read some 500 words of it.
LONGEST_QUERY = 10_000
_MOST_SENTENCES = 2
# A second sentence is marked only if it is nearly as good as the best.
_LEAST_OF_BEST = 0.7
# Characters of a passage in a list of results.
_EXCERPT = 480
_WHOLE_KINDS = ("table", "list", "algorithm")


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """The parameters of a search, as an address has them.

    q: words, a paragraph, or a paper's arXiv id for similar papers. category, kind, severity, author: any of these.
    grade: of the page, or better. from, to: months, YYYY-MM. year: 2023, 2020..2023, 2020.. or ..2023. page: from 1.
    limit: passages of a page. all: also the nearest passages that do not fit the query.
    """

    q: str = ""
    category: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    grade: str = ""
    first_month: str = ""
    last_month: str = ""
    author: tuple[str, ...] = ()
    venue: str = ""
    year: str = ""
    page: int = 1
    limit: int = PASSAGES_PER_PAGE
    all: bool = False

    @property
    def filters(self) -> list[tuple[str, str]]:
        """The filters that are set, by the names of the address."""
        return [(name, value) for name, value in self.pairs() if name not in ("q", "page", "limit", "all")]

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the parameters that differ from their default, for an address."""
        pairs: list[tuple[str, str]] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            name = ADDRESS_NAMES.get(field.name, field.name)
            values = value if isinstance(value, tuple) else ("1" if value is True else str(value),)
            pairs += [(name, text) for text in values]
        return pairs

    def options(self) -> SearchOptions:
        """The options of the search. Raises SettingError for a wrong value."""
        if self.page < 1:
            raise SettingError(f"page {self.page}: the first page is 1")
        first_year, last_year = parse_years(self.year or None)
        return SearchOptions(
            limit=self.limit,
            offset=(self.page - 1) * self.limit,
            categories=self.category,
            first_month=self.first_month or None,
            last_month=self.last_month or None,
            kinds=self.kind,
            subsets=self.severity,
            worst_grade=self.grade or None,
            authors=self.author,
            venue=self.venue,
            first_year=first_year,
            last_year=last_year,
        ).checked()


ADDRESS_NAMES = {"first_month": "from", "last_month": "to"}
"""Fields whose names in an address are words of Python."""


_SEPARATORS: Mapping[str, str | None] = {"author": ";", "category": None}
"""What separates several values in one field of the form; white space for None."""


def parse_parameters(pairs: Sequence[tuple[str, str]]) -> SearchParameters:
    """The parameters of an address; empty values count as absent, as a form sends them.

    Raises SettingError for an unknown name, a number that is none, or a query that is too long.
    """
    names = {ADDRESS_NAMES.get(field.name, field.name): field for field in fields(SearchParameters)}
    values: dict[str, Any] = {}
    for name, text in pairs:
        field = names.get(name)
        if field is None:
            raise SettingError(f"{name[:50]!r} is not a parameter of a search: there are {', '.join(names)}")
        if not text.strip():
            continue
        if field.default == ():
            several = [part.strip() for part in text.split(_SEPARATORS.get(name, ",")) if part.strip()]
            values[field.name] = (*values.get(field.name, ()), *several)
        elif field.default is False:
            values[field.name] = text not in ("0", "false")
        elif isinstance(field.default, int):
            values[field.name] = _number(name, text)
        else:
            values[field.name] = text.strip()
    if len(values.get("q", "")) > LONGEST_QUERY:
        raise SettingError(f"q has {len(values['q']):,} characters: give at most {LONGEST_QUERY:,}")
    return SearchParameters(**values)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise SettingError(f"{name} is {text[:50]!r}: give a whole number")
    return int(text)


@dataclass(frozen=True, slots=True)
class RankedPassage(Hit):
    """A hit with its best sentences. text: without citation marks. best_sentences: parts of the text; none where no
    sentence shares a word with the query. excerpt: the best sentence and those around it; all of a table."""

    best_sentences: tuple[str, ...] = ()
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class PaperHits:
    """A paper with its passages on a page of results, best first. url: its page on arXiv."""

    arxiv_id: str
    title: str
    month: str
    categories: tuple[str, ...]
    url: str
    passages: tuple[RankedPassage, ...]


@dataclass(frozen=True, slots=True)
class SearchResults:
    """A page of results: passages grouped by paper, in the order of each paper's best passage.

    similar_to: the paper that the query names, if it names one. first: number of the page's first passage. unfit: near
    passages that are left out because they do not fit the query. has_more: whether there may be a next page.
    """

    query: str
    similar_to: str | None
    papers: tuple[PaperHits, ...]
    first: int
    count: int
    unfit: int
    has_more: bool


def run_search(
    workspace: Workspace, access: IndexAccess, parameters: SearchParameters, start: int | None = None
) -> SearchResults:
    """Search for a page of results. start: number of its first passage, from 0, in place of the parameters' page.

    Raises SettingError for a wrong parameter, IndexInUse if another process has the index, and as `search` does.
    """
    options, text, similar_to = parameters.options(), parameters.q, None
    if start is not None:
        options = replace(options, offset=start).checked()
    with access.searching():
        paper = normalize_arxiv_id(text)
        if paper is not None:
            from pipeline.index.papers import read_like

            text, similar_to = read_like(workspace, paper)
            options = replace(options, without_papers=(similar_to,))
        with access.turn:
            hits = search_many(workspace, [text], options)[0]
    fitting = hits if parameters.all else [hit for hit in hits if hit.relevance != "none"]
    return SearchResults(
        query=parameters.q,
        similar_to=similar_to,
        papers=group_by_paper(rank_sentences(text, fitting)),
        first=options.offset + 1,
        count=len(fitting),
        unfit=len(hits) - len(fitting),
        # Where most of a page does not fit, nothing better follows.
        has_more=len(hits) == options.limit and 2 * len(fitting) >= len(hits),
    )


def group_by_paper(passages: Sequence[RankedPassage]) -> tuple[PaperHits, ...]:
    """The passages by paper, in the order of each paper's best."""
    by_paper: dict[str, list[RankedPassage]] = {}
    for passage in passages:
        by_paper.setdefault(passage.arxiv_id, []).append(passage)
    return tuple(
        PaperHits(arxiv_id, best[0].title, best[0].month, best[0].categories, best[0].url, tuple(best))
        for arxiv_id, best in by_paper.items()
    )


def rank_sentences(query: str, hits: Sequence[Hit]) -> list[RankedPassage]:
    """The hits with their best sentences: those with most of the query's stems, rare ones among the hits first."""
    stems = set(map(term_id, words_of(query)))
    texts = [without_markers(hit.text) for hit in hits]
    split = [split_sentences(text) for text in texts]
    shared = [[stems & set(map(term_id, words_of(sentence))) for sentence in sentences] for sentences in split]
    having = Counter(stem for parts in shared for stem in set[int]().union(*parts))
    weights = {stem: math.log(1 + len(texts) / having[stem]) for stem in having}
    return [
        _ranked(hit, text, sentences, _best_places(parts, weights))
        for hit, text, sentences, parts in zip(hits, texts, split, shared, strict=True)
    ]


def _ranked(hit: Hit, text: str, sentences: Sequence[str], best: Sequence[int]) -> RankedPassage:
    """The hit with its best sentences. best: their places, in the order of the text."""
    is_whole = hit.kind in _WHOLE_KINDS or len(text) <= _EXCERPT
    values = {field.name: getattr(hit, field.name) for field in fields(Hit)}
    return RankedPassage(
        **{**values, "text": text},
        best_sentences=tuple(sentences[place] for place in best),
        excerpt=text if is_whole else _sentences_around(sentences, best[0] if best else 0),
    )


def _best_places(shared: Sequence[set[int]], weights: Mapping[int, float]) -> list[int]:
    """The places of the best sentences, in the order of the text. shared: the query's stems in each sentence."""
    scores = [sum(weights[stem] for stem in stems) for stems in shared]
    least = _LEAST_OF_BEST * max(scores, default=0.0)
    good = [place for place, score in enumerate(scores) if score > 0 and score >= least]
    return sorted(sorted(good, key=lambda place: -scores[place])[:_MOST_SENTENCES])


def _sentences_around(sentences: Sequence[str], place: int) -> str:
    """The sentence at a place with those after it, then those before it, until the excerpt is long enough."""
    first, last, length = place, place, len(sentences[place])
    while length < _EXCERPT and last + 1 < len(sentences):
        last += 1
        length += len(sentences[last])
    while length < _EXCERPT and first > 0:
        first -= 1
        length += len(sentences[first])
    before, after = "… " * (first > 0), " …" * (last + 1 < len(sentences))
    return f"{before}{' '.join(sentences[first : last + 1])}{after}"
