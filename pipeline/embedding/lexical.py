"""Lexical vectors: stemmed words with BM25's weights; the index multiplies by IDF.

A passage's vector depends on its text alone: the average length of passages is a constant of the
collection's layout, and the document frequencies are the index's (Qdrant's modifier "idf", Lucene's
formula). So the dot product with a query's vector is BM25 (Robertson and Zaragoza 2009, section
3.5; Lucene's form, without the factor k1 + 1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING

from pipeline.corpus.passages.text import UNSPACED
from pipeline.embedding.embedder import SparseRows, SparseVector
from pipeline.text import without_accents

if TYPE_CHECKING:
    from Stemmer import Stemmer

# BM25's constants as bm25s has them. Abstracts of SciFact have 157 words beside stop words on
# average, those of DeepScholar-Bench 146; from 130 to 170 the quality of a search differs by 0.002
# (docs/methods/retrieval.md).
K1, B = 1.5, 0.75
MEAN_LENGTH = 150
# Raise it when the same text gives another vector, and list the versions that collections may still
# have, newest first: they keep theirs until `citeloom reindex`.
# 3: what a paper's abbreviations stand for, and the caption of a table's later parts. 4: small
# capitals are abbreviations too.
VERSION = 4
VERSIONS = (VERSION, 3, 2)

_WORD = re.compile(r"\w\w+")
# C++, C#; R and other names of one capital, but not within formulas, and not initials: J. Smith.
_SIGNED_LETTER = re.compile(r"(?<!\w)[A-Za-z](?:\+\+|#)(?!\w)")
_CAPITAL = re.compile(r"(?<!\S)[B-HJ-Z](?=[\s,;:?!)]|$)")
# GPT-4, GPT-3.5, k-NN, t-SNE, pre-training: parts of a name in which one is short.
_COMPOUND = re.compile(r"(?<![\w\\-])\w+(?:[-\u2010\u2011]\w+(?:\.\d+)*)+(?![\w-])")
_HYPHENS = re.compile(r"[-\u2010\u2011]")
_SHORT_PART = 3
# Llama 2, Qwen 2.5: a name with its version, but not Table 2.
_VERSIONED = re.compile(r"(?<![\w-])([A-Z]\w+) (\d{1,2}(?:\.\d++)?)(?![\w.-]*\d)")
_NUMBERED = frozenset({
    "algorithm", "appendix", "assumption", "case", "chapter", "claim", "corollary", "definition",
    "eq", "equation", "example", "experiment", "fig", "figure", "figures", "lemma", "line", "list",
    "listing", "note", "page", "part", "phase", "problem", "proposition", "remark", "rq", "sec",
    "section", "sections", "stage", "step", "tab", "table", "tables", "theorem", "version", "vol",
})  # fmt: skip
# Scripts without spaces are cut into overlapping pairs of characters.
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# Lucene's English stop words.
STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
})  # fmt: skip
# What may be an abbreviation in parentheses: one or two words, of letters, digits and few signs.
_IN_PARENTHESES = re.compile(r"\(([A-Za-z][\w+/&.-]{0,9}(?: [\w+/&.-]{1,6})?)\)")
# A long form does not reach beyond these.
_END_OF_PHRASE = re.compile(r"[.;:?!()\[\]|\n](?:\s|$)|[()|\n]")
# Words whose stems are remembered. A month of 20,000 papers has more; then the least recent are
# stemmed again.
_MOST_WORDS = 1 << 19


def words_of(text: str) -> list[str]:
    """The words of a text: two letters or more, lower case, no accents, unstemmed."""
    words = _WORD.findall(without_accents(text).lower())
    return [word for word in words if word not in STOP_WORDS]


def terms_of(text: str) -> list[str]:
    """The terms of a lexical vector: the words, then names and scripts that words do not cover.

    These are names of one letter (C++, R), compounds with a short part as one term beside their
    words (gpt-4, pre-training), names with a version (Llama 2), and pairs of characters of scripts
    without spaces.
    """
    terms = words_of(text)
    # Few texts have such a sign, and few words a hyphen: with these tests, terms take 0.7 of the
    # time.
    if "+" in text or "#" in text:
        terms += (match[0].lower() for match in _SIGNED_LETTER.finditer(text))
    terms += (match[0].lower() for match in _CAPITAL.finditer(text))
    for word in text.split():
        if "-" in word or "\u2010" in word or "\u2011" in word:
            terms += _compounds(word)
    for match in _VERSIONED.finditer(text):
        name = match[1].lower()
        if name not in _NUMBERED and name not in STOP_WORDS:
            terms.append(name + match[2])
    if not text.isascii():
        for match in _UNSPACED_RUN.finditer(text):
            terms += (match[0][place : place + 2] for place in range(max(len(match[0]) - 1, 1)))
    return terms


def _compounds(text: str) -> Iterator[str]:
    """The compounds with a short part, without hyphens."""
    for match in _COMPOUND.finditer(text):
        parts = _HYPHENS.split(match[0].lower())
        if min(map(len, parts)) <= _SHORT_PART:
            yield "".join(parts)


@lru_cache(maxsize=_MOST_WORDS)
def term_id(word: str) -> int:
    """The number of a word's English stem (Snowball), the same on every machine: 32 bits of xxHash.

    Two stems share a number by chance: of a million stems, 116 pairs are to be expected.
    """
    import xxhash

    return xxhash.xxh32_intdigest(_stemmer().stemWord(word).encode())


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer:
    from Stemmer import Stemmer

    return Stemmer("english")


def abbreviations_of(text: str) -> Iterator[tuple[str, str]]:
    """Each abbreviation that a text defines, such as "Sharpe ratio (SR)", with its long form.

    After Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in
    biomedical text". Only abbreviations with a capital count, and small letters that are the
    capitals of the long form: pages lose small capitals, as in "Passage Exact Match (p em)".
    """
    if "(" not in text:
        return
    for match in _IN_PARENTHESES.finditer(text):
        short = match[1].removesuffix("s")
        phrase = _END_OF_PHRASE.split(text[max(0, match.start() - 200) : match.start()])[-1]
        long = _long_form(short, phrase)
        if long is None:
            continue
        capitals = "".join(filter(str.isupper, long))
        if any(map(str.isupper, short)):
            yield short, long
        elif len(capitals) > 1 and short.upper().replace(" ", "") == capitals:
            yield short.upper(), long


def _long_form(short: str, phrase: str) -> str | None:
    """The end of a phrase that has the letters of an abbreviation in order, the first of them at
    the beginning of a word.
    """
    letters = [sign for sign in short.lower() if sign.isalnum()]
    most = min(len(letters) + 5, 2 * len(letters))
    long = " ".join(phrase.split()[-most:])
    lower = long.lower()
    place = len(lower)
    for number in reversed(range(len(letters))):
        place = lower.rfind(letters[number], 0, place)
        while number == 0 and place > 0 and lower[place - 1].isalnum():
            place = lower.rfind(letters[number], 0, place)
        if place < 0:
            return None
    long = long[place:]
    return long if len(long) > len(short) and short not in long.split() else None


def long_forms_in(text: str, abbreviations: Mapping[str, str]) -> Iterator[str]:
    """The long forms of the abbreviations that a text has, in the singular or plural."""
    for short, long in abbreviations.items():
        if short in text and re.search(rf"(?<!\w){re.escape(short)}s?(?!\w)", text):
            yield long


def lexical_rows(
    texts: Iterable[str],
    mean_length: int = MEAN_LENGTH,
    *,
    only: Collection[int] | None = None,
    additions: Iterable[str] | None = None,
) -> SparseRows:
    """A vector per passage: BM25's saturation of a stem's count, normalised by length.

    only: the numbers of terms, such as a query's, that the vectors are to have; None for all.
    additions: for each text, another whose terms it gets once each, where it lacks them; its length
    stays.
    """
    rows = []
    for text, addition in zip(texts, repeat("") if additions is None else additions):  # noqa: B905
        counts = Counter(map(term_id, terms_of(text)))
        norm = K1 * (1 - B + B * counts.total() / mean_length)
        counts |= Counter(set(map(term_id, terms_of(addition))))
        numbers = counts.keys() if only is None else counts.keys() & only
        rows.append({number: counts[number] / (counts[number] + norm) for number in numbers})
    return SparseRows.of(rows)


def lexical_query(text: str) -> SparseVector:
    """The vector of a query: how often it has each stem."""
    return SparseRows.of([Counter(map(term_id, terms_of(text)))]).row(0)
