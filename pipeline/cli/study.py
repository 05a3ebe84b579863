"""The commands `citeloom study`: sheets for raters out, their ratings in, what they say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.evaluation.human.results import JudgeAgreement, Mean, Results


def export(
    to: Annotated[Path, typer.Option(help="Folder for what raters get: form, sheet and instructions.")],
    months: MonthsOption = "all",
    tasks: Annotated[int, typer.Option(min=1, max=200, help="Tasks that each rater is given, at most.")] = 10,
    systems: Annotated[str | None, typer.Option(help="These systems, with commas between; else those set.")] = None,
    name: Annotated[str, typer.Option(help="Name of the study; raters see it.")] = "study",
    seed: Annotated[int, typer.Option(help="Chooses tasks and letters; raters should not know it.")] = 0,
    with_gold: Annotated[bool, typer.Option("--with-gold", help="Show raters the published section too.")] = False,
    as_json: AsJson = False,
) -> int:
    """Write blind rating sheets; which system is behind which letter stays in the data root."""
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.human.choosing import choose
    from pipeline.evaluation.human.sheets import check_folder, write_sheets
    from pipeline.evaluation.human.study import check_name, keep_key

    workspace = Workspace(load_settings(**({} if systems is None else {"systems": systems})))
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
        told = {"study": name, "tasks": len(choice.shown), "systems": choice.study.systems, "lacking": choice.lacking}
        print_json({**told, "files": files, "key": key})
    else:
        typer.echo("\n".join(map(str, files)))
        print_note(f"the key is {key}: keep it from raters")
    return 0


def import_(
    files: Annotated[list[Path], typer.Argument(help="Files that raters sent back, CSV or JSON.")],
    name: Annotated[str | None, typer.Option(help="The study, where the files do not say it.")] = None,
    rater: Annotated[str | None, typer.Option(help="The rater, where a file does not name one.")] = None,
    as_json: AsJson = False,
) -> int:
    """Take ratings in: all of the files, or nothing."""
    from pipeline.cli.console import print_json, print_note
    from pipeline.evaluation.human.keeping import import_ratings

    done = import_ratings(Workspace(load_settings()), files, name=name, rater=rater)
    for note in done.notes:
        print_note(note)
    for study, who, task in done.replaced:
        print_note(f"study {study}: what {who} gave to {task} before is replaced")
    if as_json:
        print_json(asdict(done))
    else:
        typer.echo(
            f"{done.rows} ratings of {done.tasks} tasks by {', '.join(done.raters)}, study {', '.join(done.studies)}, "
            f"into human_ratings of {', '.join(done.months)}"
        )
    return 0


def results(
    months: MonthsOption = "all",
    name: Annotated[str | None, typer.Option(help="One study; else all.")] = None,
    as_json: AsJson = False,
) -> int:
    """Say what raters gave and preferred, how far they agree, and whether the judge agrees with them."""
    from pipeline.arxiv.months import select_months
    from pipeline.cli.console import out, print_json
    from pipeline.errors import MissingInput
    from pipeline.evaluation.human.results import read_results
    from pipeline.tables import HUMAN_RATINGS

    root = Workspace(load_settings()).root
    there = root.months(HUMAN_RATINGS)
    found = read_results(root, select_months(months, there) if there else [], name)
    if not found.ratings:
        wanted = "" if name is None else f" of study {name}"
        raise MissingInput(f"there are no ratings{wanted} in {root.path}: run citeloom study import FILE")
    if as_json:
        print_json(found.as_json())
        return 0
    for table in result_tables(found):
        out.print(table)
    return 0


def result_tables(found: Results) -> list[Table]:
    """The results as tables: by system, agreement of raters, and the judge beside them."""
    return [_systems_table(found), _agreement_table(found), *map(_judge_table, found.judges)]


def _systems_table(found: Results) -> Table:
    from rich.table import Table

    raters = f"{len(found.raters)} raters" if len(found.raters) != 1 else "1 rater"
    told = f"{raters}, {found.tasks} tasks, {found.ratings} ratings"
    table = Table("mean mark, 1 to 5", title=told, title_justify="left")
    for system in found.systems:
        table.add_column(system.system, justify="right")
    for name in found.systems[0].marks:
        table.add_row(name.replace("_", " "), *(_told(system.marks[name]) for system in found.systems))
    table.add_section()
    table.add_row("preferred, %", *(_told(system.preferred, 100) for system in found.systems))
    return table


def _told(mean: Mean, scale: float = 1) -> str:
    return _between(mean.value, mean.low, mean.high, 0 if scale == 100 else 2, scale)


def _between(value: float | None, low: float | None, high: float | None, digits: int = 2, scale: float = 1) -> str:
    if value is None:
        return "–"
    ends = "" if low is None or high is None else f" [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"
    return f"{scale * value:.{digits}f}{ends}"


def _agreement_table(found: Results) -> Table:
    from rich.table import Table

    table = Table("agreement of raters", "value, 95 % interval", "rated by two or more")
    for name, each in found.alpha.items():
        table.add_row(f"alpha, {name.replace('_', ' ')}", _between(each.value, each.low, each.high), f"{each.units}")
    each = found.kappa
    table.add_row("kappa, preference", _between(each.value, each.low, each.high), f"{each.units}")
    return table


def _judge_table(judge: JudgeAgreement) -> Table:
    from rich.markup import escape
    from rich.table import Table

    title = f"{escape(judge.judge)}, marking {judge.mode}, beside the raters"
    table = Table(title, "sections", "Spearman", "same order", "raters less judge")
    for criterion, each in judge.marks.items():
        if each is not None:
            numbers = (f"{each.sections}", _number(each.spearman), _share(each.same_order))
            table.add_row(criterion.replace("_", " "), *numbers, f"{each.mean_difference:+.2f}")
    if judge.votes:
        table.add_row("same favourite", f"{judge.same} of {judge.votes} tasks")
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"
