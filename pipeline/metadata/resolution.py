"""Which arXiv paper a bibliography item cites: by identifier, else DOI, else title with year and author."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np
from rapidfuzz import fuzz

from pipeline.arxiv.identifiers import normalize_arxiv_id
from pipeline.metadata.dois import split_dois
from pipeline.metadata.segment import Candidate, Segment
from pipeline.metadata.titles import WINDOW, doi_key, fold, title_keys, title_words, window_keys, words_of

By = Literal["identifier", "doi", "title"]

# rapidfuzz.fuzz.ratio of folded titles without blanks. Of the 313,000 pairs among 792 different titles in the project's
# test data, the closest that are two works reach 90 (Adaptive / Fast Nearest Neighbor Machine Translation), but for
# parts I and II of one paper at 99, so numbers must agree. One wrong letter in a title of 50 costs 2, a hyphen nothing.
SAME_TITLE = 95.0
# A preprint is cited with the year of its posting or of its printing: under an equal title that is up to six years
# later (a journal) or earlier (a scan), under one that is only close two.
YEARS_APART_EQUAL, YEARS_APART_CLOSE = 6, 2
# Shorter titles ("Deep learning") are borne by several works: without an author to check they prove nothing.
WORDS_WITHOUT_AUTHOR = WINDOW
# The items of the 21 real papers hold 15 to 60 words, the longest, of 530 authors, 1,200.
_RAW_WORDS = 2_000

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
    def known_words(self) -> frozenset[str]:
        return frozenset(self.raw_words).union(title_words(" ".join(self.row["authors"] or ())))

    @property
    def year(self) -> int | None:
        year: int | None = self.row["year"]
        return year


class Catalogue:
    """The papers that a reference may be resolved to, from months of the table `metadata`."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = list(segments)

    def __len__(self) -> int:
        return sum(map(len, self._segments))

    def add(self, rows: Iterable[Mapping[str, Any]], month: str) -> None:
        """Take rows of a month (arxiv_id, title, authors, doi, published); those without a title only by their DOI."""
        self._segments.append(Segment.from_rows(rows, month))

    def resolve(self, item: Mapping[str, Any], citing: str) -> Resolution:
        """The paper that one item stands for; see `resolve_all`, which is far quicker by the item."""
        return self.resolve_all([(item, citing)])[0]

    def resolve_all(self, items: Sequence[tuple[Mapping[str, Any], str]]) -> list[Resolution]:
        """The papers that items (title, raw, authors, year, doi, arxiv_id), each with its citing paper, stand for.

        An identifier is believed whether or not the catalogue holds it; a DOI and a title must be in the catalogue. A
        paper never cites itself: an item that says so is resolved to nothing.
        """
        found: dict[int, Resolution] = {}
        asking = {number: _Item(item, citing) for number, (item, citing) in enumerate(items)}
        for way in (self._by_identifier, self._by_doi, self._by_title, self._by_text):
            found |= way({number: item for number, item in asking.items() if number not in found})
        return [_unless(citing, found.get(number, Resolution())) for number, (_, citing) in enumerate(items)]

    def _by_identifier(self, items: Mapping[int, _Item]) -> dict[int, Resolution]:
        told = (
            (number, normalize_arxiv_id(item.row["arxiv_id"] or "") or _id_in_doi(item.row["doi"]))
            for number, item in items.items()
        )
        return {number: Resolution(arxiv_id, "identifier") for number, arxiv_id in told if arxiv_id}

    def _by_doi(self, items: Mapping[int, _Item]) -> dict[int, Resolution]:
        dois = {number: split_dois(item.row["doi"]) for number, item in items.items()}
        found: dict[int, Resolution] = {}
        for number, papers in self._near({number: list(map(doi_key, some)) for number, some in dois.items()}):
            for doi in dois[number]:
                bearing = min((paper.arxiv_id for paper in papers if doi in paper.dois.split()), default=None)
                if bearing and number not in found:
                    found[number] = Resolution(bearing, "doi")
        return found

    def _by_title(self, items: Mapping[int, _Item]) -> dict[int, Resolution]:
        near = self._near({number: title_keys(item.words) for number, item in items.items()})
        scored = (
            (number, [(_title_score(paper, items[number]), paper) for paper in papers]) for number, papers in near
        )
        return {number: _best(pairs, items[number]) for number, pairs in scored if any(score for score, _ in pairs)}

    def _by_text(self, items: Mapping[int, _Item]) -> dict[int, Resolution]:
        """Where the parser found no title or another one: a whole title may stand in the item between its stops."""
        near = self._near({number: window_keys(item.raw_words) for number, item in items.items()})
        scored = ((number, [(_raw_score(paper, items[number]), paper) for paper in papers]) for number, papers in near)
        return {number: _best(pairs, items[number]) for number, pairs in scored if any(score for score, _ in pairs)}

    def _near(self, keys: Mapping[int, Sequence[int] | np.ndarray]) -> Iterator[tuple[int, list[Candidate]]]:
        """(item, papers that share a key with it) for the items that have any."""
        asked = np.concatenate([np.empty(0, np.uint64), *(np.asarray(some, dtype=np.uint64) for some in keys.values())])
        asking = np.repeat(np.fromiter(keys, dtype=np.int64, count=len(keys)), [len(some) for some in keys.values()])
        order = np.argsort(asked)
        asked, asking = asked[order], asking[order]
        pairs: set[tuple[int, int, int]] = set()
        for place, segment in enumerate(self._segments):
            positions, papers = segment.find(asked)
            pairs.update(
                (int(number), place, int(paper)) for number, paper in zip(asking[positions], papers, strict=True)
            )
        for number, group in groupby(sorted(pairs), key=lambda pair: pair[0]):
            yield number, [self._segments[place].paper(paper) for _, place, paper in group]


def _id_in_doi(doi: str | None) -> str | None:
    found = (part.removeprefix(_ARXIV_DOI) for part in split_dois(doi) if part.startswith(_ARXIV_DOI))
    return next(filter(None, map(normalize_arxiv_id, found)), None)


def _unless(citing: str, resolution: Resolution) -> Resolution:
    return Resolution() if resolution.arxiv_id == citing else resolution


def _best(scored: Iterable[tuple[float, Candidate]], item: _Item) -> Resolution:
    """The likest title, of equals that of the nearest year, then the smallest identifier; never the citing paper."""
    fitting = [pair for pair in scored if pair[0] > 0 and pair[1].arxiv_id != item.citing]
    if not fitting:
        return Resolution()
    best = min(fitting, key=lambda pair: (-pair[0], _years_apart(pair[1], item) or 0, pair[1].arxiv_id))
    return Resolution(best[1].arxiv_id, "title")


def _title_score(paper: Candidate, item: _Item) -> float:
    """Likeness of the titles in percent where paper and item agree otherwise, else 0."""
    words = paper.words
    score = fuzz.ratio("".join(words), "".join(item.words), score_cutoff=SAME_TITLE)
    if not score or _numbers(words) != _numbers(item.words):
        return 0.0
    return score if _agree(paper, item, equal=score == 100) else 0.0


def _raw_score(paper: Candidate, item: _Item) -> float:
    """Length of the paper's title where it stands in the item as printed and both agree otherwise, else 0."""
    words = paper.words
    if len(words) < WORDS_WITHOUT_AUTHOR or not item.known_words.issuperset(words):
        return 0.0
    inside = _stands_in(words, item.raw) and _agree(paper, item, equal=True)
    return float(len("".join(words))) if inside else 0.0


def _stands_in(words: list[str], raw: str) -> bool:
    """Whether the words stand in the text one after the other and a stop, not more of a title, follows them."""
    for found in re.finditer(r"[\W_]+".join(map(re.escape, words)), raw):
        before, after = raw[: found.start()].rstrip(), raw[found.end() :].lstrip()
        if (not before or not before[-1].isalnum()) and (not after or after[0] in _AFTER_TITLE):
            return True
    return False


def _numbers(words: list[str]) -> list[str]:
    return [number for word in words for number in ([word] if word in _ROMAN else re.findall(r"\d+", word))]


def _agree(paper: Candidate, item: _Item, *, equal: bool) -> bool:
    """Whether an author and the year leave it possible that two like titles are one work."""
    if paper.surnames and item.known_words.isdisjoint(paper.surnames.split()):
        return False
    if not paper.surnames and len(paper.words) < WORDS_WITHOUT_AUTHOR:
        return False
    apart = _years_apart(paper, item)
    if apart is None:
        return equal
    return apart <= (YEARS_APART_EQUAL if equal else YEARS_APART_CLOSE)


def _years_apart(paper: Candidate, item: _Item) -> int | None:
    return None if item.year is None else abs(item.year - paper.year)
