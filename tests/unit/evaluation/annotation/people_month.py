"""A made-up month of answers that a judge graded, and sheets filled in by hand."""

import csv
import io
from collections.abc import Callable, Mapping

from pipeline import tables
from pipeline.evaluation.annotation.export import write_files
from pipeline.evaluation.annotation.study import write_key
from pipeline.evaluation.answers.people import export_grades
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.studied import sent_back
from tests.unit.evaluation.answers.graded import PAPER, grade

MONTH = "2024-03"
SYSTEMS = ("arxivbot", "direct")
Verdict = Callable[[Mapping[str, str]], str]


def month_grades(judge="judge", first=1):
    """Two questions, two systems: three answers with claims, and one that abstains."""
    return [
        grade(["correct", "wrong"], ["held"], number=first, system="arxivbot", judge=judge),
        grade(["correct"], ["not"], number=first, system="direct", judge=judge),
        grade(["not_checkable"], ["partly"], number=first + 1, system="arxivbot", judge=judge),
        grade(gold=["not"], number=first + 1, system="direct", judge=judge, outcome="abstained"),
    ]


def write_answers(
    root,
    month=MONTH,
    *,
    first=1,
    grades=None,
    words="",
):
    """A month of questions, answers and grades. first: number of its first question; words: added
    to each answer of `direct`, as if it had been written anew.
    """
    numbers = (first, first + 1)
    write_table(
        root,
        tables.QUESTIONS,
        month,
        [
            {
                "question_id": f"q{n}",
                "question": f"=Do boats float, {n}?",
                "papers": [PAPER],
                "claims": [{"claim": "Fact 1."}],
            }
            for n in numbers
        ],
    )
    texts = {system: words if system == "direct" else "" for system in SYSTEMS}
    rows = [
        {
            "question_id": f"q{n}",
            "system": system,
            "text": f"Answer {n} of one.{more}",
            "abstained": False,
            "sentences": [{"text": f"Answer {n} of one."}, {"text": "..."}],
        }
        for system, more in texts.items()
        for n in numbers
    ]
    write_table(root, tables.ANSWERS, month, rows)
    mine = month_grades(first=first) if grades is None else grades
    write_table(root, tables.ANSWER_GRADES, month, mine)
    write_table(root, tables.PAPERS, "2024-03", [{"arxiv_id": PAPER, "title": "Boats"}])


def rows_of(sheet):
    """The lines of a sheet, as a spreadsheet program shows them."""
    return list(csv.DictReader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline="")))


def fill(sheet, verdict, *, annotator=None, comment=""):
    """Fill a sheet in where it lies. comment: on its first line."""
    name = {} if annotator is None else {"annotator": annotator}
    rows = [row | {"verdict": verdict(row)} | name for row in rows_of(sheet)]
    rows[0]["comment"] = comment
    return sent_back(sheet.parent, rows, sheet.name)


def always(claim, gold):
    """One verdict for all claims, one for all gold claims."""
    return lambda row: claim if "-claim-" in row["unit"] else gold


def give_out(
    root,
    folder,
    annotators=3,
    *,
    name="pilot",
    months="all",
    systems=None,
    items=50,
    seed=7,
    sentences=False,
):
    """A study of grades with its key, and the sheets of its annotators."""
    export = export_grades(root, name, months, systems, items=items, seed=seed, sentences=sentences)
    write_key(root, export.study)
    return export, [
        file for file in write_files(export, folder, annotators) if file.suffix == ".csv"
    ]
