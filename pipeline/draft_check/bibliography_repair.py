"""The bibliography with the title, authors and year that arXiv's metadata has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.draft_check.draft import read_text
from pipeline.draft_check.references import ReferenceCheck
from pipeline.storage.writing import write_whole


def write_bibliography(source: Path, references: Sequence[ReferenceCheck], target: Path) -> int:
    """Write a `.bib` file with entries that differ corrected; how many were. Other entries stay as they are.

    An entry with an arXiv paper gets its `eprint`, where it has none. Suspicious entries are left to the author.
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
