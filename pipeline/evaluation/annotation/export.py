"""Export of what annotators receive: instructions, and for each a CSV sheet and an HTML form that works from disk.

Texts come from papers and models. Jinja2 escapes them, and a form's policy allows its own style and script by their
hashes and nothing else, not even a request (https://www.w3.org/TR/CSP3/); what depends on the study reaches the script
as attributes, so that the script has the same bytes in every form. Names of tasks and questions are not shown: they may
tell more than annotators should know.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.errors import SettingError
from pipeline.evaluation.annotation.study import Schema, Study, shuffled
from pipeline.evaluation.cited import printable
from pipeline.index.links import abstract_url
from pipeline.storage.writing import write_whole

# A cell that begins with one of these signs is computed when the file is opened, whatever quotes are around it; an
# apostrophe before it makes it text (OWASP, CSV Injection; CWE-1236).
# The full-width forms too: East Asian spreadsheet programs take them for the same signs.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_GUARDED = re.compile(r"''*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def guarded(text: str) -> str:
    """The text as a cell that no spreadsheet program computes; `unguarded` gives the text back."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """The text of a cell that `guarded` made, or the cell itself."""
    return cell[1:] if _GUARDED.match(cell) else cell


def csv_bytes(rows: Iterable[Sequence[str]]) -> bytes:
    """Rows as a CSV file with every cell guarded: UTF-8 with the mark that Excel needs to see it, lines as RFC 4180."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([guarded(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig")


_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Item:
    """A task or question as annotators see it.

    view: what the form's template renders. cells: unit id → the cells of the schema's columns `shown`.
    """

    name: str
    view: Mapping[str, object]
    cells: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Export:
    """A study with what its annotators see. words: further values of the templates; notes: what the user should know;
    lacking: as of `Selection`."""

    schema: Schema
    study: Study
    items: tuple[Item, ...]
    systems: tuple[str, ...]
    words: Mapping[str, object]
    notes: tuple[str, ...]
    lacking: Mapping[str, int]


def check_folder(folder: Path) -> None:
    """Raise SettingError if --to names a file."""
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"--to {folder} is a file: name a folder")


def write_files(export: Export, folder: Path, annotators: int) -> list[Path]:
    """Write what annotators receive into a folder, each file whole or absent, and return the paths."""
    content = annotator_files(export, annotators)
    for name, data in content.items():
        write_whole(folder / name, data)
    return [folder / name for name in content]


def annotator_files(export: Export, annotators: int) -> dict[str, bytes]:
    """File name → bytes of all that annotators receive."""
    files = {"README.txt": _render(export, f"{export.schema.name}.txt.j2", export.items, annotators)}
    for number in range(1, annotators + 1):
        items = _order(export, number)
        files[f"form-{number}.html"] = _render(export, f"{export.schema.name}.html.j2", items, annotators)
        files[f"sheet-{number}.csv"] = _sheet(export, items, f"annotator-{number}")
    return files


def _order(export: Export, number: int) -> list[Item]:
    """The items in an order of the annotator's own: everybody tires towards the end, and not of the same items."""
    by_name = {item.name: item for item in export.items}
    return [by_name[name] for name in shuffled(export.study.seed, f"annotator {number}", by_name)]


def _sheet(export: Export, items: Sequence[Item], annotator: str) -> bytes:
    """The sheet: one line for each unit, nothing filled in but the annotator's name."""
    empty = [""] * len(export.schema.filled_in)
    lines = [
        [export.study.study, annotator, unit, *empty, *(" ".join(printable(cell).split()) for cell in cells)]
        for item in items
        for unit, cells in item.cells.items()
    ]
    return csv_bytes([export.schema.columns, *lines])


def _render(export: Export, template: str, items: Sequence[Item], annotators: int) -> bytes:
    # Tells two forms of one name apart in a browser. Of what is seen, and so no clue to what is not.
    content = hashlib.sha256(repr(sorted(map(repr, items))).encode()).hexdigest()[:16]
    text = _environment().get_template(template).render(
        name=export.study.study, content=content, schema=export.schema, items=[item.view for item in items],
        annotators=annotators, units=len(export.study.units), **export.words,
    )  # fmt: skip
    return f"{text.rstrip()}\n".encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    style, script = ((_TEMPLATES / file).read_text(encoding="utf-8") for file in ("form.css", "form.js"))
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own file, between style tags, named in the policy by its hash
        script=Markup(script),  # noqa: S704 - our own file, between script tags, named in the policy by its hash
        policy=f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'",
    )
    environment.filters["abstract_url"] = abstract_url
    return environment


def _finalize(value: object) -> object:
    return printable(value) if type(value) is str else value


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
