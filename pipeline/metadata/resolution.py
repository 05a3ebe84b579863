"""Which arXiv paper a bibliography item cites: by identifier, else DOI, else title with year and author.

Not here: taking a bibliography item apart (the parsers of `pipeline.corpus`).
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from rapidfuzz import fuzz

from pipeline.metadata.record import split_version

By = Literal["identifier", "doi", "title"]

# rapidfuzz.fuzz.ratio of folded titles without blanks. Of the 313,000 pairs among 792 different titles in the project's
# test data, the closest that are two works reach 90 (Adaptive / Fast Nearest Neighbor Machine Translation), but for
# parts I and II of one paper at 99, so numbers must agree. One wrong letter in a title of 50 costs 2, a hyphen nothing.
SAME_TITLE = 95.0
# A preprint is cited with the year of its posting or of its printing: under an equal title that is up to six years
# later (a journal) or earlier (a scan), under one that is only close two.
YEARS_APART_EQUAL, YEARS_APART_CLOSE = 6, 2
# Shorter titles ("Deep learning") are borne by several works: without an author to check they prove nothing.
WORDS_WITHOUT_AUTHOR = 4
# A title is looked for by each pair of its four longest words, so one that is misspelt still leaves three pairs.
_LONGEST_WORDS = 4
_RAW_WORDS = 150  # 11,000 pairs; the items of the 21 real papers hold 15 to 60 words
_AUTHORS_CHECKED = 20

_NEW_ID = re.compile(r"\d{4}\.\d{4,5}")
_OLD_ID = re.compile(r"([a-z]+(?:-[a-z]+)?)(?:\.[A-Z]{2})?(/\d{7})")
_ARXIV_DOI = "10.48550/arxiv."
_ACCENT = re.compile(r"\\[`'^\"~=.uvHckrdb](?:\{\\?([A-Za-z])\}|(?<=[`'^\"~=.])\\?([A-Za-z]))")
_LETTER = re.compile(r"\\(o|O|l|L|ss|ae|AE|oe|OE|aa|AA|i|j)(?![A-Za-z])")
_UNSPLIT = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})  # NFKD leaves them whole
_FORMAT = re.compile(r"\\(?:emph|text\w*|math(?:rm|cal|bf|bb|it|sf|tt|frak)|mbox|rm|it|bf|em|sc|tt|sf)\b")
_WORD = re.compile(r"[^\W_]+")
_ROMAN = frozenset({"i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"})
_AFTER_TITLE = frozenset(".,;?!\"”’'»)]")
_SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv"})


@dataclass(frozen=True, slots=True)
class Resolution:
    """The cited paper and how it was found; both None where it was not."""

    arxiv_id: str | None = None
    by: By | None = None


@dataclass(frozen=True, slots=True)
class _Paper:
    """Words with blanks between rather than sets of them: 2.2 million papers are held at once."""

    arxiv_id: str
    title: str
    surnames: str
    year: int

    @property
    def words(self) -> list[str]:
        return self.title.split()


@dataclass(frozen=True, slots=True)
class _Item:
    """A bibliography item, folded once for all comparisons."""

    citing: str
    words: list[str]
    raw: str
    raw_words: frozenset[str]
    year: int | None


class Catalogue:
    """The papers that a reference may be resolved to, from months of the table `metadata`."""

    def __init__(self) -> None:
        self._papers: list[_Paper] = []
        self._dois: dict[str, str] = {}
        self._hashes, self._owners = array("q"), array("i")
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, rows: Iterable[Mapping[str, Any]], month: str) -> None:
        """Take rows of a month (arxiv_id, title, authors, doi, published); those without a title only by their DOI."""
        for row in rows:
            for doi in split_dois(row["doi"]):
                self._dois.setdefault(doi, row["arxiv_id"])
            words = title_words(row["title"] or "")
            if len(words) > 1:
                self._add_title(row, words, int((row["published"] or month)[:4]))
        self._sorted = None

    def _add_title(self, row: Mapping[str, Any], words: list[str], year: int) -> None:
        for pair in _pairs(_longest(words)):
            self._hashes.append(hash(pair))
            self._owners.append(len(self._papers))
        surnames = " ".join(filter(None, map(_surname, row["authors"][:_AUTHORS_CHECKED])))
        self._papers.append(_Paper(row["arxiv_id"], " ".join(words), surnames, year))

    def resolve(self, item: Mapping[str, Any], citing: str) -> Resolution:
        """The paper that an item (title, raw, year, doi, arxiv_id) of a citing paper's bibliography stands for.

        An identifier is believed whether or not the catalogue holds it; a DOI and a title must be in the catalogue. A
        paper never cites itself: an item that says so is resolved to nothing.
        """
        explicit = canonical_id(item["arxiv_id"] or "") or _id_in_doi(item["doi"])
        if explicit:
            return _unless(citing, Resolution(explicit, "identifier"))
        for doi in split_dois(item["doi"]):
            if doi in self._dois:
                return _unless(citing, Resolution(self._dois[doi], "doi"))
        return self._by_title(_folded(item, citing))

    def _by_title(self, item: _Item) -> Resolution:
        scored = [(_title_score(paper, item), paper) for paper in self._near(_longest(item.words))]
        if not any(score for score, _ in scored):
            # The parser found no title or another one: a paper's whole title may stand in the item between its stops.
            scored = [(_raw_score(paper, item), paper) for paper in self._near(_longest(item.raw_words, _RAW_WORDS))]
        fitting = [pair for pair in scored if pair[0] > 0 and pair[1].arxiv_id != item.citing]
        if not fitting:
            return Resolution()
        best = min(fitting, key=lambda pair: (-pair[0], _years_apart(pair[1], item) or 0, pair[1].arxiv_id))
        return Resolution(best[1].arxiv_id, "title")

    def _near(self, words: list[str]) -> list[_Paper]:
        """The papers of which a pair of the longest words is among these words."""
        hashes, owners = self._index()
        asked = np.fromiter(map(hash, _pairs(words)), dtype=np.int64)
        first, last = np.searchsorted(hashes, asked, "left"), np.searchsorted(hashes, asked, "right")
        found = {int(owner) for low, high in zip(first, last, strict=True) if low < high for owner in owners[low:high]}
        return [self._papers[number] for number in sorted(found)]

    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        if self._sorted is None:
            hashes, owners = np.array(self._hashes, dtype=np.int64), np.array(self._owners, dtype=np.int32)
            order = np.argsort(hashes, kind="stable")
            self._sorted = hashes[order], owners[order]
        return self._sorted


def canonical_id(text: str) -> str | None:
    """An arXiv identifier without prefix, version and subject class; None where the text is none."""
    bare = split_version(re.sub(r"^arxiv:\s*", "", text.strip(), flags=re.IGNORECASE))[0]
    if _NEW_ID.fullmatch(bare):
        return bare
    old = _OLD_ID.fullmatch(bare)
    return old[1] + old[2] if old else None


def split_dois(text: str | None) -> list[str]:
    """The DOIs of a field, lower case and without an address; arXiv's own field may hold several."""
    parts = re.sub(r"https?://(?:dx\.)?doi\.org/|\bdoi:\s*", " ", (text or "").lower()).replace(",10.", " 10.").split()
    return [part.rstrip(".,;") for part in parts if part.startswith("10.")]


def title_words(text: str) -> list[str]:
    """The words of a title in lower case, without accents, TeX marks and punctuation."""
    return _WORD.findall(_fold(text))


def _fold(text: str) -> str:
    accented = _ACCENT.sub(lambda found: found[1] or found[2], text)
    plain = _FORMAT.sub(" ", _LETTER.sub(r"\1", accented)).translate({ord(mark): None for mark in "{}$"})
    split = unicodedata.normalize("NFKD", plain)
    return "".join(letter for letter in split if not unicodedata.combining(letter)).casefold().translate(_UNSPLIT)


def _id_in_doi(doi: str | None) -> str | None:
    found = (part.removeprefix(_ARXIV_DOI) for part in split_dois(doi) if part.startswith(_ARXIV_DOI))
    return next(filter(None, map(canonical_id, found)), None)


def _unless(citing: str, resolution: Resolution) -> Resolution:
    return Resolution() if resolution.arxiv_id == citing else resolution


def _folded(item: Mapping[str, Any], citing: str) -> _Item:
    raw = _fold(item["raw"] or "")
    named = title_words(" ".join(item["authors"] or ()))
    return _Item(
        citing=citing,
        words=title_words(item["title"] or ""),
        raw=raw,
        raw_words=frozenset(_WORD.findall(raw)) | frozenset(named),
        year=item["year"],
    )


def _longest(words: Iterable[str], limit: int = _LONGEST_WORDS) -> list[str]:
    return sorted(sorted(set(words), key=lambda word: (-len(word), word))[:limit])


def _pairs(words: list[str]) -> Iterable[tuple[str, str]]:
    return combinations(words, 2) if len(words) > 1 else ((word, word) for word in words)


def _surname(name: str) -> str | None:
    words = [word for word in title_words(name) if word not in _SUFFIXES]
    return words[-1] if words and len(words[-1]) > 1 else None


def _title_score(paper: _Paper, item: _Item) -> float:
    """Likeness of the titles in percent where paper and item agree otherwise, else 0."""
    words = paper.words
    if _numbers(words) != _numbers(item.words):
        return 0.0
    score = fuzz.ratio("".join(words), "".join(item.words), score_cutoff=SAME_TITLE)
    return score if score and _agree(paper, item, equal=score == 100) else 0.0


def _raw_score(paper: _Paper, item: _Item) -> float:
    """Length of the paper's title where it stands in the item as printed and both agree otherwise, else 0."""
    words = paper.words
    if len(words) < WORDS_WITHOUT_AUTHOR or not item.raw_words.issuperset(words):
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


def _agree(paper: _Paper, item: _Item, *, equal: bool) -> bool:
    """Whether an author and the year leave it possible that two like titles are one work."""
    if paper.surnames and item.raw_words.isdisjoint(paper.surnames.split()):
        return False
    if not paper.surnames and len(paper.words) < WORDS_WITHOUT_AUTHOR:
        return False
    apart = _years_apart(paper, item)
    if apart is None:
        return equal
    return apart <= (YEARS_APART_EQUAL if equal else YEARS_APART_CLOSE)


def _years_apart(paper: _Paper, item: _Item) -> int | None:
    return None if item.year is None else abs(item.year - paper.year)
