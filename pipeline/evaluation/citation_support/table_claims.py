"""Compare the numbers of a claim with the cells of tables that the claim's words address.

A cell is addressed by a claim that has all words of its row's label and some of its column's. Of
several such cells, a number's is the one whose labels stand nearest to it in the claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pipeline.corpus.passages.table_cells import Table, TableCell, tables_in
from pipeline.embedding.lexical import term_id
from pipeline.evaluation.citation_support.claim_comparison import STATED_WORDS, Clash
from pipeline.evaluation.citation_support.claim_facts import (
    LINKS,
    Facts,
    Number,
    Span,
    cell_text,
)

# A word of a label or a claim; a full stop behind it says that it is shortened ("Acc.").
_WORD = re.compile(r"([^\W_]+(?:\.\d+)*)(\.?)")
# Of a label: commands of LaTeX, and remarks in parentheses ("(ours)").
_NOT_LABEL = re.compile(r"\\[a-z]+|\([^()]*\)")
_UNIT = re.compile(r"\(([^()\d]{1,12})\)")
_FROM_TO = re.compile(r"\bfrom\s(?P<first>\d+(?:\.\d+)?)\S{0,3}\sto\s(?P<second>\d+(?:\.\d+)?)")
_DIFFERENCE = re.compile(r"\bby\b[^,;:]{0,20}$")
# What a break between clauses counts as, in characters.
_BREAK = 200


@dataclass(frozen=True)
class _Cell:
    """A cell with the words of its labels, and the number that it holds alone."""

    table: Table
    cell: TableCell

    @cached_property
    def row(self) -> list[str]:
        return _label_words(self.cell.row)

    @cached_property
    def column(self) -> list[str]:
        return _label_words(self.cell.column)

    @cached_property
    def number(self) -> Number | None:
        unit = _UNIT.search(self.cell.column)
        text = f"{self.cell.value} {unit[1]}" if unit else self.cell.value
        return next(iter(Facts(text).numbers), None)

    def is_beside(self, other: _Cell) -> bool:
        """Whether both stand in one row or one column of a table."""
        return self.table is other.table and (
            self.cell.row == other.cell.row or self.cell.column == other.cell.column
        )


@dataclass(frozen=True)
class _Address:
    """A cell whose labels a claim has. column: the share of the column's words that it has; places:
    where it has words of the labels.
    """

    cell: _Cell
    column: float
    places: list[int]


@lru_cache(maxsize=1 << 10)
def _cells_of(text: str) -> list[_Cell]:
    """The cells with a number of a passage's tables."""
    cells = [_Cell(table, cell) for table in tables_in(text) for cell in table.cells()]
    return [cell for cell in cells if cell.number and cell.row and cell.column]


def stated_by_cells(claim: str, text: str, work: str) -> str:
    """The cells of a passage's tables that state a claim, with its names and most of its words; ""
    where they do not. work: title and authors of the cited work.
    """
    addresses = _addresses(claim, _cells_of(text))
    if not addresses:
        return ""
    ours = Facts(claim)
    if ours.negations or ours.quantifiers or not _changes_as_numbers_say(ours):
        return ""
    cells, others = [], []
    for number in ours.numbers:
        cell = _cell_of(ours, number, addresses)
        if number.is_plain and cell and cell.number and number.equals(cell.number):
            cells.append(cell)
        else:
            others.append(number)
    if not cells or not _has_all(others, cells) or not _has_words(ours, cells, work):
        return ""
    return "; ".join(dict.fromkeys(cell_text(cell.cell) for cell in cells))


def clash_with_cell(
    claim: str, texts: Sequence[str], prose: Sequence[Number], work: str
) -> Clash | None:
    """A clash of a claim's number with the cell that it addresses, where the number is that of
    another row or column of the table. texts: of passages; prose: the numbers of their sentences.
    work: title and authors of the cited work.

    A claim that compares, or has the cell's number too, may give the other for what it does not
    name: "raises it from 0.52 to 0.69".
    """
    cells_of_passages = [_cells_of(text) for text in texts]
    addresses_of_passages = [_addresses(claim, cells) for cells in cells_of_passages]
    ours = Facts(claim)
    if not any(addresses_of_passages) or any(word.direction for word in ours.words):
        return None
    for number in ours.numbers:
        if not number.is_plain or not (number.decimals > 0 or number.unit):
            continue
        is_difference = _DIFFERENCE.search(claim, 0, number.span[0])
        if is_difference or any(map(number.equals, prose)):
            continue
        for passage, addresses in enumerate(addresses_of_passages):
            cell = _cell_of(ours, number, [address for address in addresses if address.column == 1])
            if cell is None or not cell.number or number.unit not in ("", cell.number.unit, "%"):
                continue
            cells = cells_of_passages[passage]
            same = [cell for cell in cells if cell.number and number.equals(cell.number)]
            if any(address.cell in same for address in addresses):
                break
            if any(map(cell.number.equals, ours.numbers)):
                continue
            if any(map(cell.is_beside, same)) and _has_words(ours, [cell], work):
                return Clash(number.text, cell.cell.value, cell_text(cell.cell), passage, 1.0)
    return None


def _changes_as_numbers_say(ours: Facts) -> bool:
    """Whether each direction of a claim is that of its numbers: "raises it from 0.52 to 0.69"."""
    directions = [word.direction[1] for word in ours.words if word.direction]
    changes = [
        1 if float(match["second"]) > float(match["first"]) else -1
        for match in _FROM_TO.finditer(ours.text)
    ]
    return directions == changes


def _has_all(numbers: Sequence[Number], cells: Sequence[_Cell]) -> bool:
    """Whether labels and captions of cells have numbers, which are parts of names: "Llama 2"."""
    words = {word for cell in cells for word in (*cell.row, *cell.column)}
    theirs = _labels_and_captions(cells).numbers
    return all(
        number.text.lower() in words or any(map(number.equals, theirs)) for number in numbers
    )


def _has_words(ours: Facts, cells: Sequence[_Cell], work: str) -> bool:
    """Whether labels and captions of cells have the names of a claim and most of its words."""
    context = _labels_and_captions(cells).all_stems | Facts(work).all_stems
    words = ours.stems_beside_numbers - {term_id(word) for word in LINKS}
    numbers = len(ours.numbers)
    share = (len(words & context) + numbers) / (len(words) + numbers)
    return ours.names <= context and share >= STATED_WORDS


def _labels_and_captions(cells: Sequence[_Cell]) -> Facts:
    labels = [f"{cell.cell.row} {cell.cell.column}" for cell in cells]
    return Facts(" ".join([*labels, *(line for cell in cells for line in cell.table.caption)]))


def _label_words(label: str) -> list[str]:
    text = _NOT_LABEL.sub(" ", label).lower()
    return ["".join(match.groups()) for match in _WORD.finditer(text)]


def _addresses(claim: str, cells: Sequence[_Cell]) -> list[_Address]:
    """The cells with the words of whose row, and some of whose column, a claim has."""
    if not cells:
        return []
    words = [(match[1], match.start()) for match in _WORD.finditer(claim.lower())]
    places_of: dict[str, list[int]] = {}
    addresses = []
    for cell in cells:
        for word in {*cell.row, *cell.column} - places_of.keys():
            places_of[word] = [place for other, place in words if _is_word(word, other)]
        rows = [places_of[word] for word in cell.row]
        columns = [places for word in cell.column if (places := places_of[word])]
        if rows and all(rows) and columns:
            places = [place for places in [*rows, *columns] for place in places]
            addresses.append(_Address(cell, len(columns) / len(cell.column), places))
    # "Fever + SciFact" rather than "Fever".
    longest = {tuple(address.cell.row) for address in addresses}
    return [
        address
        for address in addresses
        if not any(set(address.cell.row) < set(row) for row in longest)
    ]


def _is_word(label: str, word: str) -> bool:
    if label.endswith(".") and len(label) > 3:
        return word.startswith(label[:-1])
    return label.rstrip(".") == word or term_id(label) == term_id(word)


def _cell_of(ours: Facts, number: Number, addresses: Sequence[_Address]) -> _Cell | None:
    """The cell that a claim means with a number; None where several would do."""
    ranked = sorted(
        ((-address.column, _distance(ours, number, address), address) for address in addresses),
        key=lambda entry: entry[:2],
    )
    if not ranked:
        return None
    best = [address.cell for *rank, address in ranked if rank == list(ranked[0][:2])]
    values = {cell.number.value for cell in best if cell.number}
    return best[0] if len(values) == 1 else None


def _distance(ours: Facts, number: Number, address: _Address) -> float:
    """How far the words of a cell's labels are from a number in a claim, on the average."""
    gaps = [
        gap
        for place in address.places
        if not number.span[0] <= place < number.span[1]
        for gap in _gaps(ours, number.span, place)
    ]
    return sum(gaps) / max(len(gaps), 1)


def _gaps(ours: Facts, span: Span, place: int) -> Iterator[int]:
    between = range(min(place, span[0]), max(place, span[0]))
    yield len(between) + _BREAK * sum(point in between for point in ours.breaks)
