"""The commands `citeloom grading`: sheets for graders of answers out, their verdicts in, what they say. Never the work
itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.evaluation.report.grid import Grid


def sheets(
    to: Annotated[Path, typer.Option("--to", "--out", help="Folder for what graders get: sheets and instructions.")],
    months: MonthsOption = "all",
    graders: Annotated[int, typer.Option(min=1, max=20, help="Graders, each with a sheet of their own.")] = 3,
    questions: Annotated[int, typer.Option(min=1, max=1000, help="Questions that are graded, at most.")] = 50,
    systems: Annotated[str | None, typer.Option(help="These systems, with commas between; else all graded.")] = None,
    name: Annotated[str, typer.Option(help="Name of the grading; graders see it.")] = "grading",
    seed: Annotated[int, typer.Option(help="Chooses questions and letters; graders should not know it.")] = 0,
    as_json: AsJson = False,
) -> int:
    """Write blind sheets of what a judge graded; which system is behind which letter stays in the data root."""
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.answers.choosing import choose, write_sheets
    from pipeline.evaluation.answers.grading_key import keep_key
    from pipeline.evaluation.human.sheets import check_folder

    root = Workspace(load_settings()).root
    check_folder(to)
    wanted = None if systems is None else [each.strip() for each in systems.split(",") if each.strip()]
    choice = choose(root, name, months, wanted, questions=questions, seed=seed)
    key = keep_key(root, choice.key)
    files = write_sheets(choice, to, graders)
    for note in choice.notes():
        print_note(note)
    if as_json:
        counts = {"questions": choice.questions, "answers": len(choice.key.labels), "lines": choice.lines}
        told = {"grading": name, "systems": choice.systems, **counts, "lacking": choice.lacking}
        print_json({**told, "silent": choice.silent, "files": files, "key": key})
    else:
        typer.echo("\n".join(map(str, files)))
        print_note(f"the key is {key}: keep it from graders")
    return 0


def import_(
    files: Annotated[list[Path], typer.Argument(help="Sheets that graders sent back, as CSV.")],
    key: Annotated[Path | None, typer.Option(help="Key of the grading, where it is not in the data root.")] = None,
    name: Annotated[str | None, typer.Option(help="The grading, where a sheet does not say it.")] = None,
    grader: Annotated[str | None, typer.Option(help="The grader, where a sheet does not name one.")] = None,
    as_json: AsJson = False,
) -> int:
    """Take verdicts in: all of the sheets, or nothing."""
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.answers.keeping import import_grades

    done = import_grades(Workspace(load_settings()), files, name=name, grader=grader, key=key)
    for note in done.notes:
        print_note(note)
    for (study, who), answers in Counter((study, who) for study, who, _ in done.replaced).items():
        print_note(f"grading {study}: what {who} gave before is replaced, of {answers} of its answers")
    if as_json:
        print_json(asdict(done))
    else:
        typer.echo(
            f"{done.rows:,} lines on {done.answers} answers by {', '.join(done.graders)}, grading "
            f"{', '.join(done.studies)}, into human_grades of {', '.join(done.months)}"
        )
    return 0


def results(
    months: MonthsOption = "all",
    name: Annotated[str | None, typer.Option(help="One grading; else all.")] = None,
    as_json: AsJson = False,
) -> int:
    """Say how far graders agree, how often the judge is right, and what Table 1 is by people."""
    from pipeline.arxiv.months import select_months
    from pipeline.cli.console import out, print_json, print_note
    from pipeline.errors import MissingInput
    from pipeline.evaluation.answers.people_results import read_people
    from pipeline.evaluation.answers.rows import grade_of
    from pipeline.evaluation.report.answer_people import section_of
    from pipeline.tables import ANSWER_GRADES, HUMAN_GRADES

    root = Workspace(load_settings()).root
    there = root.months(HUMAN_GRADES)
    chosen = select_months(months, there) if there else []
    judged = {month: root.file(ANSWER_GRADES, month).exists() for month in chosen}
    grades = {
        month: map(grade_of, root.iterate(ANSWER_GRADES, month) if graded else ()) for month, graded in judged.items()
    }
    found = read_people(root, grades, name)
    if not found.graders and not found.outdated:
        wanted = "" if name is None else f" of grading {name}"
        raise MissingInput(f"there are no people's grades{wanted} in {root.path}: run citeloom grading import FILE")
    if as_json:
        print_json(found.as_json())
        return 0
    section = section_of(found)
    for words in section.paragraphs:
        print_note(words)
    for grid in section.grids():
        for table in grid_tables(grid):
            out.print(table)
    return 0


def grid_tables(grid: Grid) -> Sequence[Table]:
    """A table of a report for a terminal, one for each group of its rows."""
    from rich.markup import escape
    from rich.table import Table

    found = []
    for group in grid.groups:
        title = f"{grid.title}: {group.title}" if group.title else grid.title
        table = Table(title=escape(title), title_justify="left")
        for column, head in enumerate(grid.head):
            table.add_column(escape(head), justify="right" if grid.numeric(column) else "left")
        for row in group.rows:
            table.add_row(*(escape(cell.plain()) for cell in row))
        found.append(table)
    return found
