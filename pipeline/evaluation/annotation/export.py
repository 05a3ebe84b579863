"""Export of what annotators receive: a guide, and for each a page to read and a CSV sheet to fill
in.

Texts come from papers and models. Jinja2 escapes them, and a page's policy allows nothing but its
own style, not even a request. Names of tasks and questions are not shown: they may reveal more than
annotators should know.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Template
from markupsafe import Markup

from pipeline.engine.sampling import shuffled
from pipeline.evaluation.annotation.study import Study, StudyItem, Unit
from pipeline.evaluation.prose import make_environment, parted, policy_hash, printable
from pipeline.storage.writing import write_whole
from pipeline.text import one_line

_TEMPLATES = Path(__file__).parent / "templates"
# A cell that begins with one of these signs is computed when the file is opened, whatever quotes
# are around it; an apostrophe before it makes it text (OWASP, CSV Injection; CWE-1236). The
# full-width forms too: East Asian spreadsheet programs take them for the same signs. Where the
# program separates cells by semicolons, so does each within a text.
_FORMULA = re.compile(r"(^|;[\s\"]*)(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")


def write_files(
    study: Study, items: Iterable[StudyItem], folder: Path, annotators: int
) -> list[Path]:
    """Write the guide, and a page and a sheet for each annotator, into a folder, each file whole or
    absent, and return the paths.

    Everybody tires towards the end, and not of the same items: each annotator has them in an order
    of their own.
    """
    by_id = {item.item_id: item for item in items}
    template = _read_template()
    guide = folder / f"{study.kind}-guide.txt"
    write_whole(guide, (_TEMPLATES / guide.name).read_bytes())
    files = [guide]
    for number in range(1, annotators + 1):
        sheet = folder / f"{study.kind}-{number}.csv"
        page = sheet.with_suffix(".html")
        shown = [
            (by_id[item_id], [unit for unit in study.units.values() if unit.item_id == item_id])
            for item_id in shuffled(study.seed, f"annotator {number}", by_id)
        ]
        html = template.render(study=study.study, kind=study.kind, sheet=sheet.name, items=shown)
        write_whole(page, html.encode())
        write_whole(sheet, _sheet(study, shown, f"annotator-{number}"))
        files += [page, sheet]
    return files


def _sheet(
    study: Study, shown: Iterable[tuple[StudyItem, Sequence[Unit]]], annotator: str
) -> bytes:
    """The sheet: a line for each unit, nothing filled in but the annotator's name; UTF-8 with the
    mark that Excel needs to see it, lines as RFC 4180.
    """
    columns = study.sheet_format.columns
    text = io.StringIO()
    writer = csv.DictWriter(text, ("study", "annotator", "unit", "text", *columns))
    writer.writeheader()
    for item, units in shown:
        for unit in units:
            words = one_line(printable(unit.text or item.title))
            writer.writerow(
                {
                    "study": study.study,
                    "annotator": annotator,
                    "unit": unit.unit_id,
                    "text": _FORMULA.sub(r"\1'", words),
                }
            )
    return text.getvalue().encode("utf-8-sig")


def _read_template() -> Template:
    environment = make_environment(_TEMPLATES)
    environment.filters["parted"] = parted
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    # Our own file, which the page's policy names by its hash.
    environment.globals.update(style=Markup(style), style_hash=policy_hash(style))  # noqa: S704
    return environment.get_template("read.html.j2")
