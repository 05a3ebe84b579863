"""Whether a sentence or a table cell may answer a question, and how well it fits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import chain

from pipeline.answering.question_kinds import (
    EXPLAINED_DATA,
    NUMBER,
    STATEMENT,
    QuestionKind,
    content_words,
    counted_words,
    definition_pattern,
    kind_of,
    measures_in,
    names_in,
    noun_asked,
)
from pipeline.answering.quotations import NUMBER_CELL, Quotation
from pipeline.arxiv.titles import title_words
from pipeline.corpus.passage import Passage
from pipeline.embedding.lexical import term_id
from pipeline.index.relevance import coverage

_DEFINES = 0.3
_NEW_NAME, _MOST_NEW_NAMES = 0.06, 3
_STRONG, _IN_SECTION, _WHOLE_LIST, _FIRST = 0.12, 0.08, 0.15, 0.08
# A name in this share of the passages need not be in a quotation.
_COMMON = 0.25
# A number counts a noun that has it among so many words before or behind.
_NEAR_BEFORE, _NEAR_BEHIND = 6, 3
# Spellings of one word share so many first letters.
_SPELT_ALIKE = 5
# Labels of rows and columns with counts: "# of users", "n_heads", "Number of layers".
_COUNT_LABEL = re.compile(r"\W*(?:#|n_|num|number\b|no\. of|count|total)", re.IGNORECASE)
_REFERRED_PLACE = re.compile(
    r"\b(?:tables?|tab\.|figures?|figs?\.|sections?|sec\.|appendix|equations?|eqs?\.?|algorithms?"
    r"|lines?|pages?|chapters?)[\s~]*\(?[\dA-Z][\w.]*",
    re.IGNORECASE,
)


class AnswerFit:
    """Tests and weights of quotations for one question."""

    def __init__(
        self, question: str, passages: Sequence[Passage], names: Sequence[str] = ()
    ) -> None:
        """names: proper names that an answer must have, unless they stand in so many of the
        passages that all speak of them; for a statement they do not matter.
        """
        self.question, self.kind = question, kind_of(question)
        self._required_names: list[str] = []
        if self.kind != STATEMENT and names:
            texts = [_folded(passage.text) for passage in passages]
            for name in map(_folded, names):
                if sum(name in text for text in texts) < _COMMON * len(texts):
                    self._required_names.append(name)
        self._counted, self._measures = counted_words(question), measures_in(question)
        self._names_in_question = names_in(question)
        self._definition = definition_pattern(question) if self.kind.name == "definition" else None

    @cached_property
    def _initials(self) -> str:
        """The first letters of the question's words, to recognise their abbreviations."""
        return "".join(word[0] for word in title_words(self.question))

    def may_answer(self, quote: Quotation) -> bool:
        """Whether a quotation has what is asked for, and the names that an answer must have."""
        # Two sentences are quoted only if the second refers to the first, or if names may be in
        # either of them.
        if len(quote.sentences) == 2 and not (quote.leans or self.kind.needs_names):
            return False
        searched = self._searched_for_names(quote)
        if not all(name in searched for name in self._required_names):
            return False
        if self.kind.names_something and not self._names_something(quote):
            return False
        if self.kind.says_noun and not self._says_noun(quote):
            return False
        if not self._has_evidence(quote):
            return False
        return self.kind.name != "number" or self._has_number_asked(quote, searched)

    def weight(self, quote: Quotation) -> float:
        """How much a quotation is like the best answers to questions of this kind."""
        kind, path = self.kind, _path(quote.passage)
        weight = 0.0
        if _matches(kind.sections, path):
            weight += _IN_SECTION
        if _matches(kind.strong, quote.compared()):
            weight += _STRONG
        if any(map(_COUNT_LABEL.match, quote.labels)):
            weight += _STRONG
        if quote.labels and self._is_own_row(quote):
            weight += _STRONG
        if self._definition is not None and self._definition.match(quote.text):
            weight += _DEFINES
        if kind.name == "dataset":
            weight += _NEW_NAME * min(self._count_new_names(quote), _MOST_NEW_NAMES)
        # Only a whole list has more than two sentences.
        if kind.is_list and len(quote.sentences) > 2:
            weight += _WHOLE_LIST
        # The first sentence of a section on limitations names the main one.
        if _matches(kind.best_sections, path) and quote.sentences[:1] == (0,):
            weight += _FIRST
        return weight

    def shares_of_words(self, quotes: Sequence[Quotation]) -> list[tuple[float, float]]:
        """The share of the question's words that each quotation and its paper's title have, and the
        share that its passage, with title and sections, has (0 for a statement).

        Words that few of the quotations have count more, except for a statement.
        """
        own = [f"{quote.passage.title} {quote.compared()}" for quote in quotes]
        if self.kind == STATEMENT:
            return [(coverage(self.question, text), 0.0) for text in own]
        passages = [
            " ".join((quote.passage.title, *quote.passage.section_path, quote.passage.content()))
            for quote in quotes
        ]
        # The example stands for the words by which the kind is recognised.
        subject = self.question
        if self.kind.example:
            subject = self.kind.asks.sub(" ", subject)
        stems = {term_id(word) for word in content_words(subject)}
        stems_of_quotes = [stems & _stems(text) for text in own]
        counts = Counter(chain.from_iterable(stems_of_quotes))
        weights = {stem: math.log(1 + len(quotes) / (1 + counts[stem])) for stem in stems}
        # If all words of the question are common ones, having them says little.
        total = max(sum(weights.values()), math.log(1 + len(quotes) / 2))

        def share(some: set[int]) -> float:
            return sum(weights[stem] for stem in some) / total

        return [
            (share(of_quote), share(stems & _stems(passage)))
            for of_quote, passage in zip(stems_of_quotes, passages, strict=True)
        ]

    def _searched_for_names(self, quote: Quotation) -> str:
        """The folded text in which names are looked up: of the quotation or of its passage."""
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
        for name in self._names_in_question:
            text = text.replace(name, " ")
        text = _REFERRED_PLACE.sub(" ", text)
        if kind.wants_number and quote.labels and not NUMBER_CELL.match(text):
            return False
        if not kind.evidence.search(text):
            return False
        if not kind.section_suffices:
            return True
        # Outside of the sections that discuss limitations, weak words for one do not count.
        return _matches(kind.strong, text) or _matches(kind.sections, path)

    def _has_number_asked(self, quote: Quotation, searched: str) -> bool:
        if self._counted:
            return _counts(self._counted[-1], quote)
        if not self._measures:
            return True
        return any(f" {term_id(word)} " in searched for word in self._measures)

    def _says_noun(self, quote: Quotation) -> bool:
        """Whether a quotation has the noun asked for, in any spelling: "licence", "optimise"."""
        noun = noun_asked(self.question)[:_SPELT_ALIKE]
        return any(word.startswith(noun) for word in title_words(quote.text))

    def _names_something(self, quote: Quotation) -> bool:
        """Whether a quotation has a new name, or explains a data set."""
        return self._count_new_names(quote) > 0 or EXPLAINED_DATA.search(quote.text) is not None

    def _count_new_names(self, quote: Quotation) -> int:
        """The number of names in a quotation that are neither in the question or the paper's title,
        nor abbreviations of their words.
        """
        words = title_words(f"{self.question} {quote.passage.title}")
        initials = "".join(word[0] for word in words)
        count = 0
        for name in set(names_in(_REFERRED_PLACE.sub(" ", quote.text))):
            is_abbreviation = name.lower().rstrip("s") in initials
            if not is_abbreviation and not set(words).issuperset(title_words(name)):
                count += 1
        return count

    def _is_own_row(self, quote: Quotation) -> bool:
        """Whether a cell's row or column has a name of the question, an abbreviation of its words,
        or the paper's own method.
        """
        own_words = {"our", "ours"}
        own_words.update(word for name in self._names_in_question for word in title_words(name))
        return any(
            word in own_words or (len(word) > 2 and word in self._initials)
            for word in title_words(" ".join(quote.labels))
        )


def _counts(word: str, quote: Quotation) -> bool:
    """Whether a quotation counts what a word names: a sentence with a number near the word, or a
    cell with the word in a label.
    """
    stem = term_id(word)
    if quote.labels:
        return stem in _stems(" ".join(quote.labels))
    words = _REFERRED_PLACE.sub(" ", quote.text).split()
    for place, candidate in enumerate(words):
        if stem not in _stems(candidate):
            continue
        before = words[max(place - _NEAR_BEFORE, 0) : place]
        behind = words[place + 1 : place + 1 + _NEAR_BEHIND]
        if NUMBER.search(" ".join([*before, *behind])):
            return True
    return False


def in_best_section(kind: QuestionKind, passage: Passage) -> bool:
    """Whether a passage is of a section that alone is read for this kind of question."""
    return _matches(kind.best_sections, _path(passage))


def _path(passage: Passage) -> str:
    return " ".join((passage.kind, *passage.section_path))


def _matches(pattern: re.Pattern[str] | None, text: str) -> bool:
    return pattern is not None and pattern.search(text) is not None


def _stems(text: str) -> set[int]:
    return {term_id(word) for word in title_words(text.replace("_", " "))}


def _folded(text: str) -> str:
    """The stem ids of a text, with spaces between and around them."""
    return f" {' '.join(str(term_id(word)) for word in title_words(text))} "
