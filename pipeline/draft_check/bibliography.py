"""Read a bibliography, BibTeX or the list of a `.bbl`, as entries, and write corrected BibTeX."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.arxiv.dois import plain_doi
from pipeline.corpus.latex_text import plain_field
from pipeline.draft_check.draft import Draft, Entry, read_text
from pipeline.draft_check.references import ReferenceCheck
from pipeline.storage.writing import write_whole
from pipeline.text import one_line

_BIBITEM = re.compile(
    r"\\bibitem\s*(?:\[(?:[^\[\]]|\{[^{}]*\})*\])?\s*\{([^{}]+)\}(.*?)(?=\\bibitem|\\end\{thebib|\Z)",
    re.DOTALL,
)
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)[a-z]?\b")
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s{}\"<>]+")
# In its field an id stands alone; in running text it needs its name before it.
_ID = r"(\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+(?:\.[A-Z]{2})?/\d{7}(?:v\d+)?)"
_BARE_ID = re.compile(rf"\s*(?:arxiv:)?\s*{_ID}\b", re.IGNORECASE)
_NAMED_ID = re.compile(rf"arxiv(?:\.org/(?:abs|pdf)/|[:\s]+|\.)\s*{_ID}", re.IGNORECASE)
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
_AND = re.compile(r"\s+and\s+")


def read_bibtex(file: Path, draft: Draft) -> None:
    """Add the entries of a `.bib` file to a draft; its problems name those that cannot be read.

    Raises SettingError as `read_text` does.
    """
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.model import DuplicateBlockKeyBlock

    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    library = parse_string(read_text(file))
    entries = [_entry_of_bibtex(entry, file) for entry in library.entries]
    for block in library.failed_blocks:
        if isinstance(block, DuplicateBlockKeyBlock):
            draft.duplicate_keys.append(str(block.key))
        else:
            draft.problems.append(
                f"{file.name}, line {(block.start_line or 0) + 1}: this entry is not valid BibTeX"
            )
    draft.add_entries(entries)


def _entry_of_bibtex(entry: Any, file: Path) -> Entry:
    fields = {field.key.lower(): str(field.value) for field in entry.fields}
    plain = {name: plain_field(value) for name, value in fields.items()}
    year = _YEAR.search(plain.get("year") or plain.get("date") or "")
    venue = next((plain[name] for name in _VENUE_FIELDS if plain.get(name)), None)
    return Entry(
        key=entry.key,
        kind=entry.entry_type.lower(),
        title=plain.get("title") or None,
        authors=read_names(fields.get("author", "")),
        year=int(year[1]) if year else None,
        venue=venue,
        doi=plain_doi(fields.get("doi")),
        arxiv_id=_arxiv_id(fields),
        file=file.name,
        line=(entry.start_line or 0) + 1,
        raw=" ".join(plain.values()),
    )


def _arxiv_id(fields: dict[str, str]) -> str | None:
    """The arXiv id of an entry, as it is written: in `eprint`, or named in its other fields."""
    bare = _BARE_ID.match(fields.get("eprint", ""))
    if bare and fields.get("archiveprefix", "arxiv").lower() == "arxiv":
        return bare[1]
    named = _NAMED_ID.search(" ".join(fields.get(name, "") for name in _FIELDS_WITH_ID))
    return named[1] if named else None


def read_names(text: str) -> tuple[str, ...]:
    """The names of an `author` field in reading order; without "others"."""
    names = []
    for name in _AND.split(one_line(text)):
        family, _, given = plain_field(name).partition(",")
        if family and family.lower() not in ("others", "et al."):
            names.append(f"{given.strip()} {family.strip()}".strip())
    return tuple(names)


def read_bbl(file: Path, draft: Draft) -> None:
    """Add the items of a `.bbl` to a draft. Raises SettingError as `read_text` does."""
    text = read_text(file)
    entries = []
    for match in _BIBITEM.finditer(text):
        blocks = [plain_field(block).strip(" .,") for block in match[2].split("\\newblock")]
        line = text.count("\n", 0, match.start()) + 1
        entries.append(read_item(match[1].strip(), blocks, file.name, line))
    if not entries:
        draft.problems.append(f"{file.name} has no \\bibitem: give the .bib file with --bib")
    draft.add_entries(entries)


def read_item(key: str, blocks: list[str], file: str, line: int) -> Entry:
    """An entry from the blocks of a printed item: authors, title, and the rest."""
    raw = " ".join(blocks)
    year, doi, named = _YEAR.search(raw), _DOI.search(raw), _NAMED_ID.search(raw)
    title = blocks[1] if len(blocks) > 1 else None
    authors = []
    if len(blocks) > 1:
        names = [name.strip() for name in re.split(r",\s*(?:and\s+)?|\s+and\s+", blocks[0])]
        authors = [name for name in names if " " in name and "et al" not in name]
    return Entry(
        key=key,
        kind="item",
        title=title or None,
        authors=tuple(authors),
        year=int(year[1]) if year else None,
        venue=blocks[2] if len(blocks) > 2 else None,
        doi=plain_doi(doi[0].rstrip(".,")) if doi else None,
        arxiv_id=named[1] if named else None,
        file=file,
        line=line,
        raw=raw,
    )


def write_bibliography(source: Path, references: Sequence[ReferenceCheck], target: Path) -> int:
    """Write a `.bib` file with arXiv's title, authors and year where an entry differs.

    An entry with an arXiv paper gets its `eprint`, where it has none. Suspicious entries are left
    to the author, and others stay as they are. Returns how many were corrected.
    """
    from bibtexparser.entrypoint import parse_string, write_string
    from bibtexparser.model import Field

    library = parse_string(read_text(source))
    by_key = {check.key: check for check in references}
    corrected = 0
    for entry in library.entries:
        check = by_key.get(entry.key)
        if check is None or check.record is None or check.status not in ("differs", "verified"):
            continue
        fields = {difference.field for difference in check.differences}
        if "title" in fields and check.record.title:
            entry.set_field(Field("title", f"{{{check.record.title}}}"))
        if "authors" in fields:
            entry.set_field(Field("author", " and ".join(check.record.authors)))
        if "year" in fields and check.record.published:
            entry.set_field(Field("year", check.record.published[:4]))
        if "eprint" not in {field.key.lower() for field in entry.fields}:
            entry.set_field(Field("eprint", check.record.arxiv_id))
            entry.set_field(Field("archiveprefix", "arXiv"))
        corrected += bool(fields)
    write_whole(target, write_string(library).encode())
    return corrected
