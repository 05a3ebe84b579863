"""Search for a page of results: the form, passages by paper, and the sentences that fit best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.references.citation_index import CitingPaper
from pipeline.embedding.lexical import term_id, words_of
from pipeline.errors import SettingError
from pipeline.index.output import Hit
from pipeline.index.search_options import DEEPEST, MOST, SearchOptions, parse_years
from pipeline.index.typed_queries import search_typed
from pipeline.serve.site import LONGEST_QUERY, Site

PASSAGES_PER_PAGE = 20
_MOST_SENTENCES = 2
# A second sentence is marked only if it is nearly as good as the best.
_LEAST_OF_BEST = 0.7
# Characters of a passage in a list of results.
_EXCERPT = 480
_WHOLE_KINDS = ("table", "list", "algorithm")
_ADDRESS_NAMES = {"first_month": "from", "last_month": "to"}
"""Fields whose names in an address are words of Python."""


class SearchForm(BaseModel):
    """A search as the form and an address have it; empty texts are absent."""

    model_config = ConfigDict(
        frozen=True,
        str_strip_whitespace=True,
        alias_generator=lambda name: _ADDRESS_NAMES.get(name, name),
        validate_by_name=True,
    )

    q: str = Field(
        default="",
        max_length=LONGEST_QUERY,
        description="words, a paragraph, or an arXiv id, DOI or address of a paper",
    )
    category: tuple[str, ...] = Field(default=(), description="category (cs.CL) or archive (cs)")
    kind: tuple[str, ...] = Field(default=(), description="kind of passage, such as table")
    severity: tuple[str, ...] = Field(
        default=(), description="severity of the page in the dump, such as no_problem"
    )
    grade: str = Field(default="", description="worst grade of a page, A to D")
    first_month: str = Field(default="", description="first month, YYYY-MM")
    last_month: str = Field(default="", description="last month, YYYY-MM")
    author: tuple[str, ...] = Field(default=(), description="whole name or family name")
    venue: str = Field(default="", description="words of the journal reference or comment")
    year: str = Field(default="", description="2023, 2020..2023, 2020.. or ..2023")
    page: int = Field(default=1, ge=1, le=DEEPEST, description="page of results")
    limit: int = Field(default=PASSAGES_PER_PAGE, ge=1, le=MOST, description="passages of a page")
    all: bool = Field(default=False, description="passages that do not fit the query too")

    @property
    def filters(self) -> list[tuple[str, str]]:
        """The filters that are set, by the names of the address."""
        return [
            (name, value)
            for name, value in self.pairs()
            if name not in ("q", "page", "limit", "all")
        ]

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the fields that differ from their default, for an address."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.model_dump(by_alias=True, exclude_defaults=True).items():
            texts = value if isinstance(value, tuple) else ("1" if value is True else str(value),)
            pairs += [(name, text) for text in texts]
        return pairs

    def options(self) -> SearchOptions:
        """The options of the search. Raises SettingError for a wrong value."""
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


_SEPARATORS: Mapping[str, str | None] = {
    "author": ";",
    "category": None,
    "kind": ",",
    "severity": ",",
}
"""What separates several values in one field of the form; white space for None."""


def parse_form(pairs: Sequence[tuple[str, str]]) -> SearchForm:
    """The search of an address; empty values count as absent, as a form sends them.

    Raises SettingError for an unknown name, a wrong number, or a query that is too long.
    """
    names = [field.alias for field in SearchForm.model_fields.values()]
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name not in names:
            raise SettingError(
                f"{name[:50]!r} is not a parameter of a search: there are"
                f" {', '.join(map(str, names))}"
            )
        if name in _SEPARATORS:
            parts = [part.strip() for part in text.split(_SEPARATORS[name])]
            values[name] = (*values.get(name, ()), *filter(None, parts))
        elif text.strip():
            values[name] = text
    try:
        return SearchForm.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingError(
            f"{first['loc'][0]} is {str(first['input'])[:50]!r}: {first['msg']}"
        ) from error


@dataclass(frozen=True, slots=True)
class RankedPassage(Hit):
    """A hit with its best sentences. text: without citation marks. best_sentences: parts of the
    text; none where no sentence shares a word with the query. excerpt: the best sentence and those
    around it; all of a table.
    """

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

    similar_to: the paper that the query names, if it names one; it comes first, and then what is
    similar. note: how the query was read; empty for an ordinary search. cited_by: who cites the
    named paper, where the corpus does not hold it. first: number of the page's first
    passage. unfit: near passages that are left out because they do not fit the query. has_more:
    whether there may be a next page.
    """

    query: str
    similar_to: str | None
    note: str
    cited_by: tuple[CitingPaper, ...]
    papers: tuple[PaperHits, ...]
    first: int
    count: int
    unfit: int
    has_more: bool


def run_search(site: Site, form: SearchForm, start: int | None = None) -> SearchResults:
    """Search for a page of results. start: number of its first passage, in place of the form's.

    Raises SettingError for a wrong parameter, IndexInUse if another process has the index, and as
    `search` does.
    """
    options = form.options()
    if start is not None:
        options = replace(options, offset=start).checked()
    with site.searches:
        results = search_typed(site.workspace, [form.q], options)[0]
    ranking = results.passages
    hits = [Hit.of(scored) for scored in ranking if form.all or scored.fits]
    return SearchResults(
        query=form.q,
        similar_to=results.paper,
        note=results.note,
        cited_by=results.cited_by,
        papers=group_by_paper(rank_sentences(results.text, hits)),
        first=options.offset + 1,
        count=len(hits),
        unfit=len(ranking) - len(hits),
        # Where most of a page does not fit, nothing better follows.
        has_more=len(ranking) == options.limit and 2 * len(hits) >= len(ranking),
    )


def group_by_paper(passages: Sequence[RankedPassage]) -> tuple[PaperHits, ...]:
    """The passages by paper, in the order of each paper's best."""
    by_paper: dict[str, list[RankedPassage]] = {}
    for passage in passages:
        by_paper.setdefault(passage.arxiv_id, []).append(passage)
    papers = []
    for arxiv_id, hits in by_paper.items():
        best = hits[0]
        papers.append(
            PaperHits(arxiv_id, best.title, best.month, best.categories, best.url, tuple(hits))
        )
    return tuple(papers)


def rank_sentences(query: str, hits: Sequence[Hit]) -> list[RankedPassage]:
    """The hits with their best sentences: those with most of the query's stems, rare ones first."""

    def stems_of(text: str) -> set[int]:
        return set(map(term_id, words_of(text)))

    stems = stems_of(query)
    texts = [without_markers(hit.text) for hit in hits]
    split = [split_sentences(text) for text in texts]
    shared = []
    having: Counter[int] = Counter()
    for sentences in split:
        parts = [stems & stems_of(sentence) for sentence in sentences]
        shared.append(parts)
        having.update(set[int]().union(*parts))
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
    """The places of the best sentences, in order. shared: the query's stems in each sentence."""
    scores = [sum(weights[stem] for stem in stems) for stems in shared]
    least = _LEAST_OF_BEST * max(scores, default=0.0)
    good = [place for place, score in enumerate(scores) if score > 0 and score >= least]
    return sorted(sorted(good, key=lambda place: -scores[place])[:_MOST_SENTENCES])


def _sentences_around(sentences: Sequence[str], place: int) -> str:
    """The sentence at a place with those after it, then before it, up to a length."""
    first, last, length = place, place, len(sentences[place])
    while length < _EXCERPT and last + 1 < len(sentences):
        last += 1
        length += len(sentences[last])
    while length < _EXCERPT and first > 0:
        first -= 1
        length += len(sentences[first])
    before, after = "… " * (first > 0), " …" * (last + 1 < len(sentences))
    return f"{before}{' '.join(sentences[first : last + 1])}{after}"
