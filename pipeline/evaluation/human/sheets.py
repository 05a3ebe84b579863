"""What raters get: a CSV sheet, an HTML form and instructions.

Texts come from papers and models, and are escaped (`forms`). The form never shows a name of a task: names from files
may tell more than raters should know, and a spreadsheet program would read 2405.10000 as a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.errors import SettingError
from pipeline.evaluation.cited import paragraphs, printable
from pipeline.evaluation.human.cells import csv_bytes
from pipeline.evaluation.human.choosing import Choice, ShownTask
from pipeline.evaluation.human.criteria import criteria
from pipeline.evaluation.human.forms import content_digest, render
from pipeline.storage.writing import write_whole
from pipeline.tables import CRITERIA

COLUMNS = ("study", "rater", "task", "label", *CRITERIA, "preferred", "comment", "title")
"""Columns of the sheet; `title` is for the rater's eyes."""


def check_folder(folder: Path) -> None:
    """Raise SettingError where what raters get cannot lie in a folder, because it is a file."""
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"--to {folder} is a file: name a folder")


def write_sheets(choice: Choice, folder: Path) -> list[Path]:
    """Write what raters get into a folder, each file whole or not at all; where they lie."""
    content = rater_files(choice)
    for name, data in content.items():
        write_whole(folder / name, data)
    return [folder / name for name in content]


def rater_files(choice: Choice) -> dict[str, bytes]:
    """File name → bytes of all that raters get."""
    name, with_gold = choice.study.study, choice.study.with_gold
    return {
        "README.txt": instructions(name, len(choice.shown), with_gold=with_gold),
        "form.html": form(name, choice.shown, with_gold=with_gold),
        "sheet.csv": sheet(name, choice.shown),
    }


def instructions(name: str, tasks: int, *, with_gold: bool) -> bytes:
    """What a rater reads first, as plain text."""
    return _render("README.txt.j2", name=name, tasks=tasks, with_gold=with_gold, criteria=criteria(with_gold=with_gold))


def sheet(name: str, tasks: Sequence[ShownTask]) -> bytes:
    """The sheet: one line for each section of each task, nothing filled in."""
    return csv_bytes([COLUMNS, *(_line(name, task, letter) for task in tasks for letter in task.sections)])


def _line(name: str, task: ShownTask, letter: str) -> list[str]:
    known = {"study": name, "task": task.task, "label": letter, "title": " ".join(printable(task.title).split())}
    return [known.get(column, "") for column in COLUMNS]


def form(name: str, tasks: Sequence[ShownTask], *, with_gold: bool) -> bytes:
    """The form: one HTML file that works from disk, keeps what is entered in the browser and gives it as a file."""
    return _render(
        "form.html.j2", name=name, content=content_digest(tasks), with_gold=with_gold, tasks=[*map(_view, tasks)],
        criteria=criteria(with_gold=with_gold),
    )  # fmt: skip


def _view(task: ShownTask) -> Mapping[str, object]:
    numbers = {reference.number for reference in task.references}
    return {
        "task": task,
        "target": [_heading_or_text(part) for part in task.target.split("\n\n") if part.strip()],
        "gold": None if task.gold is None else paragraphs(task.gold, numbers),
        "sections": [(letter, paragraphs(text, numbers)) for letter, text in task.sections.items()],
    }


def _heading_or_text(part: str) -> tuple[bool, str]:
    """Whether a part of a target is a heading, and its words: targets have their headings as Markdown."""
    found = re.fullmatch(r"#{1,6} (.+)", part.strip())
    return (True, found[1]) if found else (False, part)


def _render(template: str, **values: object) -> bytes:
    return render(template, "ratings.js", **values)
