"""The commands `citeloom relate` and `import-tasks`."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.doors.cli.common import (
    AsJson,
    RelatedWorkSystemOption,
    check_file,
    open_workspace,
)
from pipeline.errors import SettingError
from pipeline.text import visible

if TYPE_CHECKING:
    from pipeline.related_work.importers import ImportedTask
    from pipeline.related_work.relate import Related


def relate(
    target: Annotated[
        Path | None, typer.Option(help="Your draft, as LaTeX, Markdown or plain text.")
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="arXiv id of a paper of the corpus, or key of the bibliography; repeatable.",
        ),
    ] = None,
    bib: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Bibliography (.bib or .bbl); by default the one that the draft names.",
        ),
    ] = None,
    task: Annotated[
        Path | None,
        typer.Option(
            help="Task file, which has the draft and its references, instead of --target."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for related_work.md, related_work.tex and references.bib."),
    ] = None,
    system: RelatedWorkSystemOption = None,
    as_json: AsJson = False,
) -> int:
    """Write a related-work section, or notes for one, for your own draft and references.

    Examples:
      citeloom relate --target draft.md --reference 2403.02574
      citeloom relate --target paper.tex --bib references.bib --output out
      citeloom relate --task task.json --system zero_shot --output out
    """
    if output is not None and output.exists() and not output.is_dir():
        raise SettingError(f"--output {output} is a file: give a folder")
    if task is not None and (target is not None or reference or bib):
        raise SettingError(
            "--task has its own target and references: leave --target, --reference and --bib out"
        )
    check_file("--target", target)
    check_file("--bib", bib)
    check_file("--task", task)

    from pipeline.doors.cli.console import print_json, print_note, spinner
    from pipeline.plugins import of_drafts
    from pipeline.related_work.relate import relate_file
    from pipeline.related_work.systems import RELATED_WORK_WRITERS

    workspace = open_workspace()
    system = system or RELATED_WORK_WRITERS.default_name(workspace.settings)
    related: Related
    with spinner(f"{system} reads the text and its references, and writes"):
        if task is not None:
            related = relate_file(workspace, task, system=system)
        elif target is not None:
            related = of_drafts("relate")(workspace, target, bib, reference or [], system)
        else:
            raise SettingError("give --target DRAFT or --task FILE")
    print_note(*related.notes)
    if output is not None:
        _save(related, output)
    if as_json:
        print_json(asdict(related))
    elif output is None:
        typer.echo(visible(f"{related.markdown}\n\n{related.bibtex}"))
    return 0


def _save(related: Related, folder: Path) -> None:
    from pipeline.storage.writing import write_whole

    files = {
        "related_work.md": related.markdown,
        "related_work.tex": related.latex,
        "references.bib": related.bibtex,
    }
    for name, text in files.items():
        write_whole(folder / name, f"{text}\n".encode())
        typer.echo(str(folder / name), err=True)


class DataSet(StrEnum):
    """Data sets whose tasks can be imported."""

    NUDTRWG = "nudtrwg"


def import_tasks(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDERS...", help="Folders with NudtRwG's targets."),
    ],
    output: Annotated[Path, typer.Option(help="Folder for the task files.")],
    data_set: Annotated[DataSet, typer.Option("--from", help="Data set that the folders are of.")],
    month: Annotated[
        str | None,
        typer.Option(
            help="Month of the dump to run the tasks with; not needed for citeloom relate."
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Convert another data set to task files for CITELOOM_TASKS_DIR and relate --task.

    Examples:
      citeloom import-tasks NudtRwG --from nudtrwg --output tasks
      citeloom import-tasks NudtRwG --from nudtrwg --output tasks --month 2024-03
    """
    for path in paths:
        if not path.is_dir():
            raise SettingError(f"{path} is no folder: give the folder of {data_set}")

    from pipeline.doors.cli.console import print_json, print_note
    from pipeline.identity.months import parse_month
    from pipeline.related_work.task import write_task_file

    parsed = None if month is None else parse_month(month)
    files = []
    for imported in _imported(paths, parsed):
        files.append(write_task_file(imported.task, output))
        if imported.uncited or imported.unmatched:
            print_note(
                f"{imported.task.id}: {len(imported.uncited)} of"
                f" {len(imported.task.references)} references are never cited,"
                f" {len(imported.unmatched)} citations match no reference:"
                f" {'; '.join(imported.unmatched) or 'none'}"
            )
    if as_json:
        print_json([str(file) for file in files])
    else:
        typer.echo("\n".join(map(str, files)))
    return 0


def _imported(paths: list[Path], month: str | None) -> list[ImportedTask]:
    from pipeline.doors.cli.console import print_note
    from pipeline.related_work.importers import import_nudtrwg

    tasks = []
    for folder in paths:
        imported, faults = import_nudtrwg(folder, month)
        tasks += imported
        for fault in faults:
            print_note(f"left out: {fault}")
    return tasks
