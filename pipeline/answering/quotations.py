"""Sentences and table cells of passages that may be quoted as an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.corpus.passage import Passage
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.text import one_line

_PROSE_KINDS = frozenset({"abstract", "paragraph", "list", "theorem"})
# Shorter sentences are headings and labels.
_FEWEST_WORDS, _MOST_WORDS = 5, 80
_MOST_ITEMS = 10
_TABLE_NUMBER = re.compile(r"(?:Table|Tab\.) [\dA-Z][\w.]*\w|(?:Table|Tab\.) \d")
_MOST_LABEL_CHARS, _MOST_VALUE_CHARS = 120, 60
_NOT_QUOTED_SECTIONS = re.compile(
    r"acknowledge?ments?|funding|author contributions?|checklist|ethic\w*|impact statement"
    r"|conflicts? of interest|competing interests?|reproducib\w{1,20} statement",
    re.IGNORECASE,
)
_ACKNOWLEDGES = re.compile(
    r"\b(?:we|authors?|i)\b[^.]{0,60}\b(?:thank|acknowledge|grateful)\b"
    r"|\b(?:was|is|were|are) (?:\w+ )?(?:supported|funded|sponsored) (?:\w+ )?by\b[^.]{0,199}"
    r"\b(?:grants?|foundation|award|contract|fellowship|agency|NSF|DARPA|ERC|council)\b",
    re.IGNORECASE,
)
_PLACE = (
    r"(?:tables?|tabs?\.?|figures?|figs?\.?|algorithms?|sections?|sec\.?|appendix|appendices"
    r"|equations?|eqs?\.?|chapters?|listings?)"
)
# Without backtracking: "1–2–3" is one number, and would be many ranges. A full stop that ends the
# sentence is no part of it.
_NUMBER = r"\(?(?-i:[\dA-Z])(?:[\w()–-]|\.(?!\s|\Z)){0,20}+"
_SIDE = r"(?:left|right|top|bottom|upper|lower|middle|center|centre)"
_SHOWS = (
    r"(?:shows?|presents?|lists?|gives?|illustrates?|depicts?|displays?|summari[sz]es?|reports?"
    r"|provides?|contains?|compares?|plots?|describes?|outlines?|details?|demonstrates?"
    r"|discuss(?:es)?|visuali[sz]es?|exemplif(?:y|ies)|is|are)"
)
_THIS_PART = (
    r"(?:this|the (?:next|following|remaining)) (?:sub)?"
    r"(?:section|chapter|appendix|paragraph)s?"
)
_POINTS_TO_PLACE = re.compile(
    # "Table 9 presents …", "Figure 2: …"
    rf"(?:(?:the )?{_SIDE} (?:of|part of|panel of) )?{_PLACE}"
    rf"\s*~?{_NUMBER}(?:\s*(?:,|and|&|to|–)\s*{_NUMBER}){{0,9}}\s*"
    rf"(?:[:.]\s|[^.]{{0,30}}?\b{_SHOWS}\b)"
    # "In Figure 3, we illustrate …", "In the next section, we …"
    rf"|(?:in|on|at) (?:the {_SIDE} of )?(?:{_PLACE} {_NUMBER}|{_THIS_PART})"
    r"[^,]{0,20},? (?:we|i)\b"
    rf"|{_THIS_PART}\b|(?:please )?(?:see|refer to|cf\.?) ",
    re.IGNORECASE,
)
# A cell that begins with a number: "12.5", "$\pm 3$", "~40 %".
NUMBER_CELL = re.compile(r"[\s$\\{}~≈<>+\-–−±(]*(?:\w+\{)?\d")
# Bars within a cell are escaped.
_BAR = re.compile(r"(?<!\\)\|")
_MARKER = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+")
# "Subsequently, we introduce OTSL in Section 4."
_ROADMAP = re.compile(
    rf"\bwe\b[^.]{{0,40}}\b(?:introduce|present|describe|discuss|show|report|evaluate|review|give)\b"
    rf"[^.]*\bin (?:section|sec\.?|appendix|chapter) {_NUMBER}",
    re.IGNORECASE,
)
_END = re.compile(r"[.!…。！](?:[\"”’'»)\]]*)$|\$$|\)$")
# Where a citation was taken out, a hole is left: "as proposed in."
_HOLE = re.compile(r"\b(?:in|by|of|from|with|to|see|and|following|as|like)\s*[.,;)]")
# Begins with a reference to the sentence before it, which is quoted with it.
_LEANS_BACK = re.compile(
    r"(?:this(?! (?:study|paper|work|article|survey|thesis)\b)|these|those|that|such|it|its|they"
    r"|their|he|she|here|however|thus|hence|therefore|moreover|furthermore|then|also|instead"
    r"|as a result|for (?:example|instance)|both|the (?:former|latter)|in particular|specifically"
    r"|namely|similarly|additionally|in other words)\b",
    re.IGNORECASE,
)
# Refers to that sentence further on: "Our webapp cannot handle such mentions."
_REFERS_BACK = re.compile(r"\bsuch (?!as\b|that\b|an?\b)\w")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Words of a passage that may answer a question.

    text: a sentence, two in a row, a list, the value of a table's cell, or a table's labels.
    place: the row, column and table of a cell, or the table of labels; empty for others.
    labels: the labels of a cell's row and column. sentences: the numbers of the sentences within
    the passage, from 0. leans: whether the second sentence refers to the first.
    """

    text: str
    passage: Passage
    place: str = ""
    labels: tuple[str, ...] = ()
    sentences: tuple[int, ...] = ()
    leans: bool = False

    def shown(self) -> str:
        """The quotation as an answer prints it."""
        return f"“{self.text}” ({self.place})" if self.place else f"“{self.text}”"

    def compared(self) -> str:
        """The text that is compared with a question."""
        return f"{self.place}: {self.text}" if self.place else self.text

    def headed(self) -> str:
        """The text that is compared with a question, below the headings of its sections."""
        return ". ".join((*self.passage.section_path, self.compared()))

    def continues(self, other: Quotation) -> bool:
        """Whether a quotation is another one with the sentence behind it, which refers to it."""
        return (
            self.leans and self.passage == other.passage and other.sentences == self.sentences[:1]
        )

    def repeats(self, other: Quotation) -> bool:
        """Whether one of two quotations says nothing that the other does not."""
        if self.passage == other.passage and set(self.sentences) & set(other.sentences):
            return True
        if self.place or other.place:
            return self == other
        return self.text in other.text or other.text in self.text


def quotable_sentences(passage: Passage) -> Iterator[tuple[Quotation, ...]]:
    """The sentences of a passage that can be understood by themselves: each alone, and with the
    one before it. A sentence that refers to the one before it comes only with that one.

    Captions, tables and acknowledgements have none. Questions, headings, sentences that end in a
    colon, and sentences that only say what a table or a section shows are left out.
    """
    if not _is_prose(passage):
        return
    before = ""
    for number, sentence in enumerate(split_sentences(passage.content())):
        text = _MARKER.sub("", one_line(sentence))
        if not _is_statement(text):
            before = ""
            continue
        readings = []
        leans = bool(_LEANS_BACK.match(text) or _REFERS_BACK.search(text))
        if not leans and len(text.split()) >= _FEWEST_WORDS:
            readings.append(Quotation(text, passage, sentences=(number,)))
        both = f"{before} {text}"
        if before and len(both.split()) <= _MOST_WORDS:
            numbers = (number - 1, number)
            readings.append(Quotation(both, passage, sentences=numbers, leans=leans))
        if readings:
            yield tuple(readings)
        before = text


def whole_list(passage: Passage) -> Iterator[Quotation]:
    """A list as one quotation: the sentence that introduces it, which ends in a colon, and the
    first sentence of each item; nothing for a passage without one.
    """
    if passage.kind != "list" or not _is_prose(passage):
        return
    lines = [line.strip() for line in passage.content().splitlines() if line.strip()]
    items = [place for place, line in enumerate(lines) if _MARKER.match(line)]
    if len(items) < 2 or items[0] == 0:
        return
    introduction = list(split_sentences(lines[items[0] - 1]))[-1:]
    if not introduction or not introduction[0].endswith(":"):
        return
    firsts = [_first_sentence(_MARKER.sub("", lines[place])) for place in items]
    text = one_line(f"{introduction[0]} {' […] '.join(firsts[:_MOST_ITEMS])}")
    # More numbers than items, so that it repeats each sentence of the list that is quoted alone.
    yield Quotation(text, passage, sentences=tuple(range(len(items) + 2)))


def _is_prose(passage: Passage) -> bool:
    """Whether sentences of a passage may be quoted."""
    path = " ".join(passage.section_path)
    return passage.kind in _PROSE_KINDS and not _NOT_QUOTED_SECTIONS.search(path)


def _is_statement(text: str) -> bool:
    """Whether a text is a whole sentence, and no pointer into the paper or acknowledgement."""
    return (
        len(text.split()) <= _MOST_WORDS
        and bool(_END.search(text))
        and not _POINTS_TO_PLACE.match(text)
        and not _ROADMAP.search(text)
        and not _HOLE.search(text)
        and not _ACKNOWLEDGES.search(text)
    )


def table_cells(passage: Passage) -> Iterator[Quotation]:
    """The cells of a passage's tables that hold a value, each with its row and column."""
    for title, header, rows in _tables_of(passage):
        above = ""
        for columns, cells in _labelled_rows(header, rows):
            # An empty label stands for the one above it.
            above = label = cells[0] or above
            for column, value in zip(columns[1:], cells[1:], strict=False):
                if not value or not label or len(value) > _MOST_VALUE_CHARS:
                    continue
                row, name = label[:_MOST_LABEL_CHARS], column[:_MOST_LABEL_CHARS]
                parts = [f"row “{row}”", f"column “{name}”" if name else "", title]
                yield Quotation(value, passage, ", ".join(filter(None, parts)), (row, name))


def _labelled_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The labels of the columns, and the cells, of each row.

    A header whose labels span columns has a second row of labels below it, which may be repeated
    further down.
    """
    columns = header
    second: Sequence[str] = ()
    if "" in header[1:] and rows and not any(map(NUMBER_CELL.match, rows[0][1:])):
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


def table_labels(passage: Passage) -> Iterator[Quotation]:
    """The labels of the rows, and those of the columns, of a passage's tables."""
    for title, header, rows in _tables_of(passage):
        table = title or "a table"
        for axis, labels in (("columns", header[1:]), ("rows", [cells[0] for cells in rows])):
            distinct = list(dict.fromkeys(filter(None, labels)))
            if len(distinct) > 1:
                text = ", ".join(label[:_MOST_LABEL_CHARS] for label in distinct[:_MOST_ITEMS])
                yield Quotation(text, passage, f"{axis} of {table}")


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
    numbered = [line for line in caption if _TABLE_NUMBER.match(line)]
    if len(numbered) > 1:
        return ", ".join(match[0] for line in numbered if (match := _TABLE_NUMBER.match(line)))
    return _first_sentence(one_line(" ".join(caption)))


def _first_sentence(text: str) -> str:
    """The first sentence of a text, without its full stop."""
    sentences = list(split_sentences(text))
    return one_line(sentences[0]).rstrip(".") if sentences else ""
