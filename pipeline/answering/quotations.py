"""Sentences and table cells of passages that may be quoted as an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.arxiv.titles import title_words
from pipeline.corpus.parse.policies import CITATION_MARKER, MISSING_MARKER, without_markers
from pipeline.corpus.passage import Passage
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.passages.table_cells import NUMBER_CELL, tables_in
from pipeline.text import one_line

_PROSE_KINDS = frozenset({"abstract", "paragraph", "list", "theorem"})
# Shorter sentences are headings and labels.
_FEWEST_WORDS, _MOST_WORDS = 5, 80
_TABLE_NUMBER = re.compile(r"(?:Table|Tab\.) [\dA-Z][\w.]*\w|(?:Table|Tab\.) \d")
_MOST_LABEL_CHARS, _MOST_VALUE_CHARS = 120, 60
_NOT_QUOTED_SECTIONS = re.compile(
    r"acknowledge?ments?|funding|author contributions?|checklist|ethic\w*|impact statement"
    r"|conflicts? of interest|competing interests?",
    re.IGNORECASE,
)
_ACKNOWLEDGES = re.compile(
    r"\b(?:we|authors?|i)\b.{0,20}\b(?:thank|grateful)\b"
    r"|\backnowledges? .{0,60}\b(?:support|funding|help)\b"
    # "This work was supported by NSF grant 7."
    r"|\b(?:supported|funded|sponsored) (?:\w+ )?by\b.{0,199}"
    r"\b(?:grants?|foundation|awards?|contracts?|fellowships?|agency|council)\b",
    re.IGNORECASE,
)
# "Table 9 presents …", "In Figure 3, we illustrate …", "In this section, we …"
_POINTS_TO_PLACE = re.compile(
    r"(?:(?:in|on|see) )?(?:the )?(?:(?:tables?|figures?|figs?\.|algorithms?|sections?|appendix"
    r"|equations?|eqs?\.|chapters?|listings?)\s*~?\(?(?-i:[\dA-Z])"
    r"|(?:this|the (?:next|following)) (?:sub)?(?:section|chapter|appendix)\b)",
    re.IGNORECASE,
)
_LIST_MARKER = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+")
_END = re.compile(r"[.!…。！](?:[\"”’'»)\]]*)$|\$$|\)$")
_CITATION = re.compile(f"{CITATION_MARKER.pattern}|{MISSING_MARKER.pattern}")
# A citation behind one of these words is a part of its sentence: "as tested in [@b1]".
_NEED_OBJECT = frozenset({
    "as", "by", "following", "from", "in", "like", "of", "see", "to", "with",
})  # fmt: skip
# A citation that was the subject of the sentence which it begins: "… saves fuel. [@b1] argue that".
_LOST_SUBJECT = re.compile(rf"(?<=[.!?])(?<!\bal\.)\s(?:{_CITATION.pattern})\s(?=[a-z])")
# So many words before or behind a citation tell in which sentence it was.
_WORDS_AT_HOLE = 4
# Begins with a reference to the sentence before it, which is quoted with it.
_LEANS_BACK = re.compile(
    r"(?:this(?! (?:study|paper|work|article|survey|thesis)\b)|these|those|that|such|it|its|they"
    r"|their|he|she|here|however|thus|hence|therefore|moreover|furthermore|then|also|instead"
    r"|as a result|for (?:example|instance)|both|the (?:former|latter)|in particular|specifically"
    r"|namely|similarly|additionally|in other words)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quotation:
    """Words of a passage that may answer a question.

    text: a sentence, two in a row, or the value of a table's cell. place: the row, column and table
    of a cell; empty for sentences. labels: the labels of a cell's row and column. sentences: the
    numbers of the sentences within the passage, from 0.
    """

    text: str
    passage: Passage
    place: str = ""
    labels: tuple[str, ...] = ()
    sentences: tuple[int, ...] = ()

    def display_text(self) -> str:
        """The quotation as an answer prints it."""
        return f"“{self.text}” ({self.place})" if self.place else f"“{self.text}”"

    def search_text(self) -> str:
        """The text that is compared with a question."""
        return f"{self.place}: {self.text}" if self.place else self.text

    def repeats(self, other: Quotation) -> bool:
        """Whether one of two quotations says nothing that the other does not."""
        if self.passage == other.passage and set(self.sentences) & set(other.sentences):
            return True
        if self.place or other.place:
            return self == other
        return self.text in other.text or other.text in self.text

    def says_only(self, words: set[str]) -> bool:
        """Whether a cell has no number and no other words than these, such as a question's."""
        has_number = NUMBER_CELL.match(self.text) is not None
        return bool(self.place) and not has_number and words.issuperset(title_words(self.text))

    def has_hole(self) -> bool:
        """Whether a sentence lacks a citation that was its object, "as tested in [@b1]", or its
        subject, "[@b1] also prove that …".
        """
        for before, behind in pairwise(_CITATION.split(self.passage.text)):
            words = before.split()[-_WORDS_AT_HOLE:]
            needs_object = len(words) > 1 and words[-1].lower().lstrip("(") in _NEED_OBJECT
            if needs_object and " ".join(words) in self.text:
                return True
            begins_sentence = not words or (_END.search(words[-1]) and words[-1] != "al.")
            first_words = " ".join(behind.split()[:_WORDS_AT_HOLE])
            if begins_sentence and first_words[:1].islower() and first_words in self.text:
                return True
        return False


def quotations_of(passage: Passage) -> Iterator[Quotation]:
    """The sentences of a passage and the cells of its tables that may be quoted."""
    yield from _sentences(passage)
    yield from _table_cells(passage)


def _sentences(passage: Passage) -> Iterator[Quotation]:
    """The sentences of a passage, each alone, and with the one before it. A sentence that refers to
    the one before it comes only with that one.

    Captions, tables and acknowledgements have none. Questions, headings, sentences that end in a
    colon, and sentences that point to a table or a section are left out.
    """
    path = " ".join(passage.section_path)
    if passage.kind not in _PROSE_KINDS or _NOT_QUOTED_SECTIONS.search(path):
        return
    # The sentence before, with those that it refers to.
    before = ""
    numbers_before: tuple[int, ...] = ()
    # Without a subject it begins with a small letter, which splits no sentence.
    content = without_markers(_LOST_SUBJECT.sub("\n\n", passage.text))
    for number, sentence in enumerate(split_sentences(content)):
        text = _LIST_MARKER.sub("", one_line(sentence))
        if not _is_statement(text):
            before, numbers_before = "", ()
            continue
        with_before = one_line(f"{before} {text}")
        numbers = (*numbers_before, number)
        leans_back = _LEANS_BACK.match(text) is not None
        if len(text.split()) >= _FEWEST_WORDS and not leans_back:
            yield Quotation(text, passage, sentences=(number,))
        if before and len(with_before.split()) <= _MOST_WORDS:
            yield Quotation(with_before, passage, sentences=numbers)
        if not leans_back:
            before, numbers_before = text, (number,)
        elif before:
            before, numbers_before = with_before, numbers


def _is_statement(text: str) -> bool:
    """Whether a text is a whole sentence, and no pointer into the paper or acknowledgement."""
    return (
        len(text.split()) <= _MOST_WORDS
        and bool(_END.search(text))
        and not _POINTS_TO_PLACE.match(text)
        and not _ACKNOWLEDGES.search(text)
    )


def _table_cells(passage: Passage) -> Iterator[Quotation]:
    """The cells of a passage's tables that hold a value; captions and paragraphs hold some too."""
    if "| --- |" not in passage.text:
        return
    for table in tables_in(passage.content()):
        title = _table_title(table.caption)
        for cell in table.cells():
            if not cell.row or len(cell.value) > _MOST_VALUE_CHARS:
                continue
            row, name = cell.row[:_MOST_LABEL_CHARS], cell.column[:_MOST_LABEL_CHARS]
            parts = [f"row “{row}”", f"column “{name}”" if name else "", title]
            yield Quotation(cell.value, passage, ", ".join(filter(None, parts)), (row, name))


def _table_title(caption: Sequence[str]) -> str:
    """The first sentence of a caption. Several captions give only their numbers, as it is unknown
    which one is the table's.
    """
    numbers = [match[0] for match in map(_TABLE_NUMBER.match, caption) if match]
    if len(numbers) > 1:
        return ", ".join(numbers)
    return _first_sentence(one_line(" ".join(caption)))


def _first_sentence(text: str) -> str:
    """The first sentence of a text, without its full stop."""
    sentences = list(split_sentences(text))
    return one_line(sentences[0]).rstrip(".") if sentences else ""
