"""The facts of a source, each checked against what the parser reads from the page made from it."""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from tests.conformance.scoring import contains
from tests.facts.latex import words

KINDS = (
    "title", "author names", "abstract", "section titles", "section parents", "5-word runs",
    "order of runs", "no text twice", "table heads", "table cells", "captions", "footnotes",
    "list items", "statements", "algorithm steps", "code lines", "code indentation",
    "display formulas", "inline formulas", "citations",
)  # fmt: skip
_RUN = 5
_MARKER = re.compile(r"\[@[^\]]*\]")
_MATH = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
_SCRIPT = r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\\[A-Za-z]+|[^\\{])"
_SCRIPTS = re.compile(rf"\^{_SCRIPT}\s*_{_SCRIPT}")
_LINE_MARK = re.compile(r"^\s*(?:[-•*]|\(?\w{1,4}[.):])\s*")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a source says, and whether the parsed page says it."""

    kind: str
    expected: str
    holds: bool
    read: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A work of the bibliography: its title and the family name of its first author.

    prints_title: whether the page prints its title; some styles do not.
    """

    title: str
    family: str
    prints_title: bool = True

    def is_in(self, item):
        """Whether an item's text is of this work."""
        return contains(words(item), words(self.title if self.prints_title else self.family))


class Reading:
    """A parsed page in the forms in which facts are looked up."""

    def __init__(self, page):
        self.page = page

    def blocks(self, *kinds):
        return [block for block in self.page.blocks if block.kind in kinds]

    @cached_property
    def words(self):
        """The words of all blocks, in their order."""
        return [word for block in self.page.blocks for word in text_words(block.text)]

    @cached_property
    def places(self):
        """Where each run of words begins."""
        places = {}
        for run, place in _windows(self.words):
            places.setdefault(run, []).append(place)
        return places

    @cached_property
    def formulas(self):
        """Displayed and inline formulas, as `formula_key` writes them."""
        texts = [self.page.abstract or "", *(block.text for block in self.page.blocks)]
        displayed, inline = set(), set()
        for text in texts:
            for match in _MATH.finditer(text):
                if match[1] is not None:
                    displayed.add(formula_key(match[1]))
                else:
                    inline.add(formula_key(match[2]))
        return displayed, inline


def text_words(text):
    """The words of a block's text, without citations and formulas."""
    return words(_MATH.sub(" ", _MARKER.sub(" ", text)))


def formula_key(tex):
    """A formula without what TeX and LaTeXML may write in several ways."""
    tex = re.sub(
        r"\\(?:label|tag)\{[^}]*\}|\\(?:displaystyle|nonumber|!)(?![a-zA-Z])|\\hspace\{[^}]*\}|\\hskip[^a-z]*pt",
        "",
        tex,
    )
    tex = tex.replace("\\leq", "\\le").replace("\\geq", "\\ge").replace("\\neq", "\\ne")
    tex = re.sub(r"'+", lambda primes: f"^{{{len(primes[0]) * chr(92) + 'prime'}}}", tex)
    tex = _SCRIPTS.sub(r"_\2^\1", tex)
    tex = re.sub(
        r"\\(?:left|right|bigl|bigr|mathrm|mathit|mit|mathop|operatorname\*?)(?![a-zA-Z])", "", tex
    )
    return re.sub(r"[\s{}&~,.;]|\\[,;: ]", "", tex)


def facts_of(source, page, works, authors):
    """Every fact of a source. works: what the bibliography prints, by key."""
    reading = Reading(page)
    if source.title:
        yield Fact(
            "title", source.title, words(source.title) == words(page.title or ""), page.title or ""
        )
    names = [author.name for author in page.authors]
    for name in authors:
        yield Fact("author names", name, name in names, "; ".join(names))
    yield from _abstract(source, page)
    yield from _sections(source, page)
    yield from _runs(source, reading)
    yield from _tables(source, reading)
    yield from _blocks(source, reading)
    yield from _lines(source, reading)
    displayed, inline = reading.formulas
    for tex in source.displayed:
        yield Fact("display formulas", tex, formula_key(tex) in displayed)
    for tex in source.inline:
        yield Fact("inline formulas", tex, formula_key(tex) in inline)
    yield from _citations(source, reading, works)


def _windows(text):
    for place in range(len(text) - _RUN + 1):
        yield tuple(text[place : place + _RUN]), place


def _runs_of(prose):
    """The words of a text in runs of five that do not overlap, but for the last."""
    for piece in prose.pieces:
        last = len(piece) - _RUN
        for start in [*range(0, last, _RUN), *([last] if last >= 0 else [])]:
            yield piece[start : start + _RUN]


def _contains_in_order(text, pieces):
    line, at = f" {' '.join(text)} ", 0
    for piece in pieces:
        at = line.find(f" {' '.join(piece)} ", at)
        if at < 0:
            return False
    return True


def _abstract(source, page):
    text = text_words(page.abstract or "")
    for prose in source.abstract:
        for run in _runs_of(prose):
            yield Fact("abstract", " ".join(run), contains(text, run))


def _sections(source, page):
    expected = [" ".join(words(heading.title)) for heading in source.headings]
    titles = [" ".join(text_words(section.title)) for section in page.sections]
    matched = {}
    for block in SequenceMatcher(None, expected, titles, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            matched[block.a + offset] = page.sections[block.b + offset]
    for place, heading in enumerate(source.headings):
        yield Fact("section titles", heading.title, place in matched, " | ".join(titles))
        above = next(
            (one for one in reversed(source.headings[:place]) if one.level < heading.level), None
        )
        if place in matched and above is not None:
            path = matched[place].path
            parent = path[-2] if len(path) > 1 else ""
            holds = text_words(parent) == words(above.title)
            yield Fact("section parents", f"{above.title} > {heading.title}", holds, parent)


def _runs(source, reading):
    runs = [run for prose in source.prose for run in _runs_of(prose)]
    everything = [run for prose in _all_prose(source) for run, _ in _windows(prose.words)]
    unique = {run for run in runs if everything.count(run) <= 1}
    place = -1
    for run in runs:
        places = reading.places.get(run, [])
        yield Fact("5-word runs", " ".join(run), bool(places))
        if not places or run not in unique:
            continue
        yield Fact("no text twice", " ".join(run), len(places) == 1)
        at = bisect_right(places, place)
        yield Fact("order of runs", " ".join(run), at < len(places))
        place = places[at] if at < len(places) else place


def _all_prose(source):
    return [*source.abstract, *source.prose, *source.footnotes, *source.captions]


def _tables(source, reading):
    grids = [grid for block in reading.blocks("table") for grid in table_grids(block.text)]
    for table in source.tables:
        first = [_cell_key(row[0]) for row in table.rows]
        grid = max(grids, key=lambda one: _likeness(one, first), default=[])
        yield from _table_facts(table, grid)


def _likeness(grid, first):
    return len({_cell_key(row[0]) for row in grid if row} & set(first))


def _table_facts(table, grid):
    head, rows = (grid[0], grid[1:]) if grid else ([], [])
    for column, expected in enumerate(table.heads):
        read = head[column] if column < len(head) else ""
        if expected:
            holds = all(word in words(read) for word in expected)
            yield Fact("table heads", " ".join(expected), holds, read)
    for number, row in enumerate(table.rows):
        for column, cell in enumerate(row):
            if not cell:
                continue
            read = rows[number][column] if number < len(rows) and column < len(rows[number]) else ""
            holds = _cell_key(cell) == _cell_key(read)
            yield Fact("table cells", f"{row[0]} / {cell}", holds, read)


def table_grids(text):
    """The Markdown tables in a text: lists of rows, the head first, without the line below it."""
    grids = [[]]
    for line in text.split("\n"):
        if not line.startswith("|"):
            grids.append([])
        elif not re.fullmatch(r"[|\s:-]+", line) or not grids[-1]:
            cells = re.split(r"(?<!\\)\|", line.strip()[1:-1])
            grids[-1].append([cell.strip() for cell in cells])
    return [grid for grid in grids if len(grid) > 1]


def _cell_key(cell):
    cell = re.sub(
        r"\\(?:textbf|mathbf|textsc|emph|textcolor\{\w+\})", "", cell.replace("\\tnote", "^")
    )
    cell = re.sub(r"\\(?=[|%&])", "", cell).replace("--", "–")
    return re.sub(r"[\s{}$*]", "", unicodedata.normalize("NFKC", cell)).casefold()


def _blocks(source, reading):
    """Captions, footnotes and statements, each in a block of its own kind."""
    lines = [
        text_words(line)
        for block in reading.blocks("caption", "table", "algorithm")
        for line in block.text.split("\n")
    ]
    for caption in source.captions:
        text = caption.words
        longest = len(text) + 4 * len(caption.pieces)
        holds = any(
            line[-1:] == text[-1:]
            and len(line) < longest
            and _contains_in_order(line, caption.pieces)
            for line in lines
        )
        yield Fact("captions", " ".join(text), holds)
    notes = [text_words(block.text) for block in reading.blocks("footnote")]
    for note in source.footnotes:
        yield Fact(
            "footnotes",
            " ".join(note.words),
            any(_contains_in_order(text, note.pieces) for text in notes),
        )
    statements = [text_words(block.text) for block in reading.blocks("theorem")]
    for name, prose in source.statements:
        holds = any(
            contains(text[: len(words(name)) + 3], words(name))
            and _contains_in_order(text, prose.pieces)
            for text in statements
        )
        yield Fact("statements", f"{name}: {' '.join(prose.words)}", holds)
    items = [
        text_words(_LINE_MARK.sub("", line))
        for block in reading.blocks("list", "theorem")
        for line in block.text.split("\n")
    ]
    for item in source.items:
        beginning = list(item.pieces[0][:_RUN])
        yield Fact(
            "list items",
            " ".join(beginning),
            any(line[: len(beginning)] == beginning for line in items),
        )


def _lines(source, reading):
    """Steps of algorithms and lines of code, in order."""
    lines = [line for block in reading.blocks("algorithm") for line in block.text.split("\n")]
    # Without the package of an algorithm, its steps are words of a paragraph.
    texts = [text_words(line) for line in lines] or [reading.words] * len(source.steps)
    at = 0
    for step in source.steps:
        place = next((n for n in range(at, len(texts)) if contains(texts[n], step)), None)
        yield Fact("algorithm steps", " ".join(step), place is not None)
        at = at if place is None else place + 1
    printed = [re.sub(r"^\s?\d+:?(?=\s|$)", "", line).rstrip() for line in lines]
    joined = ["".join(line.split()) for line in printed]
    at = 0
    for code in source.code:
        place = next(
            (n for n in range(at, len(joined)) if joined[n] == "".join(code.split())), None
        )
        yield Fact("code lines", code, place is not None)
        if place is not None and code.startswith(" "):
            yield Fact("code indentation", code, printed[place] == code, printed[place])
        at = at if place is None else place + 1


def _citations(source, reading, works):
    items = {item.key: item.raw for item in reading.page.bibliography}
    texts = [(text_words(block.text), block) for block in reading.page.blocks]
    for prose in source.prose:
        for beside, keys in prose.citations:
            cited = {
                key for text, block in texts if contains(text, beside) for key in block.cited_keys
            }
            for key in keys:
                holds = any(works[key].is_in(items.get(one, "")) for one in cited)
                yield Fact("citations", f"{' '.join(beside)} [{key}]", holds, " ".join(cited))
