"""The commands `citeloom grading`: grading sheets, import of grades, and their results."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption, check_file
from pipeline.cli.workspace import open_workspace

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.evaluation.report.grid import Grid


def sheets(
    to: Annotated[Path, typer.Option("--to", "--out", help="Folder for the graders' files: sheets and instructions.")],
    months: MonthsOption = "all",
    graders: Annotated[
        int, typer.Option(metavar="N", min=1, max=20, help="Graders, each with a sheet of their own.")
    ] = 3,
    questions: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Most questions to grade.")] = 50,
    systems: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Systems, comma-separated; by default all that were graded.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the grading; graders see it.")] = "grading",
    seed: Annotated[
        int, typer.Option(metavar="N", help="Selects questions and letters; graders should not know it.")
    ] = 0,
    as_json: AsJson = False,
) -> int:
    """Write blind sheets of judged answers; the key to which system is behind which letter stays in the data root.

    Examples:
      citeloom grading sheets --to sheets
      citeloom grading sheets --to sheets --graders 2 --questions 20
    """
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.answers.choosing import choose, write_sheets
    from pipeline.evaluation.answers.grading_key import keep_key
    from pipeline.evaluation.human.sheets import check_folder

    root = open_workspace().root
    check_folder(to)
    wanted = None if systems is None else [system.strip() for system in systems.split(",") if system.strip()]
    choice = choose(root, name, months, wanted, questions=questions, seed=seed)
    key = keep_key(root, choice.key)
    files = write_sheets(choice, to, graders)
    for note in choice.notes():
        print_note(note)
    if as_json:
        counts = {"questions": choice.questions, "answers": len(choice.key.labels), "lines": choice.lines}
        document = {"grading": name, "systems": choice.systems, **counts, "lacking": choice.lacking}
        print_json({**document, "silent": choice.silent, "files": files, "key": key})
    else:
        typer.echo("\n".join(map(str, files)))
        print_note(f"the key is {key}: do not give it to graders")
    return 0


def import_(
    files: Annotated[list[Path], typer.Argument(help="Sheets that graders sent back, as CSV.")],
    key: Annotated[Path | None, typer.Option(help="Key of the grading, if it is not in the data root.")] = None,
    name: Annotated[str | None, typer.Option(help="The grading, if a sheet does not name it.")] = None,
    grader: Annotated[str | None, typer.Option(help="The grader, if a sheet does not name one.")] = None,
    as_json: AsJson = False,
) -> int:
    """Import the CSV sheets that graders sent back: all of them, or nothing.

    Examples:
      citeloom grading import sheet-1.csv sheet-2.csv
      citeloom grading import sheet.csv --grader ada
    """
    for file in files:
        check_file("FILES", file)
    check_file("--key", key)

    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.answers.keeping import import_grades

    imported = import_grades(open_workspace(), files, name=name, grader=grader, key=key)
    for note in imported.notes:
        print_note(note)
    for (grading, who), answers in Counter((grading, who) for grading, who, _ in imported.replaced).items():
        print_note(f"grading {grading}: the earlier grades of {answers} answers by {who} are replaced")
    if as_json:
        print_json(asdict(imported))
    else:
        typer.echo(
            f"imported {imported.rows:,} lines on {imported.answers} answers by {', '.join(imported.graders)}, "
            f"grading {', '.join(imported.studies)}, into human_grades of {', '.join(imported.months)}"
        )
    return 0


def results(
    months: MonthsOption = "all",
    name: Annotated[str | None, typer.Option(help="Only this grading; by default all.")] = None,
    as_json: AsJson = False,
) -> int:
    """Show how far graders agree, how often the judge is right, and Table 1 as people grade it.

    Examples:
      citeloom grading results
      citeloom grading results --name pilot --json
    """
    from pipeline.arxiv.months import select_months
    from pipeline.cli.console import out, print_json, print_note
    from pipeline.errors import MissingInput
    from pipeline.evaluation.answers.people_results import read_people
    from pipeline.evaluation.answers.rows import grade_of
    from pipeline.evaluation.report.answer_people import section_of
    from pipeline.tables import ANSWER_GRADES, HUMAN_GRADES

    root = open_workspace().root
    graded_months = root.months(HUMAN_GRADES)
    selected = select_months(months, graded_months) if graded_months else []
    judged = {month: root.file(ANSWER_GRADES, month).exists() for month in selected}
    judge_grades = {
        month: map(grade_of, root.iterate(ANSWER_GRADES, month) if has_judge else ())
        for month, has_judge in judged.items()
    }
    people = read_people(root, judge_grades, name)
    if not people.graders and not people.outdated:
        of_grading = "" if name is None else f" of grading {name}"
        raise MissingInput(f"there are no people's grades{of_grading} in {root.path}: run citeloom grading import FILE")
    if as_json:
        print_json(people.as_json())
        return 0
    section = section_of(people)
    for paragraph in section.paragraphs:
        print_note(paragraph)
    for grid in section.grids():
        for table in grid_tables(grid):
            out.print(table)
    return 0


def grid_tables(grid: Grid) -> list[Table]:
    """A table of the report for a terminal, one for each group of its rows."""
    from rich.markup import escape

    from pipeline.cli.console import make_table

    tables = []
    for group in grid.groups:
        title = f"{grid.title}: {group.title}" if group.title else grid.title
        table = make_table(escape(title), ())
        for column, heading in enumerate(grid.head):
            table.add_column(escape(heading), justify="right" if grid.numeric(column) else "left")
        for row in group.rows:
            table.add_row(*(escape(cell.plain()) for cell in row))
        tables.append(table)
    return tables
