"""A made-up month with tasks and sections, and what raters send back about them."""

import csv
import io

from pipeline.evaluation.annotation.importer import import_files
from pipeline.evaluation.annotation.study import write_key
from pipeline.evaluation.g_score.people import export_ratings
from pipeline.tables import CRITERIA, HUMAN_RATINGS, RELATED_WORK_TASKS, SUMMARIES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import Row, same, workspace

__all__ = ["Row", "same", "workspace"]

MONTH = "2024-03"
SYSTEMS = ("chatcite", "few_shot", "zero_shot")


def write_month(
    root,
    month=MONTH,
    *,
    tasks=4,
    systems=SYSTEMS,
    text=same,
):
    """Tasks of a month, and a section of each system for each of them."""
    names = [f"{month[2:4]}{month[5:]}.{90001 + number}#S2" for number in range(tasks)]
    write_table(
        root,
        RELATED_WORK_TASKS,
        month,
        [_task(name, number, text) for number, name in enumerate(names)],
    )
    rows = [
        _section(name, system, place, text)
        for place, system in enumerate(systems)
        for name in names
    ]
    write_table(root, SUMMARIES, month, rows)


def _task(name, number, text):
    title = text(f"Weights for retrieval, part {number}")
    references = [
        {
            "number": i,
            "arxiv_id": f"2401.0000{i}",
            "title": text(f"Cited work {i}"),
            "year": 2020 + i,
        }
        for i in (1, 2)
    ]
    return {
        "task_id": name,
        "arxiv_id": name.split("#")[0],
        "title": title,
        "description": f"# {title}\n\n## Abstract\n\n{text('We learn weights.')}\n\n"
        "## Introduction\n\nLong ago.",
        "references": references,
        "gold": text("The authors wrote this themselves [Reference 1]."),
    }


def _section(name, system, place, text):
    words = f"Text number {place} on {name[:10]}. It builds on [Reference 1], and on [Reference 9]."
    return {"task_id": name, "system": system, "repeat": 0, "text": text(words)}


def exported(root, name="pilot", **settings):
    """A study of the month, with its key."""
    given = {"items": 10, "seed": 7, "with_gold": True} | settings
    months, systems = given.pop("months", "all"), given.pop("systems", SYSTEMS)
    export = export_ratings(root, name, months, systems, **given)
    write_key(root, export.study)
    return export


def filled(export, annotator, /, **cells):
    """Lines of the sheet as a rater fills them: 4 everywhere, A preferred; `cells` go into the
    first line.
    """
    marks = dict.fromkeys(CRITERIA, "4")
    rows = [
        {
            "study": export.study.study,
            "annotator": annotator,
            "unit": unit,
            **marks,
            "preferred": "x" if unit.endswith("-A") else "",
            "comment": "",
            "title": "A title",
        }
        for unit in export.study.units
    ]
    rows[0] |= cells
    return rows


def as_csv(rows):
    """Lines as a spreadsheet program saves them."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def sent_back(folder, rows, name="ratings.csv"):
    """A file of a rater's lines."""
    file = folder / name
    file.write_bytes(as_csv(rows).encode())
    return file


def imported(work, file, **options):
    """Import one file of which every line is right."""
    (sheet,) = import_files(work, [file], **options)
    assert sheet.faults == []
    return sheet


def refused(work, file, **options):
    """What is wrong with a file of which nothing is imported; nothing that was there before is
    changed.
    """
    before = {file: file.read_bytes() for file in work.root.path.glob("human_*/*")}
    (sheet,) = import_files(work, [file], **options)
    assert {file: file.read_bytes() for file in work.root.path.glob("human_*/*")} == before
    assert (sheet.rows, len(sheet.faults)) == (0, 1)
    return str(sheet.faults[0])


def kept(root, month=MONTH):
    """The ratings of a month as they are kept."""
    return root.rows(HUMAN_RATINGS, month)
