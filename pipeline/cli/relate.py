"""The commands `citeloom relate` and `import-tasks`: a draft's related work, tasks of others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from pipeline.related_work.relate import Related


def relate(
    target: Annotated[Path | None, typer.Option(help="Your draft, as Markdown or plain text.")] = None,
    reference: Annotated[
        list[str] | None, typer.Option(help="arXiv id of a paper of the corpus; once for each.")
    ] = None,
    task: Annotated[Path | None, typer.Option(help="Task file with target and references, in place of both.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for related_work.md and references.bib.")] = None,
    system: Annotated[str, typer.Option(help="Which system writes.")] = "chatcite",
    as_json: AsJson = False,
) -> int:
    """Write a related-work section for your own draft and references."""
    from pipeline.cli.console import print_json, print_note

    if output is not None and output.exists() and not output.is_dir():
        raise SettingError(f"--output {output} is a file: name a folder")
    if task is not None and (target is not None or reference):
        raise SettingError("--task brings its own target and references: leave --target and --reference out")
    related = _relate_draft(target, reference or [], system) if task is None else _relate_task(task, system)
    for note in related.notes:
        print_note(note)
    if output is not None:
        _write_related(related, output)
    if as_json:
        print_json(asdict(related))
    elif output is None:
        typer.echo(f"{related.markdown}\n\n{related.bibtex}")
    return 0


def _relate_draft(target: Path | None, references: list[str], system: str) -> Related:
    from pipeline.cli.console import waiting
    from pipeline.related_work.relate import relate as write

    if target is None or not references:
        raise SettingError("give --target DRAFT and --reference ID (once for each), or --task FILE")
    if not target.is_file():
        raise SettingError(f"--target {target} is not a file: give the path of your draft")
    draft = target.read_text(encoding="utf-8", errors="replace")
    with waiting(f"{system} reads the draft and {len(references)} references, and writes"):
        return write(Workspace(load_settings()), draft, references, system=system)


def _relate_task(task: Path, system: str) -> Related:
    from pipeline.cli.console import waiting
    from pipeline.related_work.relate import relate_file

    with waiting(f"{system} reads the task's target and references, and writes"):
        return relate_file(Workspace(load_settings()), task, system=system)


def _write_related(related: Related, folder: Path) -> None:
    from pipeline.storage.writing import write_whole

    for name, text in (("related_work.md", related.markdown), ("references.bib", related.bibtex)):
        write_whole(folder / name, f"{text}\n".encode())
        typer.echo(str(folder / name), err=True)


def import_tasks(
    files: Annotated[list[Path], typer.Argument(help="Files of the data set rwsg-prv, one for each target.")],
    output: Annotated[Path, typer.Option(help="Folder for the task files.")],
    month: Annotated[
        str | None, typer.Option(help="Month of the dump that they are to be run with; none for citeloom relate.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make task files, as CITELOOM_TASKS_DIR and relate --task read them, of another data set's files."""
    from pipeline.arxiv.months import parse_month
    from pipeline.cli.console import print_json, print_note
    from pipeline.related_work.imported import import_rwsg
    from pipeline.related_work.task_files import write_task_file

    parsed = None if month is None else parse_month(month)
    made = [(import_rwsg(file, parsed), file) for file in files]
    written = [write_task_file(each.task, output) for each, _ in made]
    for each, file in made:
        if each.uncited or each.unmatched:
            print_note(
                f"{file}: {len(each.uncited)} of {len(each.task.references)} references are not seen to be cited, "
                f"{len(each.unmatched)} citations are of no reference: {'; '.join(each.unmatched) or 'none'}"
            )
    if as_json:
        print_json([str(file) for file in written])
    else:
        typer.echo("\n".join(map(str, written)))
    return 0
