"""A made-up month of sections and of graded answers, studies of it, and sheets filled in by hand."""

import csv
import io

from pipeline import tables
from pipeline.evaluation.annotation.grades import answers_to_grade
from pipeline.evaluation.annotation.ratings import sections_to_rate
from pipeline.evaluation.annotation.sheets import import_files, write_files
from pipeline.evaluation.annotation.study import make_study, write_key
from pipeline.settings import Settings
from tests.month_tables import write_table
from tests.unit.evaluation.answers.graded import PAPER, grade
from tests.unit.evaluation.made_up import same, section

MONTH = "2024-03"
WRITERS = ("chatcite", "few_shot", "zero_shot")
ANSWERERS = ("arxivbot", "direct")


def write_sections(root, month=MONTH, *, tasks=4, text=same):
    """Tasks of a month, and a section of each writer for each of them."""
    names = [f"{month[2:4]}{month[5:]}.{90001 + number}#S2" for number in range(tasks)]
    rows = [
        {
            "task_id": name,
            "title": text(f"Weights for retrieval, part {number}"),
            "description": f"# {text('')}\n\n## Abstract\n\n{text('We learn weights.')}",
            "references": [{"number": 1, "title": text("Cited work"), "year": 2021}],
            "gold": text("The authors wrote this themselves [Reference 1]."),
        }
        for number, name in enumerate(names)
    ]
    sections = [
        section(text(f"Text {place} on {name[:10]}. See [Reference 1]."), [1], system, name, None)
        for place, system in enumerate(WRITERS)
        for name in names
    ]
    write_table(root, tables.RELATED_WORK_TASKS, month, rows)
    write_table(root, tables.SUMMARIES, month, sections)


def month_grades(judge="judge", first=1):
    """Two questions, two systems: three answers with claims, and one that abstains."""
    return [
        grade(["correct", "wrong"], ["held"], number=first, system="arxivbot", judge=judge),
        grade(["correct"], ["not"], number=first, system="direct", judge=judge),
        grade(["not_checkable"], ["partly"], number=first + 1, system="arxivbot", judge=judge),
        grade(gold=["not"], number=first + 1, system="direct", judge=judge, outcome="abstained"),
    ]


def write_answers(root, month=MONTH, *, first=1, grades=None, words="", abstains=()):
    """A month of questions, answers and grades. first: number of its first question; words: added
    to each answer of `direct`, as if it had been written anew.
    """
    numbers = (first, first + 1)
    questions = [
        {
            "question_id": f"q{n}",
            "question": f"=Do boats float, {n}?",
            "papers": [PAPER],
            "claims": [{"claim": "Fact 1."}],
        }
        for n in numbers
    ]
    rows = [
        {
            "question_id": f"q{n}",
            "system": system,
            "text": f"Answer {n} of one.{words if system == 'direct' else ''}",
            "abstained": system in abstains,
            "sentences": [{"text": f"Answer {n} of one."}, {"text": "..."}],
        }
        for system in ANSWERERS
        for n in numbers
    ]
    grades = month_grades(first=first) if grades is None else grades
    write_table(root, tables.QUESTIONS, month, questions)
    write_table(root, tables.ANSWERS, month, rows)
    write_table(root, tables.ANSWER_GRADES, month, grades)
    write_table(root, tables.PAPERS, "2024-03", [{"arxiv_id": PAPER, "title": "Boats"}])


def give_out(
    root, folder, annotators=1, *, kind="grades", name="pilot", months="all", systems=None, **more
):
    """A study of ratings or grades with its key, and the sheets of its annotators."""
    more = {"most": 50, "seed": 7} | more
    if kind == "ratings":
        more = {"with_gold": True} | more
        _, items = sections_to_rate(root, Settings(_env_file=None), months, systems, **more)
    else:
        _, items = answers_to_grade(root, months, systems, **more)
    study = make_study(kind, name, more["seed"], items)
    write_key(root, study)
    files = write_files(study, items, folder, annotators)
    return study, [file for file in files if file.suffix == ".csv"]


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


def fill(sheet, verdict, *, comment=""):
    """Fill a sheet of grades in where it lies. comment: on its first line."""
    rows = [row | {"verdict": verdict(row)} for row in rows_of(sheet)]
    rows[0]["comment"] = comment
    return save(sheet, rows)


def always(claim, gold):
    """One verdict for all claims, one for all gold claims."""
    return lambda row: claim if "-claim-" in row["unit"] else gold


def rated(sheet):
    """The lines of a sheet in the order of its units as a rater fills them: 4 everywhere, A
    preferred.
    """
    marks = dict.fromkeys(tables.CRITERIA, "4")
    return [
        row | marks | {"preferred": "x" if row["unit"].endswith("-A") else ""}
        for row in sorted(rows_of(sheet), key=lambda row: row["unit"])
    ]


def imported(work, file):
    """Import one file of which every line is right."""
    (sheet,) = import_files(work, [file])
    assert sheet.faults == []
    return sheet
