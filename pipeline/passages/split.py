"""Splitting text that is too long for one passage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from pipeline.passages.sentences import Span, clause_spans, line_spans, mask, sentence_spans
from pipeline.passages.text import count_words

Part = tuple[str, int]
"""A part of a text, and how many words it has."""
_Cut = Callable[[str, Span], Iterable[Span]]

_SENTENCES: tuple[_Cut, ...] = (
    sentence_spans,
    lambda masked, span: clause_spans(masked, span, 0),
    lambda masked, span: clause_spans(masked, span, 1),
    lambda masked, span: clause_spans(masked, span, 2),
)
_LINES: tuple[_Cut, ...] = (line_spans, *_SENTENCES)
_RULE = frozenset("|-: ")


def split_text(text: str, most_words: int) -> list[Part]:
    """Parts of a text, of much the same length and at most `most_words` words, cut at sentence ends.

    A sentence longer than that is cut at semicolons, commas, or else spaces. One formula or citation longer than that
    stays whole: half a formula is worse than a long passage.
    """
    return _split(text, most_words, _SENTENCES)


def split_lines(text: str, most_words: int) -> list[Part]:
    """Parts of a text whose lines matter (a list, an algorithm), cut between lines where they are near enough."""
    return _split(text, most_words, _LINES)


def split_table(markdown: str, most_words: int) -> list[Part]:
    """Parts of a Markdown table with its caption, cut between grids and rows.

    The caption stands over each grid, and caption and head over each part of a grid. Where they leave the rows less
    than three quarters of a part, the caption stands over the first alone, and then the head too.
    """
    lines = markdown.split("\n")
    heads = [number - 1 for number, line in enumerate(lines) if number and _is_rule(line)]
    if not heads or count_words(markdown) <= most_words:
        return split_lines(markdown, most_words)
    caption = lines[: heads[0]]
    grids = [lines[start:end] for start, end in zip(heads, [*heads[1:], len(lines)], strict=True)]
    return [part for grid in grids for part in _split_grid(caption, grid, most_words)]


def _split_grid(caption: list[str], grid: list[str], most_words: int) -> list[Part]:
    whole = "\n".join([*caption, *grid])
    if (words := count_words(whole)) <= most_words:
        return [(whole, words)]
    head, rows = grid[:2], "\n".join(grid[2:])
    for alone, above in (([], [*caption, *head]), (caption, head)):
        over = count_words("\n".join(above))
        if over * 4 <= most_words:
            first = split_lines("\n".join(alone), most_words) if alone else []
            parts = split_lines(rows, most_words - over)
            return [*first, *(("\n".join([*above, part]), over + words) for part, words in parts)]
    return split_lines(whole, most_words)


def _is_rule(line: str) -> bool:
    """Whether a line parts the head of a Markdown table from its rows."""
    return "-" in line and "|" in line and _RULE.issuperset(line)


def _split(text: str, most_words: int, cuts: Sequence[_Cut]) -> list[Part]:
    words = count_words(text)
    if words <= most_words:
        return [(text, words)]
    pieces = list(_pieces(text, mask(text), (0, len(text)), most_words, cuts))
    groups = _even_groups([words for _, words in pieces], most_words)
    return [
        (text[pieces[first][0][0] : pieces[last - 1][0][1]], sum(words for _, words in pieces[first:last]))
        for first, last in groups
    ]


def _pieces(text: str, masked: str, span: Span, most_words: int, cuts: Sequence[_Cut]) -> Iterator[tuple[Span, int]]:
    """The pieces that parts are made of, with their words: those of the first cut, cut again where too long."""
    for piece in cuts[0](masked, span):
        words = count_words(text[slice(*piece)])
        if words > most_words and len(cuts) > 1:
            yield from _pieces(text, masked, piece, most_words, cuts[1:])
        else:
            yield piece, words


def _even_groups(words: Sequence[int], most_words: int) -> list[Span]:
    """Groups of neighbours within `most_words`, as ranges: as few as can be, and even where that does not make more."""
    least = -(-sum(words) // most_words)
    for count in (least, least + 1):
        groups = _groups_by_middle(words, count)
        if all(sum(words[first:last]) <= most_words for first, last in groups):
            return groups
    return _full_groups(words, most_words)


def _groups_by_middle(words: Sequence[int], count: int) -> list[Span]:
    """The pieces by which of `count` equal stretches their middle lies in."""
    total, before = sum(words), accumulate(words, initial=0)
    places = [((2 * start + length) * count - 1) // (2 * total) for start, length in zip(before, words, strict=False)]
    starts = [number for number in range(len(words)) if number == 0 or places[number] != places[number - 1]]
    return list(zip(starts, [*starts[1:], len(words)], strict=True))


def _full_groups(words: Sequence[int], most_words: int) -> list[Span]:
    """Groups that each take as much as they can."""
    groups, first, held = [], 0, 0
    for number, more in enumerate(words):
        if number > first and held + more > most_words:
            groups.append((first, number))
            first, held = number, 0
        held += more
    return [*groups, (first, len(words))]
