"""The commands `citeloom annotate`: pages and sheets for people, import, results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipeline.doors.cli.common import AsJson, MonthsOption, check_file, open_workspace, split_names

KindArgument = Annotated[
    Literal["ratings", "grades"],
    typer.Argument(
        metavar="KIND", help="ratings of related-work sections, or grades of answers to questions."
    ),
]


def export(
    kind: KindArgument,
    to: Annotated[
        Path,
        typer.Option(help="Folder for the guide, and a page and a sheet for each annotator."),
    ],
    months: MonthsOption = "all",
    annotators: Annotated[int, typer.Option(metavar="N", min=1, max=20, help="Annotators.")] = 3,
    items: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="At most N tasks or questions.")
    ] = 10,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Systems, comma-separated; by default those of the candidate set, or all that"
            " answered.",
        ),
    ] = None,
    candidate_set: Annotated[
        str | None,
        typer.Option("--set", help="Ratings: the candidate set to rate; by default the first."),
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
) -> int:
    """Write a guide, blind pages to read and CSV sheets to fill in; the key to the letters stays in
    the data root.

    Examples:
      citeloom annotate export ratings --to sheets --systems chatcite,zero_shot
      citeloom annotate export grades --to sheets --items 50 --sentences
    """
    from pipeline.doors.cli.console import print_note
    from pipeline.errors import SettingError
    from pipeline.evaluation.annotation.grades import answers_to_grade
    from pipeline.evaluation.annotation.ratings import sections_to_rate
    from pipeline.evaluation.annotation.sheets import write_files
    from pipeline.evaluation.annotation.study import make_study, write_key

    if to.is_file():
        raise SettingError(f"--to {to} is a file: name a folder")
    workspace, names = open_workspace(), split_names(systems) or None
    root = workspace.root
    if kind == "ratings":
        selection, chosen = sections_to_rate(
            root,
            workspace.settings,
            months,
            names,
            most=items,
            seed=seed,
            with_gold=with_gold,
            candidate_set=candidate_set,
        )
    else:
        selection, chosen = answers_to_grade(
            root, months, names, most=items, seed=seed, sentences=sentences
        )
    study = make_study(kind, name or kind, seed, chosen)
    key = write_key(root, study)
    files = write_files(study, chosen, to, annotators)
    typer.echo("\n".join(map(str, files)))
    print_note(
        f"each annotator has {len(study.units):,} lines on {len(chosen)} items;"
        f" {selection.left_out} items without a text of every system are left out"
    )
    print_note(f"the key is {key}: do not give it to annotators")
    return 0


def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="CSV sheets that annotators sent back.")
    ],
) -> int:
    """Import the sheets that annotators sent back: every line that is right; the others are listed,
    with exit code 1.

    Examples:
      citeloom annotate import ratings-1.csv ratings-2.csv
      citeloom annotate import grades-1.csv
    """
    for file in files:
        check_file("FILES", file)

    from pipeline.doors.cli.console import print_error
    from pipeline.evaluation.annotation.sheets import import_files

    sheets = import_files(open_workspace(), files)
    for sheet in sheets:
        for fault in sheet.faults:
            print_error(f"{sheet.file}: {fault}")
        typer.echo(
            f"{sheet.file}: {sheet.entries:,} of {len(sheet.study.units):,} lines imported, study"
            f" {sheet.study.study}, {sheet.annotator}"
        )
    return 1 if any(sheet.faults for sheet in sheets) else 0


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
    from pipeline.doors.cli.console import print_json, print_section
    from pipeline.errors import MissingInput
    from pipeline.evaluation.annotation.grades import GradeResults, read_grade_results
    from pipeline.evaluation.annotation.ratings import RatingResults, read_rating_results
    from pipeline.evaluation.annotation.study import FORMATS
    from pipeline.identity.months import select_months
    from pipeline.report.judgements import grades_section, ratings_section

    workspace = open_workspace()
    root = workspace.root
    annotated = root.months(FORMATS[kind].table)
    selected = select_months(months, annotated) if annotated else []
    found: RatingResults | GradeResults
    if kind == "ratings":
        found = read_rating_results(root, workspace.settings, selected, name)
    else:
        found = read_grade_results(root, selected, name)
    if found.empty:
        of_study = "" if name is None else f" of study {name}"
        raise MissingInput(
            f"there are no {kind}{of_study} in {root.path}: run citeloom annotate import FILE"
        )
    if as_json:
        print_json(asdict(found))
    elif isinstance(found, GradeResults):
        print_section(grades_section(found))
    else:
        print_section(ratings_section(found))
    return 0
