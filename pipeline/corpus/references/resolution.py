"""The arXiv paper that an item cites: by identifier, DOI, or title, year and author."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from rapidfuzz import fuzz

from pipeline.corpus.references.title_index import TitleCandidate, TitleIndex
from pipeline.identity.identifiers import normalize_arxiv_id, split_dois
from pipeline.identity.titles import (
    WINDOW,
    doi_key,
    fold,
    title_keys,
    title_words,
    window_keys,
    words_of,
)

By = Literal["identifier", "doi", "title"]

# rapidfuzz.fuzz.ratio of folded titles without blanks. Of the 313,000 pairs among 792 different
# titles in the project's test data, the closest that are two works reach 90 (Adaptive / Fast
# Nearest Neighbor Machine Translation), but for parts I and II of one paper at 99, so numbers must
# agree. One wrong letter in a title of 50 costs 2, a hyphen nothing.
SAME_TITLE = 95.0
# A preprint is cited with the year of its posting or of its printing: under an equal title that is
# up to six years later (a journal) or earlier (a scan), under one that is only close two.
YEARS_APART_EQUAL, YEARS_APART_CLOSE = 6, 2
# Several works share a shorter title ("Deep learning"): it proves nothing without an author.
WORDS_WITHOUT_AUTHOR = WINDOW
# The items of the 21 real papers hold 15 to 60 words, the longest, of 530 authors, 1,200.
_RAW_WORDS = 2_000

_WORD = re.compile(r"[^\W_]+")
_ARXIV_DOI = "10.48550/arxiv."
_ROMAN = frozenset({"i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"})
_AFTER_TITLE = frozenset(".,;?!\"”’'»)]")


@dataclass(frozen=True, slots=True)
class Resolution:
    """The cited paper and how it was found; both None where it was not."""

    arxiv_id: str | None = None
    by: By | None = None


@dataclass(frozen=True)
class _Item:
    """A bibliography item that names no identifier, folded once for all comparisons."""

    row: Mapping[str, Any]
    citing: str

    @cached_property
    def words(self) -> list[str]:
        return title_words(self.row["title"] or "")

    @cached_property
    def raw(self) -> str:
        return fold(self.row["raw"] or "")

    @cached_property
    def raw_words(self) -> list[str]:
        return words_of(self.raw)[:_RAW_WORDS]

    @cached_property
    def raw_spans(self) -> list[tuple[int, int]]:
        """Where each of the raw words begins and ends in the raw text."""
        return [word.span() for word in _WORD.finditer(self.raw)]

    @cached_property
    def known_words(self) -> frozenset[str]:
        return frozenset(self.raw_words).union(title_words(" ".join(self.row["authors"] or ())))

    @cached_property
    def dois(self) -> list[str]:
        return split_dois(self.row["doi"])

    def keys(self) -> np.ndarray:
        """Keys of its DOIs, its title, and titles that may be in its text (uint64)."""
        keys = [*map(doi_key, self.dois), *title_keys(self.words)]
        return np.concatenate([np.array(keys, np.uint64), window_keys(self.raw_words)])


def resolve_references(
    titles: TitleIndex, items: Sequence[tuple[Mapping[str, Any], str]]
) -> list[Resolution]:
    """The papers that items (title, raw, authors, year, doi, arxiv_id), each with its citing paper,
    cite.

    An identifier is accepted whether or not the index holds it; a DOI and a title must be in the
    index. A paper never cites itself: an item that says so is resolved to nothing. One look-up
    costs the same for one item as for thousands.
    """
    resolutions = [_by_identifier(item) for item, _ in items]
    others = {
        number: _Item(item, citing)
        for number, (item, citing) in enumerate(items)
        if resolutions[number] is None
    }
    for number, papers in titles.candidates(
        {number: item.keys() for number, item in others.items()}
    ):
        item = others[number]
        resolutions[number] = (
            _by_doi(papers, item)
            or _best(papers, item, _title_score)
            or _best(papers, item, _raw_score)
        )
    return [
        Resolution() if resolution is None or resolution.arxiv_id == citing else resolution
        for resolution, (_, citing) in zip(resolutions, items, strict=True)
    ]


def keys_of_items(items: Iterable[Mapping[str, Any]]) -> np.ndarray:
    """The keys that `resolve_references` looks up for some items (uint64)."""
    others = (_Item(item, citing="") for item in items if _by_identifier(item) is None)
    return np.concatenate([np.empty(0, np.uint64), *(item.keys() for item in others)])


def _by_identifier(item: Mapping[str, Any]) -> Resolution | None:
    arxiv_id = normalize_arxiv_id(item["arxiv_id"] or "") or _id_in_doi(item["doi"])
    return Resolution(arxiv_id, "identifier") if arxiv_id else None


def _by_doi(papers: Sequence[TitleCandidate], item: _Item) -> Resolution | None:
    """The paper with the item's first known DOI; of several, the smallest identifier."""
    for doi in item.dois:
        with_doi = [paper.arxiv_id for paper in papers if doi in paper.dois.split()]
        if with_doi:
            return Resolution(min(with_doi), "doi")
    return None


def _id_in_doi(doi: str | None) -> str | None:
    for part in split_dois(doi):
        if part.startswith(_ARXIV_DOI):
            arxiv_id = normalize_arxiv_id(part.removeprefix(_ARXIV_DOI))
            if arxiv_id:
                return arxiv_id
    return None


def _best(
    papers: Sequence[TitleCandidate],
    item: _Item,
    score: Callable[[TitleCandidate, _Item], float],
) -> Resolution | None:
    """The paper of the likest title, of equals that of the nearest year, then the smallest
    identifier; never the citing paper.

    None where no title is like enough; a resolution to nothing where the citing paper's alone is.
    """
    scored = [(score(paper, item), paper) for paper in papers]
    fitting = [pair for pair in scored if pair[0] > 0]
    others = [pair for pair in fitting if pair[1].arxiv_id != item.citing]
    if not others:
        return Resolution() if fitting else None
    best = min(
        others, key=lambda pair: (-pair[0], _years_apart(pair[1], item) or 0, pair[1].arxiv_id)
    )
    return Resolution(best[1].arxiv_id, "title")


def _title_score(paper: TitleCandidate, item: _Item) -> float:
    """Likeness of the titles in percent where paper and item agree otherwise, else 0."""
    words = paper.words
    score = fuzz.ratio("".join(words), "".join(item.words), score_cutoff=SAME_TITLE)
    if not score or _numbers(words) != _numbers(item.words):
        return 0.0
    return score if _agree(paper, item, equal=score == 100) else 0.0


def _raw_score(paper: TitleCandidate, item: _Item) -> float:
    """Length of the paper's title where it is whole between two stops of the item as printed, and
    both agree, else 0.
    """
    words = paper.words
    if len(words) < WORDS_WITHOUT_AUTHOR or not item.known_words.issuperset(words):
        return 0.0
    inside = _stands_in(words, item) and _agree(paper, item, equal=True)
    return float(len("".join(words))) if inside else 0.0


def _stands_in(words: list[str], item: _Item) -> bool:
    """Whether the words are in the item in order between two stops, as a whole title."""
    for first, word in enumerate(item.raw_words):
        if word == words[0] and item.raw_words[first : first + len(words)] == words:
            before = item.raw[: item.raw_spans[first][0]].rstrip()
            after = item.raw[item.raw_spans[first + len(words) - 1][1] :].lstrip()
            begins = not before or not before[-1].isalnum()
            ends = not after or after[0] in _AFTER_TITLE
            if begins and ends:
                return True
    return False


def _numbers(words: list[str]) -> list[str]:
    return [
        number
        for word in words
        for number in ([word] if word in _ROMAN else re.findall(r"\d+", word))
    ]


def _agree(paper: TitleCandidate, item: _Item, *, equal: bool) -> bool:
    """Whether an author and the year leave it possible that two like titles are one work."""
    if paper.surnames and item.known_words.isdisjoint(paper.surnames.split()):
        return False
    if not paper.surnames and len(paper.words) < WORDS_WITHOUT_AUTHOR:
        return False
    apart = _years_apart(paper, item)
    if apart is None:
        return equal
    return apart <= (YEARS_APART_EQUAL if equal else YEARS_APART_CLOSE)


def _years_apart(paper: TitleCandidate, item: _Item) -> int | None:
    return None if item.row["year"] is None else abs(item.row["year"] - paper.year)
