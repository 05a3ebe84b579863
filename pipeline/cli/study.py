"""The commands `citeloom study`: rating sheets, import of ratings, and their results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption, SystemsOption, check_file
from pipeline.cli.workspace import open_workspace

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.evaluation.human.results import JudgeAgreement, Results


def export(
    to: Annotated[Path, typer.Option(help="Folder for the raters' files: form, sheet and instructions.")],
    months: MonthsOption = "all",
    tasks: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="Most tasks for each rater.")] = 10,
    systems: SystemsOption = None,
    name: Annotated[str, typer.Option(help="Name of the study; raters see it.")] = "study",
    seed: Annotated[int, typer.Option(metavar="N", help="Selects tasks and letters; raters should not know it.")] = 0,
    with_gold: Annotated[bool, typer.Option("--with-gold", help="Show raters the published section too.")] = False,
    as_json: AsJson = False,
) -> int:
    """Write blind rating sheets; the key to which system is behind which letter stays in the data root.

    Examples:
      citeloom study export --to sheets
      citeloom study export --to sheets --tasks 20 --systems chatcite,zero_shot
    """
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.human.choosing import choose
    from pipeline.evaluation.human.sheets import check_folder, write_sheets
    from pipeline.evaluation.human.study import check_name, keep_key

    workspace = open_workspace(systems=systems)
    check_folder(to)
    choice = choose(
        workspace.root, check_name(name), months, workspace.settings.systems,
        tasks=tasks, seed=seed, with_gold=with_gold,
    )  # fmt: skip
    key = keep_key(workspace.root, choice.study)
    files = write_sheets(choice, to)
    for note in choice.notes():
        print_note(note)
    if as_json:
        counts = {"study": name, "tasks": len(choice.shown), "systems": choice.study.systems, "lacking": choice.lacking}
        print_json({**counts, "files": files, "key": key})
    else:
        typer.echo("\n".join(map(str, files)))
        print_note(f"the key is {key}: do not give it to raters")
    return 0


def import_(
    files: Annotated[list[Path], typer.Argument(help="Files that raters sent back, CSV or JSON.")],
    name: Annotated[str | None, typer.Option(help="The study, if the files do not name it.")] = None,
    rater: Annotated[str | None, typer.Option(help="The rater, if a file does not name one.")] = None,
    as_json: AsJson = False,
) -> int:
    """Import the CSV or JSON files that raters sent back: all of them, or nothing.

    Examples:
      citeloom study import ratings-ada.json ratings-bob.csv
      citeloom study import sheet.csv --rater ada
    """
    for file in files:
        check_file("FILES", file)

    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.human.keeping import import_ratings

    imported = import_ratings(open_workspace(), files, name=name, rater=rater)
    for note in imported.notes:
        print_note(note)
    for study, who, task in imported.replaced:
        print_note(f"study {study}: the earlier ratings of task {task} by {who} are replaced")
    if as_json:
        print_json(asdict(imported))
    else:
        typer.echo(
            f"imported {imported.rows} ratings of {imported.tasks} tasks by {', '.join(imported.raters)}, "
            f"study {', '.join(imported.studies)}, into human_ratings of {', '.join(imported.months)}"
        )
    return 0


def results(
    months: MonthsOption = "all",
    name: Annotated[str | None, typer.Option(help="Only this study; by default all.")] = None,
    as_json: AsJson = False,
) -> int:
    """Show mean ratings and preferences, how far raters agree, and whether the judge agrees with them.

    Examples:
      citeloom study results
      citeloom study results --name pilot --json
    """
    from pipeline.arxiv.months import select_months
    from pipeline.cli.console import out, print_json
    from pipeline.errors import MissingInput
    from pipeline.evaluation.human.results import read_results
    from pipeline.tables import HUMAN_RATINGS

    root = open_workspace().root
    rated_months = root.months(HUMAN_RATINGS)
    results = read_results(root, select_months(months, rated_months) if rated_months else [], name)
    if not results.ratings:
        of_study = "" if name is None else f" of study {name}"
        raise MissingInput(f"there are no ratings{of_study} in {root.path}: run citeloom study import FILE")
    if as_json:
        print_json(results.as_json())
        return 0
    for table in result_tables(results):
        out.print(table)
    return 0


def result_tables(results: Results) -> list[Table]:
    """The results as tables: by system, agreement of raters, and the judge compared with them."""
    return [_systems_table(results), _agreement_table(results), *map(_judge_table, results.judges)]


def _systems_table(results: Results) -> Table:
    from pipeline.cli.console import make_table

    raters = f"{len(results.raters)} rater{'s' * (len(results.raters) != 1)}"
    systems = [system.system for system in results.systems]
    title = f"{raters}, {results.tasks} tasks, {results.ratings} ratings"
    table = make_table(title, ("mean rating, 1 to 5", *systems), right=systems)
    for criterion in results.systems[0].marks:
        means = (system.marks[criterion] for system in results.systems)
        table.add_row(criterion.replace("_", " "), *(_interval(mean.value, mean.low, mean.high) for mean in means))
    table.add_section()
    shares = (system.preferred for system in results.systems)
    table.add_row(
        "preferred, %", *(_interval(share.value, share.low, share.high, digits=0, scale=100) for share in shares)
    )
    return table


def _interval(value: float | None, low: float | None, high: float | None, *, digits: int = 2, scale: float = 1) -> str:
    if value is None:
        return "–"
    bounds = "" if low is None or high is None else f" [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"
    return f"{scale * value:.{digits}f}{bounds}"


def _agreement_table(results: Results) -> Table:
    from pipeline.cli.console import make_table

    table = make_table("", ("agreement of raters", "value, 95 % interval", "rated by two or more"))
    rows = {f"alpha, {criterion.replace('_', ' ')}": alpha for criterion, alpha in results.alpha.items()}
    rows["kappa, preference"] = results.kappa
    for name, agreement in rows.items():
        table.add_row(name, _interval(agreement.value, agreement.low, agreement.high), f"{agreement.units}")
    return table


def _judge_table(judge: JudgeAgreement) -> Table:
    from rich.markup import escape

    from pipeline.cli.console import make_table

    heading = f"{escape(judge.judge)}, marking {judge.mode}, compared with raters"
    table = make_table("", (heading, "sections", "Spearman", "same order", "raters less judge"))
    for criterion, agreement in judge.marks.items():
        if agreement is not None:
            table.add_row(
                criterion.replace("_", " "),
                f"{agreement.sections}",
                "–" if agreement.spearman is None else f"{agreement.spearman:.2f}",
                "–" if agreement.same_order is None else f"{100 * agreement.same_order:.0f} %",
                f"{agreement.mean_difference:+.2f}",
            )
    if judge.votes:
        table.add_row("same favourite", f"{judge.same} of {judge.votes} tasks")
    return table
