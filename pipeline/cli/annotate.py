"""The commands `citeloom annotate`: pages and sheets for people, import, status, results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.cli.common import AsJson, MonthsOption, check_file, open_workspace, split_names

if TYPE_CHECKING:
    from pipeline.evaluation.answers.people_measures import GradeResults
    from pipeline.storage.data_root import DataRoot


KindArgument = Annotated[
    Literal["ratings", "grades"],
    typer.Argument(
        metavar="KIND", help="ratings of related-work sections, or grades of answers to questions."
    ),
]


def export(
    kind: KindArgument,
    to: Annotated[
        Path, typer.Option(help="Folder for the annotators' files: a page and a sheet for each.")
    ],
    months: MonthsOption = "all",
    annotators: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=20,
            help="Annotators, each with a page and a sheet of their own.",
        ),
    ] = 3,
    items: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="At most N tasks or questions.")
    ] = 10,
    systems: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Systems, comma-separated; by default all that wrote."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the study; annotators see it. By default the kind.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", help="Selects items, letters and order; annotators should not know it."
        ),
    ] = 0,
    with_gold: Annotated[
        bool,
        typer.Option(
            "--with-gold/--without-gold", help="Ratings: whether to show the published section too."
        ),
    ] = True,
    sentences: Annotated[
        bool,
        typer.Option(
            "--sentences",
            help="Grades: show whole sentences, which graders split into claims themselves, also"
            " where a judge has split the answers.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Write blind pages to read and CSV sheets to fill in; the key to the letters stays in the data
    root.

    Examples:
      citeloom annotate export ratings --to sheets --systems chatcite,zero_shot
      citeloom annotate export grades --to sheets --items 50 --sentences
    """
    from pipeline.cli.console import print_json, print_note
    from pipeline.errors import SettingError
    from pipeline.evaluation.annotation.export import check_folder, write_files
    from pipeline.evaluation.annotation.study import write_key
    from pipeline.evaluation.answers.people import export_grades
    from pipeline.evaluation.g_score.people import export_ratings

    root = open_workspace().root
    check_folder(to)
    names = split_names(systems) if systems else None
    study_name = name or kind
    if kind == "ratings" and sentences:
        raise SettingError("--sentences is for grades: leave it out for ratings")
    if kind == "ratings":
        sheets = export_ratings(
            root, study_name, months, names, items=items, seed=seed, with_gold=with_gold
        )
    elif not with_gold:
        raise SettingError("--without-gold is for ratings: leave it out for grades")
    else:
        sheets = export_grades(
            root, study_name, months, names, items=items, seed=seed, sentences=sentences
        )
    key = write_key(root, sheets.study)
    files = write_files(sheets, to, annotators)
    for note in sheets.notes:
        print_note(note)
    if as_json:
        counts = {
            "items": len(sheets.items),
            "units": len(sheets.study.units),
            "lacking": sheets.lacking,
        }
        print_json(
            {
                "study": study_name,
                "kind": kind,
                "systems": sheets.systems,
                **counts,
                "files": files,
                "key": key,
            }
        )
    else:
        typer.echo("\n".join(map(str, files)))
        print_note(f"the key is {key}: do not give it to annotators")
    return 0


def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="CSV sheets that annotators sent back.")
    ],
    annotator: Annotated[
        str | None, typer.Option(help="The annotator, in place of the name in the files.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Import the sheets that annotators sent back: every line that is right; the others are listed,
    with exit code 1.

    Examples:
      citeloom annotate import sheet-1.csv sheet-2.csv
      citeloom annotate import sheet-1.csv --annotator ada
    """
    for file in files:
        check_file("FILES", file)

    from pipeline.cli.console import print_error, print_json
    from pipeline.evaluation.annotation.importer import import_files

    imported = import_files(open_workspace(), files, annotator=annotator)
    for sheet in imported:
        for fault in sheet.faults:
            print_error(f"{sheet.file}: {fault}")
    exit_code = 1 if any(sheet.faults for sheet in imported) else 0
    if as_json:
        print_json({"sheets": [asdict(sheet) for sheet in imported]})
        return exit_code
    for sheet in imported:
        if sheet.study is not None:
            typer.echo(
                f"{sheet.file}: imported {sheet.rows:,} rows by {sheet.annotator}, study"
                f" {sheet.study}: {sheet.filled:,} of {sheet.cells:,} cells are filled in,"
                f" {sheet.replaced:,} earlier rows are replaced"
            )
    return exit_code


def status(as_json: AsJson = False) -> int:
    """Show the studies and how much each annotator has filled in.

    Examples:
      citeloom annotate status
      citeloom annotate status --json
    """
    from rich.markup import escape

    from pipeline.cli.console import make_table, out, print_json
    from pipeline.evaluation.annotation.importer import read_status

    studies = read_status(open_workspace().root)
    if as_json:
        print_json({"studies": [asdict(study) for study in studies]})
        return 0
    if not studies:
        typer.echo("there is no study yet: citeloom annotate export ratings --to FOLDER makes one")
        return 0
    table = make_table(
        "", ("study", "kind", "items", "units", "filled in, of each annotator's cells")
    )
    for study in studies:
        filled = ", ".join(
            f"{escape(who)} {count:,} of {study.cells:,}" for who, count in study.filled.items()
        )
        table.add_row(
            study.study,
            study.kind,
            f"{study.items}",
            f"{study.units:,}",
            filled or "nothing imported yet",
        )
    out.print(table)
    return 0


def results(
    kind: KindArgument,
    months: MonthsOption = "all",
    name: Annotated[str | None, typer.Option(help="Only this study; by default all.")] = None,
    as_json: AsJson = False,
) -> int:
    """Show what people say of each system, how far they agree, and how far the judge agrees with
    them.

    Examples:
      citeloom annotate results ratings
      citeloom annotate results grades --name pilot --json
    """
    from pipeline.arxiv.months import select_months
    from pipeline.cli.console import print_json, print_section
    from pipeline.errors import MissingInput
    from pipeline.evaluation.g_score.people_measures import RatingResults, read_rating_results
    from pipeline.report.judgements import grades_section, rating_results_section
    from pipeline.tables import HUMAN_GRADES, HUMAN_RATINGS

    root = open_workspace().root
    annotated = root.months(HUMAN_RATINGS if kind == "ratings" else HUMAN_GRADES)
    selected = select_months(months, annotated) if annotated else []
    study_results = (
        read_rating_results(root, selected, name)
        if kind == "ratings"
        else _read_grades(root, selected, name)
    )
    if study_results.empty:
        of_study = "" if name is None else f" of study {name}"
        raise MissingInput(
            f"there are no {kind}{of_study} in {root.path}: run citeloom annotate import FILE"
        )
    if as_json:
        print_json(study_results.as_json())
        return 0
    section = (
        rating_results_section(study_results)
        if isinstance(study_results, RatingResults)
        else grades_section(study_results)
    )
    print_section(section)
    return 0


def _read_grades(root: DataRoot, months: list[str], study: str | None) -> GradeResults:
    from pipeline.evaluation.answers.measures import read_grades
    from pipeline.evaluation.answers.people_measures import pool_months, read_month_grades

    return pool_months(
        {month: read_month_grades(root, month, read_grades(root, month), study) for month in months}
    )
