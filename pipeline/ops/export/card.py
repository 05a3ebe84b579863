"""The card of an export (README.md): its contents, what is left out, its terms, and how to read it.

The same tables give the same bytes: it contains no date and no path of the machine.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline import __version__
from pipeline.ops.export.data_files import DataFile, ExportedTable
from pipeline.ops.export.rights import Texts, is_open, terms
from pipeline.text import one_line

CARD = "README.md"
_TEMPLATES = Path(__file__).parent / "templates"
# The hub's size categories, by their upper limits.
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
    (10_000_000_000, "1B<n<10B"),
)


@dataclass(frozen=True, slots=True)
class Contents:
    """An export: everything that its card describes, and where it is."""

    to: str
    """The folder."""
    texts: Texts
    sample: bool
    tables: Sequence[ExportedTable]
    files: Sequence[DataFile]
    left_out: Mapping[tuple[str, str], int]
    """(stage, reason) → how many things the stage left out."""
    licences: Mapping[str, int]
    """Address of a licence, or "" where it is unknown → papers under it; empty where no text is
    exported.
    """
    settings: Mapping[str, Any]
    """Settings that the tables were made with."""
    notes: Sequence[str]

    @property
    def open_papers(self) -> int:
        """Papers whose licence allows redistribution."""
        return sum(papers for licence, papers in self.licences.items() if is_open(licence))

    @property
    def terms(self) -> list[str]:
        """What may be done with it, a paragraph each."""
        return terms(self.texts, sample=self.sample)

    def as_json(self) -> dict[str, Any]:
        """The export as a JSON document."""
        return {
            "to": self.to,
            "texts": self.texts,
            "files": [
                {"path": file.path, "rows": file.rows, "bytes": file.bytes, "sha256": file.sha256}
                for file in self.files
            ],
            "columns_left_out": {
                exported.table.name: exported.columns_left_out for exported in self.tables
            },
            "licences": self.licences,
            "left_out": [
                {"stage": stage, "reason": reason, "count": count}
                for (stage, reason), count in self.left_out.items()
            ],
            "notes": self.notes,
            "terms": self.terms,
        }


def render_card(contents: Contents) -> bytes:
    """The card, in UTF-8."""
    tables = [exported.table.name for exported in contents.tables]
    rows = Counter(dict.fromkeys(tables, 0))
    for file in contents.files:
        rows[file.table.name] += file.rows
    text = (
        _environment()
        .get_template("card.md.j2")
        .render(
            front_matter=yaml.safe_dump(
                _front_matter(contents, rows), sort_keys=False, allow_unicode=True
            ),
            contents=contents,
            tables=tables,
            rows=rows,
            months=sorted({file.month for file in contents.files}),
            rows_of_month={(file.table.name, file.month): file.rows for file in contents.files},
            terms=contents.terms,
            is_open=is_open,
            version=__version__,
            example_table="passages" if "passages" in tables else tables[0],
        )
    )
    return text.encode()


def _front_matter(contents: Contents, rows: Mapping[str, int]) -> dict[str, Any]:
    """The YAML head that the hub and `datasets` read."""
    name = "citeloom: computer-science papers of arXiv"
    if contents.sample:
        name += " (sample)"
    most_rows = max(rows.values())
    size = next((label for limit, label in _SIZES if most_rows < limit), "10B<n<100B")
    return {
        "pretty_name": name,
        "language": ["en"],
        "license": "other",
        "license_name": "several-see-the-card",
        "size_categories": [size],
        "tags": ["arxiv", "scientific-papers"],
        "configs": [
            {"config_name": table, "data_files": [{"split": "train", "path": f"{table}/*.parquet"}]}
            for table in rows
        ],
    }


def _code(value: object) -> str:
    """A value as inline code in Markdown, on one line, also within a table."""
    text = one_line(str(value)).replace("`", "'").replace("|", "\\|")
    return f"`{text}`" if text else "–"


def _portable(value: object) -> str:
    """A setting's value without what identifies the machine: no folders, no addresses."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_portable, value))
    if not isinstance(value, str):
        return "" if value is None else json.dumps(value)
    if "://" in value:
        return "an address"
    return PurePath(value).name if PurePath(value).is_absolute() else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=False,  # noqa: S701 - Markdown, not HTML; the filter `code` escapes values
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(code=_code, portable=_portable, count=lambda number: f"{number:,}")
    return environment
