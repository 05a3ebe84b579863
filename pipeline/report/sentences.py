"""A section's sentences where they stand in its text, each with what was found of its citations."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.evaluation.cited import parted, pieces, printable
from pipeline.index.links import passage_url
from pipeline.report.filters import abs_url
from pipeline.report.views import CitationView, GapView, PassageView, Runs, SentenceView

Row = Mapping[str, Any]

VERDICTS = ("supported", "partly", "not", "unjudged")
# A passage of the corpus has some 200 words; an abstract given by a file may be a book.
_MOST_PASSAGE_CHARS = 6_000


def laid_out(text: str, sentences: Sequence[SentenceView], found: Sequence[str], known: Collection[int]) -> list[Runs]:
    """The paragraphs of a text as sentences and what lies between them; joined they give each paragraph back.

    found: the texts of `sentences`, in order, white space folded as the table keeps them. A sentence that stands in no
    paragraph after the one before it stays part of the text around it.
    """
    paragraphs = [_Paragraph(part, known) for part in parted(text)]
    at = 0
    for sentence, told in zip(sentences, found, strict=True):
        signs = _signs(told)
        place = next((n for n in range(at, len(paragraphs)) if paragraphs[n].takes(signs)), None)
        if place is not None:
            at = place
            paragraphs[place].take(sentence, signs)
    return [paragraph.runs() for paragraph in paragraphs]


class _Paragraph:
    """A paragraph that takes its sentences one after another."""

    def __init__(self, text: str, known: Collection[int]) -> None:
        self._text, self._known = text, known
        self._places = [place for place, sign in enumerate(text) if not sign.isspace()]
        self._signs = "".join(text[place] for place in self._places)
        self._from = 0
        self._end = 0
        self._runs: list[SentenceView | GapView] = []

    def takes(self, signs: str) -> bool:
        return bool(signs) and self._signs.find(signs, self._from) >= 0

    def take(self, sentence: SentenceView, signs: str) -> None:
        first = self._signs.find(signs, self._from)
        self._from = first + len(signs)
        start, end = self._places[first], self._places[self._from - 1] + 1
        self._gap(start)
        self._runs.append(replace(sentence, pieces=pieces(self._text[start:end], self._known)))
        self._end = end

    def runs(self) -> Runs:
        self._gap(len(self._text))
        return self._runs

    def _gap(self, until: int) -> None:
        if until > self._end:
            self._runs.append(GapView(pieces(self._text[self._end : until], self._known)))
            self._end = until


def _signs(sentence: str) -> str:
    return "".join(printable(sentence).split())


def sentence_views(
    summary: Row, support: Sequence[Row], titles: Mapping[int, str], shown: Mapping[str, PassageView]
) -> list[SentenceView]:
    """The sentences of a section, their texts not yet laid out. support: its rows of `citation_support`; titles: of
    the task's references by number; shown: passages by id that the system itself named."""
    by_sentence: dict[int, list[Row]] = {}
    for row in support:
        by_sentence.setdefault(row["sentence"], []).append(row)
    return [
        _sentence_view(place, told, by_sentence.get(place, ()), titles, shown)
        for place, told in enumerate(summary["sentences"], 1)
    ]


def _sentence_view(
    place: int, told: Row, support: Sequence[Row], titles: Mapping[int, str], shown: Mapping[str, PassageView]
) -> SentenceView:
    citations = [citation_view(row, titles) for row in sorted(support, key=lambda row: row["number"])]
    own = [shown[name] for name in told["passages"] or () if name in shown]
    return SentenceView(
        place, (), together([each.verdict for each in citations]), citations, told["support"] or "", own
    )


def together(verdicts: Sequence[str]) -> str:
    """What the verdicts on a sentence's citations come to: supported where all that were judged are, not where none
    is at all, else partly; unjudged where none was judged, '' where there is none."""
    judged = {verdict for verdict in verdicts if verdict != "unjudged"}
    if len(judged) == 1:
        return judged.pop()
    return "partly" if judged else "unjudged" if verdicts else ""


def citation_view(row: Row, titles: Mapping[int, str]) -> CitationView:
    """One row of `citation_support` as shown."""
    passages = row["passages"] or ()
    quote = row["quote"] or ""
    return CitationView(
        number=row["number"],
        title=titles.get(row["number"], ""),
        known=row["number"] in titles,
        source=row["source"] or "",
        verdict=row["verdict"] or "unjudged",
        why=row["unjudged"] or "",
        quote=quote,
        quote_found=bool(row["quote_found"]),
        judge=row["judge"] or "",
        passages=[
            passage_view(each["text"], row["arxiv_id"], each["anchor"], quote if place == row["quoted"] else "")
            for place, each in enumerate(passages)
        ],
    )


def passage_view(text: str | None, arxiv_id: str | None, anchor: str | None, quote: str = "") -> PassageView:
    """A passage with the quote marked in it where it stands word for word, and an address on arXiv or ar5iv."""
    whole = printable(text or "")
    kept = whole if len(whole) <= _MOST_PASSAGE_CHARS else f"{whole[:_MOST_PASSAGE_CHARS]}…"
    start, end = _quoted(kept, quote)
    return PassageView(kept[:start], kept[start:end], kept[end:], _url(arxiv_id, anchor), bool(quote))


def _url(arxiv_id: str | None, anchor: str | None) -> str:
    if not arxiv_id:
        return ""
    return passage_url(arxiv_id, anchor) if anchor else abs_url(arxiv_id)


def _quoted(text: str, quote: str) -> tuple[int, int]:
    """Where a quote stands in a text, white space and case apart; the end of the text twice where it does not."""
    words = printable(quote).split()
    if not words:
        return len(text), len(text)
    found = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return found.span() if found else (len(text), len(text))
