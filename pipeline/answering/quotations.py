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
# A cell that begins with a number: "12.5", "$\pm 3$", "~40 %".
_NUMBER_CELL = re.compile(r"[\s$\\{}~≈<>+\-–−±(]*(?:\w+\{)?\d")
_HAS_LETTER = re.compile(r"[^\W\d_]")
# Bars within a cell are escaped.
_BAR = re.compile(r"(?<!\\)\|")
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
        has_number = _NUMBER_CELL.match(self.text) is not None
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
    """The cells of a passage's tables that hold a value, each with its row and column."""
    for title, header, rows in _tables_of(passage):
        above = ""
        width = _label_columns(rows)
        for columns, cells in _labelled_rows(header, rows):
            # An empty label stands for the one above it.
            above = cells[0] or above
            label = ", ".join(filter(None, [above, *cells[1:width]]))
            for column, value in zip(columns[width:], cells[width:], strict=False):
                if not value or not label or len(value) > _MOST_VALUE_CHARS:
                    continue
                row, name = label[:_MOST_LABEL_CHARS], column[:_MOST_LABEL_CHARS]
                parts = [f"row “{row}”", f"column “{name}”" if name else "", title]
                yield Quotation(value, passage, ", ".join(filter(None, parts)), (row, name))


def _label_columns(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first columns label the rows: those of words that follow the first, if its
    labels are not one for each row ("FinTabNet" for a row of OTSL and one of HTML).
    """
    labels = [row[0] for row in rows]
    width = 1
    if len(set(filter(None, labels))) < len(labels):
        shortest = min(map(len, rows))
        while width < shortest and _holds_words_alone([row[width] for row in rows]):
            width += 1
        # A table without numbers has its values in words.
        if width == shortest:
            return 1
    return width


def _holds_words_alone(cells: Sequence[str]) -> bool:
    return any(map(_HAS_LETTER.search, cells)) and not any(map(_NUMBER_CELL.match, cells))


def _labelled_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The labels of the columns, and the cells, of each row.

    A header whose labels span columns has a second row of labels below it, which may be repeated
    further down.
    """
    columns = header
    second: Sequence[str] = ()
    if "" in header[1:] and rows and not any(map(_NUMBER_CELL.match, rows[0][1:])):
        second = rows[0][1:]
        columns = _joined_labels(header, rows[0])
    for cells in rows:
        if cells[1:] != second:
            yield columns, cells


def _joined_labels(header: Sequence[str], second: Sequence[str]) -> list[str]:
    """Labels of both rows of a header; an empty one of the first continues the one before it."""
    columns, spanning = [], ""
    for first, below in zip(header, second, strict=False):
        spanning = first or spanning
        columns.append(f"{spanning} {below}".strip())
    return columns


def _tables_of(passage: Passage) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """The title, the header and the rows of each table."""
    if passage.kind != "table":
        return
    caption: list[str] = []
    lines: list[list[str]] = []
    for line in [*passage.content().splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in _BAR.split(line.strip())[1:-1]]
            if not all(set(cell) <= set("-: ") for cell in cells):
                lines.append(cells)
            continue
        if len(lines) > 1:
            yield _table_title(caption), lines[0], lines[1:]
        if lines:
            caption, lines = [], []
        caption.append(line)


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
