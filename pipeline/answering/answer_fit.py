"""Whether a sentence or a table cell has what a question asks for, and how well it does."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from pipeline.answering.question_kinds import (
    NUMBER,
    STATEMENT,
    QuestionKind,
    content_words,
    counted_words,
    kind_of,
    measures_in,
    names_in,
    noun_asked,
)
from pipeline.answering.quotations import Quotation
from pipeline.arxiv.titles import title_words
from pipeline.corpus.passage import Passage
from pipeline.embedding.lexical import term_id
from pipeline.index.relevance import coverage

_STRONG, _IN_SECTION, _WHOLE_LIST, _FIRST = 0.15, 0.1, 0.2, 0.1
# Words between a number and what it counts.
_NEAR_BEFORE, _NEAR_BEHIND = 6, 3
# Letters in which spellings of one word agree.
_SPELT_ALIKE = 5
_VALUE = re.compile(r"[\s$\\{}~≈<>+\-–−±(]*(?:\w+\{)?\d")
# Labels of rows and columns with counts: "# of users", "n_heads", "Number of layers".
_COUNT_LABEL = re.compile(r"\W*(?:#|n_|num|number\b|no\. of|count|total)", re.IGNORECASE)
_REFERRED_PLACE = re.compile(
    r"\b(?:tables?|tab\.|figures?|figs?\.|sections?|sec\.|appendix|equations?|eqs?\.?|algorithms?"
    r"|lines?|pages?|chapters?)[\s~]*\(?[\dA-Z][\w.]*",
    re.IGNORECASE,
)


class AnswerFit:
    """What a question asks for, as a test of quotations."""

    def __init__(self, question: str, names: Sequence[str] = ()) -> None:
        """names: which an answer has to have, beside what the paper is called."""
        self.question, self.kind = question, kind_of(question)
        self._names = [_folded(name).strip() for name in names if self.kind != STATEMENT]
        self._counted, self._measures = counted_words(question), measures_in(question)
        self._own_names = names_in(question)

    @cached_property
    def _initials(self) -> str:
        """The first letters of the question's words, in which abbreviations of it are found."""
        return "".join(word[0] for word in title_words(self.question))

    def may_answer(self, quote: Quotation) -> bool:
        """Whether a quotation has what is asked for, and the names in the question."""
        if len(quote.sentences) == 2 and not (quote.leans or self.kind.needs_names):
            return False
        held = self._held(quote)
        if not all(f" {name} " in held for name in self._names):
            return False
        if self.kind.names_something and not self._new_names(quote):
            return False
        if self.kind.says_noun and not self._says_noun(quote):
            return False
        if not self._has_evidence(quote):
            return False
        return self.kind.name != "number" or self._has_number_asked(quote, held)

    def weight(self, quote: Quotation) -> float:
        """How much a quotation is like the best answers to questions of this kind."""
        kind, path = self.kind, _path(quote.passage)
        weight = _IN_SECTION * _matches(kind.sections, path)
        weight += _STRONG * _matches(kind.strong, quote.compared())
        if quote.labels and any(map(_COUNT_LABEL.match, quote.labels)):
            weight += _STRONG
        if quote.labels and self._is_own_row(quote):
            weight += _STRONG
        if kind.is_list and len(quote.sentences) > 2:
            weight += _WHOLE_LIST
        # The first sentence of a section on limitations names the main one.
        if _matches(kind.best_sections, path) and quote.sentences[:1] == (0,):
            weight += _FIRST
        return weight

    def shares_of_words(self, quotes: Sequence[Quotation]) -> list[float]:
        """The share of the question's words that each quotation has under its paper's title; words
        that few of the quotations have count more, unless the text is a statement.
        """
        titled = [f"{quote.passage.title} {quote.compared()}" for quote in quotes]
        if self.kind == STATEMENT:
            return [coverage(self.question, text) for text in titled]
        # The words by which the kind is recognised are in the evidence already.
        subject = self.question
        if self.kind.example:
            subject = self.kind.asks.sub(" ", subject)
        stems = {term_id(word) for word in content_words(subject)}
        held = [stems & _stems(text) for text in titled]
        counts = Counter(stem for each in held for stem in each)
        weights = {stem: math.log(1 + len(quotes) / (1 + counts[stem])) for stem in stems}
        total = sum(weights.values()) or 1.0
        return [sum(weights[stem] for stem in each) / total for each in held]

    def _held(self, quote: Quotation) -> str:
        """The folded text in which names are looked for."""
        passage = quote.passage
        text = quote.compared() if self.kind.needs_names else passage.text
        return _folded(" ".join((passage.title, *passage.section_path, text)))

    def _has_evidence(self, quote: Quotation) -> bool:
        kind, path = self.kind, _path(quote.passage)
        if kind.evidence is None:
            return True
        if kind.section_suffices and _matches(kind.best_sections, path):
            return True
        text = quote.text if kind.wants_number else quote.compared()
        for name in self._own_names:
            text = text.replace(name, " ")
        text = _REFERRED_PLACE.sub(" ", text)
        if kind.wants_number and quote.labels and not _VALUE.match(text):
            return False
        if not kind.evidence.search(text):
            return False
        # Weak signs of a limitation count in the sections that discuss some.
        return (
            not kind.section_suffices
            or _matches(kind.strong, text)
            or _matches(kind.sections, path)
        )

    def _has_number_asked(self, quote: Quotation, held: str) -> bool:
        if self._counted:
            return _counts(self._counted[-1], quote)
        measured = [f" {term_id(word)} " in held for word in self._measures]
        return not measured or any(measured)

    def _says_noun(self, quote: Quotation) -> bool:
        """Whether it has the noun asked for, in any spelling: "licence", "optimisation"."""
        noun = noun_asked(self.question)[:_SPELT_ALIKE]
        return any(word.startswith(noun) for word in title_words(quote.text))

    def _new_names(self, quote: Quotation) -> bool:
        """Whether it has a name that is not in the question or the title, and no abbreviation."""
        asked = title_words(f"{self.question} {quote.passage.title}")
        initials = "".join(word[0] for word in asked)
        return any(
            not set(title_words(name)) <= set(asked) and name.lower().rstrip("s") not in initials
            for name in names_in(_REFERRED_PLACE.sub(" ", quote.text))
        )

    def _is_own_row(self, quote: Quotation) -> bool:
        """Whether a cell's row or column is that of a name in the question, its abbreviation, or
        the paper's own method.
        """
        names = {word for name in self._own_names for word in title_words(name)}
        return any(
            word in names or word in ("our", "ours") or (len(word) > 2 and word in self._initials)
            for word in title_words(" ".join(quote.labels))
        )


def _counts(word: str, quote: Quotation) -> bool:
    """Whether a quotation has a number of what a word names: near it, or in a cell with that
    label.
    """
    if quote.labels:
        return term_id(word) in _stems(" ".join(quote.labels))
    words = _REFERRED_PLACE.sub(" ", quote.text).split()
    for place, each in enumerate(words):
        before = words[max(place - _NEAR_BEFORE, 0) : place]
        near = [*before, *words[place + 1 : place + 1 + _NEAR_BEHIND]]
        if term_id(word) in _stems(each) and NUMBER.search(" ".join(near)):
            return True
    return False


def in_best_section(kind: QuestionKind, passage: Passage) -> bool:
    """Whether a passage is of a section that is about what a question asks for."""
    return _matches(kind.best_sections, _path(passage))


def _path(passage: Passage) -> str:
    return " ".join((passage.kind, *passage.section_path))


def _matches(pattern: re.Pattern[str] | None, text: str) -> bool:
    return pattern is not None and pattern.search(text) is not None


def _stems(text: str) -> set[int]:
    return {term_id(word) for word in title_words(text.replace("_", " "))}


def _folded(text: str) -> str:
    """The stems of a text in a row."""
    return f" {' '.join(str(term_id(word)) for word in title_words(text))} "
