"""The commands `citeloom annotate`: pages and sheets for people, and import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pipeline.doors.cli.common import MonthsOption, check_file, open_workspace, split_names

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
) -> int:
    """Write a guide, blind pages to read and CSV sheets to fill in; the key to the letters stays in
    the data root.

    Examples:
      citeloom annotate export ratings --to sheets --systems chatcite,zero_shot
      citeloom annotate export grades --to sheets --items 50
    """
    from pipeline.doors.cli.console import print_note
    from pipeline.errors import SettingError
    from pipeline.evaluation.annotation.export import draw_items, make_study, write_files
    from pipeline.evaluation.annotation.study import key_file, write_key

    if to.is_file():
        raise SettingError(f"--to {to} is a file: name a folder")
    workspace = open_workspace()
    drawn = draw_items(
        workspace,
        kind,
        months=months,
        systems=split_names(systems),
        candidate_set=candidate_set,
        with_gold=with_gold,
        most=items,
        seed=seed,
    )
    study = make_study(kind, name or kind, seed, drawn)
    write_key(workspace.root, study)
    write_files(study, drawn, to, annotators)
    typer.echo(to)
    print_note(f"each annotator has {len(study.units):,} lines on {len(drawn)} items")
    key = key_file(workspace.root, study.study)
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

    from pipeline.doors.cli.console import print_error, print_note
    from pipeline.evaluation.annotation.study import import_files

    sheets = import_files(open_workspace(), files)
    for sheet in sheets:
        for fault in sheet.faults:
            print_error(f"{sheet.file}: {fault}")
        typer.echo(
            f"{sheet.file}: {len(sheet.rows):,} of {len(sheet.study.units):,} lines imported, study"
            f" {sheet.study.study}, {sheet.annotator}"
        )
    print_note("citeloom run --select report shows them")
    return 1 if any(sheet.faults for sheet in sheets) else 0
