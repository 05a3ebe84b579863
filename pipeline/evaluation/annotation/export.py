"""Export of what annotators receive: each has a page to read and a CSV sheet to fill in.

Texts come from papers and models. Jinja2 escapes them, and a page's policy allows nothing but its
own style, not even a request. Names of tasks and questions are not shown: they may reveal more than
annotators should know.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from pipeline.corpus.links import abstract_url
from pipeline.engine.sampling import shuffled
from pipeline.errors import SettingError
from pipeline.evaluation.annotation.study import Study
from pipeline.evaluation.prose import make_environment, policy_hash, printable
from pipeline.storage.writing import write_whole
from pipeline.text import one_line

_TEMPLATES = Path(__file__).parent / "templates"
# A cell that begins with one of these signs is computed when the file is opened, whatever quotes
# are around it; an apostrophe before it makes it text (OWASP, CSV Injection; CWE-1236). The
# full-width forms too: East Asian spreadsheet programs take them for the same signs. Where the
# program separates cells by semicolons, so does each within a text.
_FORMULA = re.compile(r"(^|;[\s\"]*)(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")


@dataclass(frozen=True, slots=True)
class Item:
    """A task or question as annotators see it.

    view: what the page's template renders. lines: unit id → what the sheet shows on its line, a
    cell for each of the export's `shown` columns.
    """

    name: str
    view: Mapping[str, object]
    lines: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Export:
    """A study with what its annotators see.

    shown: columns of the sheet to read by; words: further values of the page's template; notes:
    what the user should know; lacking: as of `ItemSelection`.
    """

    study: Study
    items: tuple[Item, ...]
    systems: tuple[str, ...]
    shown: tuple[str, ...]
    words: Mapping[str, object]
    notes: tuple[str, ...]
    lacking: Mapping[str, int]


def check_folder(folder: Path) -> None:
    """Raise SettingError if --to names a file."""
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"--to {folder} is a file: name a folder")


def write_files(export: Export, folder: Path, annotators: int) -> list[Path]:
    """Write a page and a sheet for each annotator into a folder, each file whole or absent, and
    return the paths.

    Everybody tires towards the end, and not of the same items: each annotator has them in an order
    of their own.
    """
    by_name = {item.name: item for item in export.items}
    files = []
    for number in range(1, annotators + 1):
        items = [
            by_name[name] for name in shuffled(export.study.seed, f"annotator {number}", by_name)
        ]
        page, sheet = folder / f"page-{number}.html", folder / f"sheet-{number}.csv"
        write_whole(page, _page(export, items, sheet.name, annotators))
        write_whole(sheet, _sheet(export, items, f"annotator-{number}"))
        files += [page, sheet]
    return files


def _sheet(export: Export, items: Iterable[Item], annotator: str) -> bytes:
    """The sheet: a line for each unit, nothing filled in but the annotator's name; UTF-8 with the
    mark that Excel needs to see it, lines as RFC 4180.
    """
    to_fill_in = tuple(export.study.row_class.model_fields)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(("study", "annotator", "unit", *export.shown, *to_fill_in))
    for item in items:
        for unit, cells in item.lines.items():
            shown = [_guarded(one_line(printable(cell))) for cell in cells]
            writer.writerow((export.study.study, annotator, unit, *shown, *[""] * len(to_fill_in)))
    return text.getvalue().encode("utf-8-sig")


def _guarded(text: str) -> str:
    return _FORMULA.sub(r"\1'", text)


def _page(export: Export, items: Iterable[Item], sheet: str, annotators: int) -> bytes:
    text = (
        _environment()
        .get_template(f"{export.study.kind}.html.j2")
        .render(
            name=export.study.study,
            items=[item.view for item in items],
            sheet=sheet,
            annotators=annotators,
            **export.words,
        )
    )
    return f"{text.rstrip()}\n".encode()


@cache
def _environment() -> Environment:
    environment = make_environment(_TEMPLATES)
    environment.filters["abstract_url"] = abstract_url
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own file, which the policy names by its hash
        style_hash=policy_hash(style),
    )
    return environment
