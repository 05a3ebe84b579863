"""Read the bibliographies of a draft as entries, and write corrected BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from drafts.author_lists import is_others
from drafts.bibtex import BibEntry, BibFile
from drafts.draft import (
    LARGEST_BIBLIOGRAPHY_BYTES,
    Draft,
    Entry,
    find_doi,
    find_year,
    name_of_parts,
    read_text,
    replace_spans,
)
from drafts.latex_project import split_keys
from drafts.latex_text import plain_field
from drafts.printed_references import read_bbl_text
from drafts.text import SPACES, one_line

if TYPE_CHECKING:
    from drafts.references import ReferenceCheck

# With more entries that are not cited, a file is a library: those are counted, not read.
MOST_UNCITED = 500
_DEEPEST_PARENTS = 5
# In its field an id stands alone; in running text it needs its name before it.
_ID = r"(\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+(?:\.[A-Z]{2})?/\d{7}(?:v\d+)?)"
_BARE_ID = re.compile(rf"\s*+(?:arxiv:\s*+)?{_ID}\b", re.IGNORECASE)
# DBLP has `volume = {abs/1706.03762}`.
_NAMED_ID = re.compile(
    rf"(?:arxiv(?:\.org/(?:abs|pdf)/\s*+|[:\s]++|\.\s*+)|\babs/){_ID}", re.IGNORECASE
)
_ADDRESS = re.compile(r"<?(?:https?://|www\.)\S+")
# NASA's ADS names journals by macros of AASTeX: `{\prl}`.
_MACRO = re.compile(r"\{?\\([A-Za-z]+)\}?")
_VENUE_FIELDS = (
    "booktitle",
    "journal",
    "journaltitle",
    "school",
    "institution",
    "publisher",
    "howpublished",
)
_FIELDS_WITH_ID = ("journal", "url", "doi", "note", "volume", "howpublished", "number")
_AND = re.compile(rf"[{{}}]|\\.|{SPACES}and\s+|;\s+", re.IGNORECASE)
_ENDS_IN_OTHERS = re.compile(r"\b(?:others|et\s*al\.?|and\s+more|…|\.\.\.)[\s{}]*$", re.IGNORECASE)
_COMMA = re.compile(r"[{}]|\\.|,")
_NAME_PART = re.compile(r"\b(family|given|prefix|suffix)\s*=\s*(\"[^\"]*\"|[^,]*)")
# Signs of TeX; a value without them is printed as it is, but for its braces.
_SPECIAL = re.compile(r"[\\$~^_%&#]|--|``|''")
_WHOLE = re.compile(r"\{[^{}]*\}")
_UNESCAPED = re.compile(r"(?<!\\)([&%#])")


def read_bibliographies(draft: Draft, files: Sequence[Path], *, every_entry: bool = False) -> None:
    """Add the entries of files, and of the BibTeX that the draft holds itself, to the draft.

    Of a file with more than `MOST_UNCITED` entries that the draft does not cite, only those that it
    cites are read, unless `every_entry`. Raises SettingError as `read_text` does.
    """
    sources = []
    macros = dict[str, str]()
    for text, name, line in draft.embedded:
        sources.append(BibFile(text, name, line, macros))
    for file in files:
        text = read_text(file, LARGEST_BIBLIOGRAPHY_BYTES)
        suffix = file.suffix.lower()
        if suffix == ".bbl":
            read_bbl_text(text, file.name, draft)
        elif suffix in (".bib", ".bibtex"):
            sources.append(BibFile(text, file.name, macros=macros))
        else:
            draft.add_not_understood("a bibliography that is no .bib or .bbl", file.name)
    _read_bibtex(draft, sources, every_entry=every_entry)


def _read_bibtex(draft: Draft, sources: Sequence[BibFile], *, every_entry: bool) -> None:
    stand_ins = dict[str, list[str]]()
    for source in sources:
        stand_ins |= source.stand_ins()
    draft.rename_keys(stand_ins)
    cited = {key.lower() for key in (*draft.cited_keys, *draft.listed)}
    every_entry = every_entry or not cited or "*" in cited
    entries = list[BibEntry]()
    for source in sources:
        uncited = sum(key.lower() not in cited for key in source.keys)
        is_library = uncited > MOST_UNCITED and not every_entry
        keys = cited if is_library else None
        entries += source.entries(keys)
        if is_library:
            draft.add_problem(f"{uncited:,} entries are never cited, and are not read", source.name)
    by_key = dict[str, BibEntry]()
    for entry in entries:
        by_key.setdefault(entry.key.lower(), entry)
    parents = _resolve_parents(by_key, sources)
    for entry in entries:
        for parent in _parents_of(entry):
            if parent.lower() not in by_key:
                message = f"{parent} passes fields on by crossref or xdata, and has no entry"
                draft.add_problem(message, entry.file, entry.line)
    for source in sources:
        draft.problems += source.problems
    draft.add_entries(
        [
            _entry_of_bibtex(entry)
            for entry in entries
            if entry.kind not in ("xdata", "set")
            and (entry.key.lower() not in parents or entry.key.lower() in cited)
        ]
    )


def _resolve_parents(by_key: dict[str, BibEntry], sources: Sequence[BibFile]) -> set[str]:
    """Give entries the fields of those that `crossref` and `xdata` name; the keys of the latter."""
    parents, new = set[str](), set(by_key)
    for _ in range(_DEEPEST_PARENTS):
        named = {name.lower() for key in new for name in _parents_of(by_key[key])}
        parents |= named
        new = named - by_key.keys()
        if not new:
            break
        for source in sources:
            for entry in source.entries(new):
                by_key.setdefault(entry.key.lower(), entry)
        new &= by_key.keys()
    for entry in by_key.values():
        _inherit(entry, by_key, _DEEPEST_PARENTS)
    return parents


def _parents_of(entry: BibEntry) -> list[str]:
    return split_keys(f"{entry.value('crossref')},{entry.value('xdata')}")


def _inherit(entry: BibEntry, by_key: Mapping[str, BibEntry], depth: int) -> None:
    if not depth or entry.inherited:
        return
    crossref = entry.value("crossref").strip()
    for name in _parents_of(entry):
        parent = by_key.get(name.lower())
        if parent is None or parent is entry:
            continue
        _inherit(parent, by_key, depth - 1)
        values = parent.values()
        if name == crossref:
            # The title of proceedings is the book's title of a paper in them.
            values.setdefault("booktitle", values.get("title", ""))
            for own in ("title", "subtitle", "titleaddon", "crossref", "xdata"):
                values.pop(own, None)
        entry.inherited = values | entry.inherited


def _entry_of_bibtex(entry: BibEntry) -> Entry:
    fields = entry.values()
    venues = (_venue(fields.get(name, "")) for name in _VENUE_FIELDS)
    venue = next((name for name in venues if name and not _ADDRESS.fullmatch(name)), None)
    titles = (_plain(fields.get(name, "")) for name in ("title", "subtitle"))
    title = ": ".join(filter(None, titles)) or None
    return Entry(
        key=entry.key,
        kind=entry.kind,
        title=title,
        authors=read_names(fields.get("author", "")),
        year=find_year(*(_plain(fields.get(name, "")) for name in ("year", "date"))),
        venue=venue,
        doi=find_doi(fields.get("doi", "")),
        arxiv_id=_arxiv_id(fields),
        file=entry.file,
        line=entry.line,
        names_all_authors=not _ENDS_IN_OTHERS.search(fields.get("author", "")),
    )


def _venue(value: str) -> str:
    macro = _MACRO.fullmatch(value.strip())
    return macro[1] if macro else _plain(value)


def _plain(value: str) -> str:
    if _SPECIAL.search(value):
        return plain_field(_UNESCAPED.sub(r"\\\1", value))  # BibTeX has no comments in values
    return one_line(value.replace("{", "").replace("}", ""))


def _arxiv_id(fields: Mapping[str, str]) -> str | None:
    """The arXiv id of an entry, as it is written: in `eprint`, or named in its other fields."""
    bare = _BARE_ID.match(fields.get("eprint", ""))
    kind = fields.get("archiveprefix") or fields.get("eprinttype") or "arxiv"
    if bare and kind.lower() == "arxiv":
        return bare[1]
    named = _NAMED_ID.search(" ".join(fields.get(name, "") for name in _FIELDS_WITH_ID))
    return named[1] if named else None


def read_names(text: str) -> tuple[str, ...]:
    """The names of an `author` field in reading order; without "others".

    A name in braces, as that of an organisation, is one name, with all its words.
    """
    names = []
    for name in _split(one_line(text), _AND):
        pieces = [piece.strip() for piece in _split(name, _COMMA)]
        # "Ann Lee, Bob Roe, Cid Moe, Dee Poe": no name of BibTeX has four parts.
        is_list = len(pieces) > 3 and "=" not in name
        for single in map(_name, pieces if is_list else [name.strip()]):
            if single and not is_others(single):
                names.append(single)
    return tuple(names)


def _split(text: str, separator: re.Pattern[str]) -> Iterator[str]:
    """The parts between separators outside of braces."""
    depth = start = 0
    for match in separator.finditer(text):
        if match[0] in "{}":
            depth += 1 if match[0] == "{" else -1
        elif match[0][0] != "\\" and depth <= 0:
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _name(text: str) -> str:
    if _WHOLE.fullmatch(text):
        return _plain(text)
    if "family=" in text.replace(" ", ""):
        parts = {name: _plain(value.strip(' "')) for name, value in _NAME_PART.findall(text)}
        return name_of_parts(parts)
    pieces = [_plain(piece).strip() for piece in _split(text, _COMMA)]
    suffix = pieces.pop(1) if len(pieces) == 3 else ""  # "Last, Jr., First"
    return " ".join(filter(None, (*pieces[1:], pieces[0], suffix)))


def merge_keys_by_case(draft: Draft) -> None:
    """Take a key and an entry that differ in case for one, as BibTeX does, with a note."""
    by_lower = dict[str, str]()
    lowered = {key.lower() for key in draft.cited_keys}
    for key, entry in draft.entries.items():
        # An item is read by LaTeX itself, whose keys differ.
        first = key if entry.kind == "item" else by_lower.setdefault(key.lower(), key)
        if first != key and key.lower() in lowered:
            message = f"{key} is {first} for BibTeX: the first entry counts"
            draft.add_problem(message, entry.file, entry.line)
    renamed = {
        key: [by_lower[key.lower()]]
        for key in draft.cited_keys
        if key not in draft.entries and key.lower() in by_lower
    }
    if not renamed:
        return
    draft.rename_keys(renamed)
    for cited, (key,) in renamed.items():
        entry = draft.entries[key]
        note = f"cited as {cited}: BibTeX takes keys that differ in case for one, biber does not"
        draft.entries[key] = replace(entry, notes=(*entry.notes, note))


def correct_bibliography(source: Path, references: Sequence[ReferenceCheck]) -> tuple[bytes, int]:
    """A `.bib` file with arXiv's title, authors or year where an entry differs surely, and how many
    entries were corrected.

    A field is corrected where two others agree with arXiv's record: nothing else of the file
    changes. Suspicious entries are left to the author.
    """
    content = source.read_bytes()
    try:
        text, encoding = content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), "latin-1"
    by_key = {check.key.lower(): check for check in references if check.status == "differs"}
    edits, corrected, seen = list[tuple[int, int, str]](), 0, set[str]()
    for entry in BibFile(text).entries(by_key.keys()):
        check = by_key[entry.key.lower()]
        if entry.key.lower() in seen or check.record is None:
            continue
        seen.add(entry.key.lower())
        of_entry = list(_edits(entry, check.corrections, encoding))
        edits += of_entry
        corrected += bool(of_entry)
    return replace_spans(text, sorted(edits)).encode(encoding), corrected


def _edits(
    entry: BibEntry, corrections: Mapping[str, str], encoding: str
) -> Iterator[tuple[int, int, str]]:
    """(start, end, new characters) of the fields that are corrected."""
    for name, value in corrections.items():
        own = entry.fields.get(name) or entry.fields.get("date" if name == "year" else name)
        if (
            own is None
            or own.literal is None
            or value.encode(encoding, "ignore").decode(encoding) != value
        ):
            continue
        value = _UNESCAPED.sub(r"\\\1", value)
        if own.name == "date" and not own.value.strip().isdecimal():
            continue  # a day and month are of the wrong year, too
        if own.literal == '"':
            value = f'"{value}"' if '"' not in value else f"{{{value}}}"
        elif own.literal == "{" or not value.isdecimal():
            value = f"{{{value}}}"
        yield own.start, own.end, value
