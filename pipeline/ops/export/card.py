"""The card of an export, README.md: what it holds, what it leaves out, what its licences forbid, how it is read.

Same tables, same bytes: no day and no machine's path is in it.
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
from pipeline.ops.export.files import DataFile
from pipeline.ops.export.rights import Texts, is_open
from pipeline.ops.export.shaping import Shape
from pipeline.ops.export.terms import terms

_TEMPLATES = Path(__file__).parent / "templates"
# The sizes that the hub knows, by their upper ends.
_SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"),
    (10_000_000_000, "1B<n<10B"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contents:
    """What a card tells of."""

    texts: Texts
    sample: bool
    repository: str | None
    """`owner/name` on the hub; None for a folder."""
    shapes: Sequence[Shape]
    files: Sequence[DataFile]
    losses: Mapping[tuple[str, str], int]
    """(stage, reason) → how many things it left out."""
    licences: Mapping[str, int]
    """Address of a licence, or "" where it is unknown → papers under it; empty where no words are exported."""
    settings: Mapping[str, Any]
    """Settings that the tables were made under."""
    notes: Sequence[str]

    @property
    def open_papers(self) -> int:
        """Papers whose licence lets their words be passed on."""
        return sum(papers for licence, papers in self.licences.items() if is_open(licence))


def card(contents: Contents) -> bytes:
    """The card, UTF-8."""
    tables = [shape.table.name for shape in contents.shapes]
    rows = Counter(dict.fromkeys(tables, 0))
    for file in contents.files:
        rows[file.table] += file.rows
    text = _environment().get_template("card.md.j2").render(
        front=yaml.safe_dump(_front(contents, rows), sort_keys=False, allow_unicode=True),
        contents=contents,
        tables=tables,
        rows=rows,
        months=sorted({file.month for file in contents.files}),
        cells={(file.table, file.month): file.rows for file in contents.files},
        terms=terms(contents.texts, sample=contents.sample),
        is_open=is_open,
        version=__version__,
        example=contents.repository or "path/to/this/folder",
        address=f"hf://datasets/{contents.repository}/" if contents.repository else "",
        shown=_example_table(tables),
    )  # fmt: skip
    return text.encode()


def _front(contents: Contents, rows: Mapping[str, int]) -> dict[str, Any]:
    """The YAML head that the hub and `datasets` read."""
    return {
        "pretty_name": "citeloom: computer-science papers of arXiv" + (" (sample)" if contents.sample else ""),
        "language": ["en"],
        "license": "other",
        "license_name": "several-see-the-card",
        "size_categories": [next((name for most, name in _SIZES if max(rows.values()) < most), "10B<n<100B")],
        "tags": ["arxiv", "scientific-papers"],
        "configs": [
            {"config_name": name, "data_files": [{"split": "train", "path": f"{name}/*.parquet"}]} for name in rows
        ],
    }


def _example_table(tables: Sequence[str]) -> str:
    return "passages" if "passages" in tables else tables[0]


def _code(value: object) -> str:
    """A value as code in Markdown, in a cell of a table too: whatever it holds, it stays one line of text."""
    text = " ".join(str(value).split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`" if text else "–"


def _setting(value: object) -> str:
    """A setting's value, or several, without what is a machine's own."""
    return _code(_portable(value))


def _portable(value: object) -> str:
    """Of a path its name alone, of an address nothing."""
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
        autoescape=False,  # noqa: S701 - Markdown, no HTML; `code` is what keeps values apart
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(code=_code, setting=_setting, count=lambda number: f"{number:,}")
    return environment
