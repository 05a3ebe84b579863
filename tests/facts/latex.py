"""Read what a LaTeX source of the facts suite says, without the product's parser.

The sources were written for this suite, so this reads the LaTeX that they use, and no more.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from itertools import pairwise

from pylatexenc.latex2text import LatexNodes2Text

# Among the words of a text: something that is no word (a formula, a reference) was here.
_BREAK = "\x00"
_CITE = "\x01"

LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_DISPLAYED = ("equation", "align", "alignat", "gather", "eqnarray", "multline")
_STATEMENTS = (
    "theorem", "lemma", "corollary", "proposition", "definition", "example", "remark", "proof",
)  # fmt: skip
_LISTS = ("itemize", "enumerate", "description")
_CODE = ("lstlisting", "verbatim")
_CAPTIONED = ("figure", "table", "subfigure", "teaserfigure", "algorithm", "longtable")
# Environments whose text is no running text of the paper.
_SKIPPED = (
    "CCSXML", "keyword", "keywords", "IEEEkeywords", "highlights", "titlepage", "icmlauthorlist",
    "tablenotes",
)  # fmt: skip
# Commands that are dropped with what stands in brackets and braces behind them.
_DROPPED = re.compile(
    r"\\(?:title|subtitle|author|authornote|email|orcid|affiliation|affil|address|institute|date"
    r"|authorrunning|titlerunning|thanks|ead|cortext|fntext|curraddr|tnotetext|tnoteref|journal|subjclass|subclass"
    r"|keywords|ccsdesc|acm[A-Z]\w*|setcopyright|copyrightyear|markboth|label|includegraphics"
    r"|bibliographystyle|bibliography|renewcommand|newcommand|icml\w+|printAffiliationsAndNotice"
    r"|editor|Description|vskip|tableofcontents|listoffigures|maketitle|appendix|appendices|nocite"
    r"|frontmatter|mainmatter|backmatter|twocolumn|onecolumn|IEEEmembership|centering|small"
    r"|noindent|qed|input)\b\*?"
)
_REFERENCE = re.compile(r"\\(?:eqref|autoref|[cC]ref|ref|pageref)\{[^}]*\}")
_CITATION = re.compile(r"\\cite\w*((?:\[[^\]]*\])*)\{([^}]+)\}")
_INLINE = re.compile(r"(?<!\\)\$((?:[^$\\]|\\.)+)\$")
_HEADING = rf"\\(?P<level>{'|'.join(LEVELS)})\*?(?:\[[^\]]*\])?(?=\{{)"
_NEXT = re.compile(rf"\\begin\{{(?P<name>\w+\*?)\}}|{_HEADING}|(?P<display>\\\[)")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")


def words(text):
    """The words of a text in small letters; every Chinese character is one."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Prose:
    """A stretch of text: the words between formulas, references and citations."""

    pieces: tuple[tuple[str, ...], ...]
    citations: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """(up to five words beside it, keys) of each citation."""

    @property
    def words(self):
        return [word for piece in self.pieces for word in piece]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """heads: the words above each column. rows: the cells below, as LaTeX."""

    heads: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Source:
    """What a source says, by kind, in document order."""

    title: str = ""
    abstract: list[Prose] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    prose: list[Prose] = field(default_factory=list)
    """Paragraphs, items of lists and statements: what has an order."""
    items: list[Prose] = field(default_factory=list)
    footnotes: list[Prose] = field(default_factory=list)
    captions: list[Prose] = field(default_factory=list)
    statements: list[tuple[str, Prose]] = field(default_factory=list)
    tables: list[SourceTable] = field(default_factory=list)
    displayed: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)
    steps: list[tuple[str, ...]] = field(default_factory=list)
    code: list[str] = field(default_factory=list)

    def cited_keys(self):
        """The keys of all works that the text cites, each once."""
        citations = [one for prose in self.prose for one in prose.citations]
        return list(dict.fromkeys(key for _, keys in citations for key in keys))

    def drop_citations(self):
        """Forget every citation."""
        self.prose = [Prose(prose.pieces) for prose in self.prose]


def read_source(tex):
    """Read a whole source."""
    source = Source()
    code = []

    def set_aside(match):
        code.append(match[0])
        return f"\x02{len(code) - 1}\x02"

    tex = re.sub(r"\\begin\{(lstlisting|verbatim)\}.*?\\end\{\1\}", set_aside, tex, flags=re.S)
    tex = re.sub(r"(?<!\\)%.*\n?", "", tex)
    tex = re.sub(r"\$\$(.*?)\$\$", r"\\[\1\\]", tex, flags=re.S)
    tex = re.sub(r"\\href\s*\{[^}]*\}", "", tex)
    tex = re.sub("\x02(\\d+)\x02", lambda match: code[int(match[1])], tex)
    title = re.search(r"\\(?:icml)?title(?:\[[^\]]*\])?(?=\{)", tex)
    if title:
        printed = re.sub(r"\\footnote(?=\{)", r"\\thanks", group(tex, title.end())[0])
        source.title = plain(_without_dropped(printed))
    subtitle = re.search(r"\\subtitle(?=\{)", tex)
    if subtitle:
        source.title += f": {plain(group(tex, subtitle.end())[0])}"
    body = tex.partition("\\begin{document}")[2].partition("\\end{document}")[0]
    _walk(source, body, source.prose)
    return source


def plain(tex):
    """The text of LaTeX without structure, on one line."""
    return " ".join(LatexNodes2Text().latex_to_text(tex).split())


def _walk(source, tex, prose):
    """Read running text with all that stands in it; `prose` takes its paragraphs."""
    text, at, running = "", 0, prose
    while True:
        following = _NEXT.search(tex, at)
        if following is None:
            break
        text += tex[at : following.start()]
        if following["level"]:
            title, at = group(tex, following.end())
            prose += _paragraphs(source, text)
            text = ""
            # Theses set their abstract as a chapter.
            prose = source.abstract if title == "Abstract" else running
            if title != "Abstract":
                source.headings.append(Heading(LEVELS.index(following["level"]), _heading(title)))
        elif following["display"]:
            end = tex.index("\\]", following.end())
            source.displayed += _display_rows(tex[following.end() : end])
            text, at = text + _BREAK, end + 2
        else:
            name = following["name"].rstrip("*")
            content, at = _environment(tex, following)
            if name in _DISPLAYED:
                source.displayed += _display_rows(content)
                text += _BREAK
            elif name in (*_CAPTIONED, "tabular", "threeparttable", "table", *_SKIPPED):
                _read_float(source, name, content)
                text += "\n\n" if name not in ("figure", "table", "algorithm") else " "
            else:
                prose += _paragraphs(source, text)
                text = ""
                _read_environment(source, name, content, prose)
    prose += _paragraphs(source, text + tex[at:])


def _read_environment(source, name, content, prose):
    if name == "abstract":
        _walk(source, content, source.abstract)
    elif name in _CODE:
        caption = re.search(r"\A\[.*?caption=(?=\{)", content)
        if caption:
            source.captions += _paragraphs(source, group(content, caption.end())[0])
        lines = re.sub(r"\A\[[^\n]*\]", "", content).strip("\n").split("\n")
        source.code += [line.rstrip() for line in lines if line.strip()]
    elif name in _LISTS:
        for item in re.split(r"\\item\b", re.sub(r"\A\[[^\]]*\]", "", content))[1:]:
            label = re.match(r"\s*\[([^\]]*)\]", item)
            text = f"{label[1]} {item[label.end() :]}" if label else item
            paragraphs = _paragraphs(source, text)
            source.items += paragraphs[:1]
            prose += paragraphs
    elif name in _STATEMENTS:
        title = re.match(r"\s*\[([^\]]*)\]", content)
        inner = []
        _walk(source, content[title.end() :] if title else content, inner)
        first = plain(_REFERENCE.sub("", title[1])) if title else name
        pieces = tuple(piece for paragraph in inner for piece in paragraph.pieces)
        source.statements.append((first, Prose(pieces)))
        prose += inner
    else:
        _walk(source, content, prose)


def _environment(tex, opening):
    """The content of an environment, and where what follows it begins."""
    name = re.escape(opening["name"])
    depth = 1
    for match in re.finditer(rf"\\(begin|end)\{{{name}\}}", tex[opening.end() :]):
        depth += 1 if match[1] == "begin" else -1
        if depth == 0:
            end = opening.end()
            return tex[end : end + match.start()], end + match.end()
    raise ValueError(f"{opening[0]} has no end")


def group(tex, at):
    """The group in braces that begins at a place, and where what follows it begins."""
    depth = 0
    for match in re.finditer(r"(?<!\\)[{}]", tex[at:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return tex[at + 1 : at + match.start()], at + match.end()
    raise ValueError(f"a group has no end: {tex[at : at + 60]!r}")


def _heading(title):
    return plain(_INLINE.sub(" ", _CITATION.sub("", title)))


# Floats.


def _read_float(source, name, content):
    if name in _SKIPPED:
        return
    for caption in re.finditer(r"\\caption(?:\[[^\]]*\])?(?=\{)", content):
        source.captions += _paragraphs(source, group(content, caption.end())[0])
    for caption in re.finditer(r"\\subfloat\[([^\]]*)\]", content):
        source.captions += _paragraphs(source, caption[1])
    if name == "longtable":
        source.tables.append(_table(content))
    tables = [
        _environment(content, opening)[0]
        for opening in re.finditer(r"\\begin\{(?P<name>tabular)\}", content)
    ]
    if not any("\\begin{tabular}" in table for table in tables):
        source.tables += map(_table, tables)
    if name == "tabular":
        source.tables.append(_table(content))
    if name == "algorithm":
        source.steps += _algorithm_steps(content)


def _algorithm_steps(content):
    """The words of every step: of an algorithm's text, the stretches between its commands."""
    content = re.sub(r"\A\[[^\]]*\]|\\label\{[^}]*\}|\\begin\{algorithmic\}(\[\d\])?", "", content)
    content = _INLINE.sub("\n", _REFERENCE.sub("\n", content))
    caption = re.search(r"\\caption(?=\{)", content)
    if caption:
        content = content[: caption.start()] + content[group(content, caption.end())[1] :]
    for piece in re.split(r"\\[A-Za-z]+\*?|\\;|[{}\n]", content):
        step = tuple(words(piece))
        if len(step) > 2:
            yield step


def _table(content):
    """The cells of a tabular. A row of data is the first in which numbers are the most."""
    content = re.sub(r"\\caption(?:\[[^\]]*\])?\{[^}]*\}(?:\\label\{[^}]*\})?\\\\", "", content)
    content = re.sub(
        r"\\(?:toprule|midrule|bottomrule|hline|endfirsthead|endhead|noalign\{[^}]*\}"
        r"|cline\{[^}]*\}|cmidrule(?:\([^)]*\))?\{[^}]*\})",
        "",
        content,
    )
    content = group(content.lstrip(), 0)[1:] and content.lstrip()[group(content.lstrip(), 0)[1] :]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)&", row)]
        for row in re.split(r"\\\\(?:\[[^\]]*\])?", content)
        if row.strip()
    ]
    spread = [_spread(row) for row in rows]
    data = (
        number
        for number, row in enumerate(rows)
        if not any(re.match(r"\\multicolumn\{[2-9]", cell) for cell in row)
        and _is_data(spread[number])
    )
    first = next(data, 0)
    width = max(map(len, spread))
    heads = []
    for column in range(width):
        above = [row[column] for row in spread[:first] if column < len(row)]
        heads.append(tuple(word for cell in above for word in words(cell_text(cell))))
    return SourceTable(tuple(heads), tuple(map(tuple, spread[first:])))


def _spread(row):
    """The cells of a row, those over several columns once for each of them."""
    cells = []
    for cell in row:
        over = re.fullmatch(r"\\multicolumn\{(\d)\}\{[^}]*\}\{(.*)\}", cell, flags=re.S)
        cell = over[2] if over else cell
        down = re.fullmatch(r"\\multirow\{\d\}\{\*\}\{(.*)\}", cell, flags=re.S)
        cells += [down[1] if down else cell] * (int(over[1]) if over else 1)
    return cells


def _is_data(row):
    filled = [cell for cell in row[1:] if cell]
    numbers = [
        cell
        for cell in filled
        if re.match(r"(?:\\text\w+\{(?:red\}\{)?|\$(?:\\mathbf\{)?)?\.?\d|--", cell)
    ]
    return bool(filled) and len(numbers) * 2 >= len(filled)


def cell_text(cell):
    """The text of a cell without its notes and formulas."""
    return plain(re.sub(r"\\tnote\{[^}]*\}|\$\^\{[^}]*\}\$", " ", _INLINE.sub(" ", cell)))


# Running text.


def _paragraphs(source, tex):
    """The paragraphs of running text that is left when all environments are out."""
    tex = _without_dropped(re.sub(r"\\IEEEPARstart\{(\w+)\}\{(\w+)\}", r"\1\2", tex))
    while match := re.search(r"\\(?:footnote|acks)(?=\{)", tex):
        note, end = group(tex, match.end())
        if match[0] == "\\acks":
            tex = f"{tex[: match.start()]}\n\n{note}\n\n{tex[end:]}"
            continue
        source.footnotes += _paragraphs(source, note)
        tex = tex[: match.start()] + tex[end:]
    for formula in _INLINE.finditer(tex):
        source.inline.append(formula[1])
    tex = _INLINE.sub(_BREAK, tex)
    tex = _REFERENCE.sub(_BREAK, tex)
    tex = re.sub(r"\\textsuperscript\{[^}]*\}", _BREAK, tex)
    tex = _CITATION.sub(lambda cite: f"{_CITE}{cite[2].replace(' ', '')}{_CITE}", tex)
    tex = re.sub(r"\\eg\b", "e.g.", tex).replace("\\par", "\n\n")
    paragraphs = map(_prose, re.split(r"\n\s*\n", tex))
    return [paragraph for paragraph in paragraphs if paragraph.words]


def _prose(tex):
    parts = tex.split(_CITE)
    pieces = []
    citations = []
    texts = [LatexNodes2Text(keep_comments=True).latex_to_text(part) for part in parts[::2]]
    split = [[tuple(words(piece)) for piece in text.split(_BREAK)] for text in texts]
    for keys, (before, after) in zip(parts[1::2], pairwise(split), strict=False):
        beside = before[-1][-5:] if len(before[-1]) >= 3 else after[0][:5]
        if len(beside) >= 3:
            citations.append((beside, tuple(keys.split(","))))
    pieces = [piece for part in split for piece in part if piece]
    return Prose(tuple(pieces), tuple(citations))


def _without_dropped(tex):
    """The text without commands that print nothing here, and without what is given to them."""
    while match := _DROPPED.search(tex):
        end = match.end()
        while end < len(tex) and tex[end] in "[{" and match[0] != "\\twocolumn":
            end = group(tex, end)[1] if tex[end] == "{" else tex.index("]", end) + 1
        tex = f"{tex[: match.start()]} {tex[end:]}"
    return tex


def _display_rows(content):
    content = re.sub(r"\\label\{[^}]*\}|\\nonumber|\A\{\d\}", "", content)
    for row in re.split(r"\\\\", content):
        if row.strip():
            yield row.strip()
