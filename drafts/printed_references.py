"""Read lists of references as styles print them, by the corpus's reader of printed references."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from drafts.author_lists import is_others
from drafts.draft import (
    Draft,
    Entry,
    find_doi,
    find_year,
    line_counter,
    name_of_parts,
)
from drafts.latex_scan import Latex, without_literals
from drafts.latex_text import plain_field
from drafts.lists import word_list
from drafts.text import one_line
from pipeline.corpus.parse.bibliography import ItemParts, read_bibliography

Place = Callable[[int], tuple[str, int]]

_BIBITEM = re.compile(r"\\(?:bibitem|harvarditem)(?![A-Za-z@])\*?")
_END = re.compile(r"\\end\s*\{thebibliography\}|\\end\s*\{references\}")
_BLOCK = re.compile(r"\\newblock(?![A-Za-z@])")
_COMMAND = re.compile(r"\\([A-Za-z@]+)\s*")
_EMPHASES = frozenset(("emph", "textit", "textsl"))
_QUOTING = frozenset(("enquote", "mkbibquote"))
_SWITCHES = re.compile(r"\{\\(?:em|it|sl|itshape|slshape)(?![A-Za-z])\s*")
_FIELDS = {"title": "title", "booktitle": "booktitle", "journal": "journal", "year": "year"}

# The .bbl of biblatex.
_ENTRY = re.compile(r"\\entry\{([^{}]+)\}\{([a-z]+)\}")
_FIELD = re.compile(r"\\(field|strng|verb|name|list)\{(\w+)\}")
_VERB = re.compile(r"\s*\\verb ([^\n]*)")
_NAME_DELIMITER = re.compile(r"\\bib(?:name|init)delim[a-z]?(?![A-Za-z])\s*")
_NAME_PART = re.compile(r"\b(prefix|family|given|suffix)=")


def read_bibitems(text: str, place: Place, draft: Draft) -> int:
    """Add the `\\bibitem`s of a list to a draft; place: file and line of an offset. How many."""
    latex = Latex(text)
    end = _END.search(text)
    heads = list(_BIBITEM.finditer(text, 0, end.start() if end else len(text)))
    limits = [*(head.start() for head in heads[1:]), end.start() if end else len(text)]
    parts, places = list[ItemParts](), list[tuple[str, int]]()
    for head, limit in zip(heads, limits, strict=False):
        label = latex.argument(head.end(), "[")
        key = latex.argument(latex.skip_options(head.end()))
        if head[0].startswith("\\harvard"):
            for _ in range(2):  # a label and a year are before the key
                key = latex.argument(key.after) if key else None
        if key is None:
            draft.add_problem(f"this {head[0]} has no key", *place(head.start()))
            continue
        item = _item(text[key.after : limit])
        item.key = one_line(key.text)
        item.label = plain_field(label.text[:200]) if label else ""
        parts.append(item)
        places.append(place(head.start()))
    draft.add_entries(read_items(parts, places))
    return len(heads)


def read_bbl_text(text: str, file: str, draft: Draft) -> None:
    """Add the items of a `.bbl` to a draft, in the form of BibTeX or of biblatex."""
    printed, _ = without_literals(_with_verbs(text))
    line_of = line_counter(printed)
    entries = list(_ENTRY.finditer(printed))
    limits = [*(entry.start() for entry in entries[1:]), len(printed)]
    draft.add_entries(
        [
            _entry_of_biblatex(entry, printed[entry.end() : limit], file, line_of(entry.start()))
            for entry, limit in zip(entries, limits, strict=False)
        ]
    )
    items = read_bibitems(printed, lambda offset: (file, line_of(offset)), draft)
    if not entries and not items:
        draft.add_problem(f"{file} has no \\bibitem: give the .bib file with --bib")


def read_items(parts: Sequence[ItemParts], places: Sequence[tuple[str, int]]) -> list[Entry]:
    """Entries of printed items at (file, line); the habits of the whole list decide."""
    entries = []
    for item, part, (file, line) in zip(read_bibliography(parts), parts, places, strict=True):
        named = dict(reversed(part.fields))
        authors = [words for name, words in part.fields if name in ("author", "person")]
        entries.append(
            Entry(
                key=part.key,
                kind="item",
                title=named.get("title") or item.title,
                authors=tuple(authors) or _people(item.authors),
                year=find_year(named.get("year", "")) or item.year,
                venue=named.get("booktitle") or named.get("journal") or item.venue,
                doi=item.doi,
                arxiv_id=_with_version(item.arxiv_id, part.raw),
                file=file,
                line=line,
                raw=part.raw,
            )
        )
    return entries


def _with_version(arxiv_id: str | None, raw: str) -> str | None:
    version = re.search(rf"{re.escape(arxiv_id)}(v\d{{1,3}})", raw) if arxiv_id else None
    return f"{arxiv_id}{version[1]}" if arxiv_id and version else arxiv_id


def _people(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if "et al" not in name and not is_others(name))


def _item(source: str) -> ItemParts:
    """The parts of an item: blocks, words in italics, addresses, and fields that a style names."""
    parts = ItemParts("")
    # IEEE's style ends a sentence with it.
    source = source.replace("\\bysame", "———").replace("\\hskip", " \\hskip")
    latex = Latex(_SWITCHES.sub(r"\\emph{", source))
    plain = _printed(latex, 0, len(latex.text), parts, 0)
    blocks = [plain_field(block).strip() for block in _BLOCK.split(plain)]
    parts.blocks = [block for block in blocks if block] if len(blocks) > 1 else []
    parts.raw = " ".join(filter(None, blocks))
    return parts


def _printed(latex: Latex, start: int, end: int, parts: ItemParts, depth: int) -> str:
    """LaTeX without the commands of bibliography styles; what they mark goes to the parts."""
    printed, done, position = list[str](), start, start
    while match := _COMMAND.search(latex.text, position, end):
        position, name = match.end(), match[1]
        argument = latex.argument(position) if name not in ("newblock",) else None
        is_show = name.startswith("show") and name != "showURL"
        if argument is None or depth > 20:
            continue
        second = latex.argument(argument.after) if name in word_list("second_is_printed") else None
        inner = second or argument
        if name in word_list("not_printed"):
            words = ""
        elif second or is_show or name in _EMPHASES or name in _QUOTING or name == "url":
            words = _printed(latex, inner.start, inner.end, parts, depth + 1)
        else:
            continue
        if name in ("href", "url", "Eprint"):
            parts.links.append(argument.text)
        if name in _EMPHASES:
            parts.emphases.append(plain_field(words).strip(" .,"))
        if name in _QUOTING:
            words = f"“{words}”"
        field = argument.text.strip() if name == "bibinfo" else ""
        field = "title" if name == "showarticletitle" else field
        if field in ("author", "person", *_FIELDS) and words.strip():
            parts.fields.append((field, plain_field(words).strip(" .,")))
        printed += [latex.text[done : match.start()], words]
        done = position = inner.after
    return "".join([*printed, latex.text[done:end]])


def _with_verbs(text: str) -> str:
    """A .bbl of biblatex with its `\\verb` lines, which no sign ends, as fields."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = _VERB.match(line)
        if match and number and lines[number - 1].strip().startswith("\\verb{"):
            name = lines[number - 1].strip()[len("\\verb{") : -1]
            lines[number - 1] = ""
            lines[number] = f"\\field{{{name}}}{{{match[1].strip()}}}"
    return "\n".join(lines)


def _entry_of_biblatex(head: re.Match[str], text: str, file: str, line: int) -> Entry:
    latex, fields, authors = Latex(text), dict[str, str](), list[str]()
    for match in _FIELD.finditer(text):
        value = latex.argument(match.end())
        if match[1] == "name":
            for _ in range(2):  # the number of names, and options
                value = latex.argument(value.after) if value else None
            if value and match[2] == "author":
                authors += _names_of_biblatex(value.text)
        elif value:
            fields.setdefault(match[2], plain_field(value.text))
    venue = next(filter(None, map(fields.get, ("journaltitle", "booktitle", "eventtitle"))), None)
    title = ": ".join(filter(None, (fields.get("title"), fields.get("subtitle"))))
    is_arxiv = fields.get("eprinttype", "arxiv").lower() == "arxiv"
    return Entry(
        key=head[1],
        kind=head[2],
        title=title or None,
        authors=tuple(authors),
        year=find_year(fields.get("year", ""), fields.get("date", "")),
        venue=venue,
        doi=find_doi(fields.get("doi", "")),
        arxiv_id=fields.get("eprint") if is_arxiv else None,
        file=file,
        line=line,
        names_all_authors="\\true{moreauthor}" not in text,
    )


def _names_of_biblatex(text: str) -> Iterator[str]:
    latex, position = Latex(text), text.find("{")
    while position >= 0 and (person := latex.argument(position)):
        parts = dict[str, str]()
        for match in _NAME_PART.finditer(text, person.start, person.end):
            value = latex.argument(match.end())
            if value:
                parts[match[1]] = plain_field(_NAME_DELIMITER.sub(" ", value.text))
        if name := name_of_parts(parts):
            yield name
        position = text.find("{", person.after)
