"""Studies of made-up sections and answers, and sheets filled in by hand."""

import csv
import io

from pipeline import tables
from pipeline.evaluation.annotation.export import draw_items, make_study, write_files
from pipeline.evaluation.annotation.study import write_key
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import same, section, task

MONTH = "2024-03"
WRITERS = ("chatcite", "few_shot", "zero_shot")
CHOICES = {"months": "all", "systems": (), "candidate_set": None, "with_gold": True, "most": 50}


def write_sections(root, month=MONTH, *, tasks=4, text=same):
    """Tasks of a month, and a section of each writer for each of them."""
    made = [task(f"{month[2:4]}{month[5:]}.{90001 + number}", text) for number in range(tasks)]
    sections = [
        section(text(f"Text {place} on {row['arxiv_id']}."), [1], system, row["task_id"], None)
        for place, system in enumerate(WRITERS)
        for row in made
    ]
    write_table(root, tables.RELATED_WORK_TASKS, month, made)
    write_table(root, tables.SUMMARIES, month, sections)


def give_out(work, folder, annotators=1, *, kind="ratings", name="pilot", seed=7, **choices):
    """A study with its key, and the sheets of its annotators."""
    items = draw_items(work, kind, seed=seed, **CHOICES | choices)
    study = make_study(kind, name, seed, items)
    write_key(work.root, study)
    write_files(study, items, folder, annotators)
    return study, sorted(folder.glob("*.csv"))


def rows_of(sheet):
    """The lines of a sheet, as a spreadsheet program shows them."""
    return list(csv.DictReader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline="")))


def save(file, rows):
    """Save lines as a spreadsheet program does, and return the file."""
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def rated(sheet):
    """The lines of a sheet in the order of its units as a rater fills them: 4 everywhere, A
    preferred.
    """
    marks = dict.fromkeys(tables.CRITERIA, "4")
    return [
        row | marks | {"preferred": "x" if row["unit"].endswith("-A") else ""}
        for row in sorted(rows_of(sheet), key=lambda row: row["unit"])
    ]


def graded(sheet, claim, gold):
    """The lines of a sheet with one verdict for all claims and one for all gold claims."""
    return [
        row | {"verdict": claim if "-claim-" in row["unit"] else gold} for row in rows_of(sheet)
    ]
