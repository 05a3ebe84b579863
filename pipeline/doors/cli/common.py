"""Options of several commands, the values that they complete, and the workspace of the settings.

Importing this module is cheap, as settings, tables and stages are imported in functions only:
--help and a wrong argument cost no import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.errors import SettingError
from pipeline.stage_names import (
    ANSWERING_SYSTEMS,
    RELATED_WORK_SYSTEMS,
    STAGE_NAMES,
    plain_name,
)

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings


def _complete(names: Sequence[str], *, several: bool = False) -> Callable[[str], list[str]]:
    """A completion by the names. several: also of those after a comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
AsBibtex = Annotated[bool, typer.Option("--bibtex", help="Print BibTeX entries of the papers.")]
AsRis = Annotated[bool, typer.Option("--ris", help="Print RIS records of the papers.")]
AsCsl = Annotated[bool, typer.Option("--csl", help="Print CSL-JSON items of the papers.")]
_PLAIN_NAMES = tuple(map(plain_name, STAGE_NAMES))

MonthsOption = Annotated[
    str,
    typer.Option(metavar="MONTHS", help="A month (2024-03), a range (2024-03..2024-05), or all."),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="STAGE",
        autocompletion=_complete(_PLAIN_NAMES),
        help="Run the stages up to and including this one.",
    ),
]
SelectOption = Annotated[
    str | None,
    typer.Option(
        metavar="STAGE,…",
        autocompletion=_complete(_PLAIN_NAMES, several=True),
        help="Run only these stages, comma-separated.",
    ),
]
SystemsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,…", help="Systems, comma-separated; by default those of the settings."
    ),
]
AnsweringSystemOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_complete(ANSWERING_SYSTEMS),
        help=(
            "System that answers: arxivbot_fused, arxivbot, wikichat, direct (reads no papers) or"
            " passages (calls no model); with a model: direct@gpt-4. By default arxivbot_fused, and"
            " passages where no endpoint is set."
        ),
    ),
]
RelatedWorkSystemOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_complete(RELATED_WORK_SYSTEMS),
        help=(
            f"System that writes: {', '.join(RELATED_WORK_SYSTEMS)}; with a model: zero_shot@gpt-4."
            " Or notes: the references with a quotation each. By default chatcite, and"
            " notes where no endpoint is set."
        ),
    ),
]


def split_names(text: str | None) -> list[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def only_one(**options: Any) -> str:
    """The option that is given, by its name; empty for none. Raises SettingError for several."""
    names = [name.replace("_", "-") for name, value in options.items() if value]
    if len(names) > 1:
        raise SettingError(f"--{names[0]} and --{names[1]} exclude each other: give one of them")
    return names[0] if names else ""


def check_file(argument: str, file: Path | None) -> None:
    """Raise SettingError if an argument names a file that does not exist, or a folder."""
    if file is None:
        return
    try:
        is_folder, exists = file.is_dir(), file.exists()
    except OSError as error:
        raise SettingError(f"{argument} {file}: {error.strerror}") from error
    if is_folder:
        raise SettingError(f"{argument} {file}: this is a folder; give a file")
    if not exists:
        raise SettingError(f"{argument} {file}: there is no such file")


def open_workspace(**overrides: Any) -> Workspace:
    """The workspace of the settings. An override that is None leaves its setting as it is."""
    from pipeline.engine.stage import Workspace
    from pipeline.settings import load_settings

    return Workspace(
        load_settings(**{name: value for name, value in overrides.items() if value is not None})
    )


def export_settings(settings: Settings) -> None:
    """Write to the environment, for child processes that may work in another folder, what options
    override, every path in full, and which `.env` counts.
    """
    from pipeline.settings.env_file import find_env_file

    values = {
        **{name: value for name, value in settings.model_dump().items() if isinstance(value, Path)},
        "dump_dir": settings.dump_dir,
        "metadata_snapshot": settings.metadata_snapshot,
        "data": settings.data_root,
        "local": settings.local_root,
        "qdrant_url": settings.qdrant_url,
        "env_file": find_env_file(),
    }
    path = settings.embedder_path
    values |= {
        "embedder": settings.embedder,
        "embedder_path": Path(path) if Path(path).is_dir() else path,
    }
    for name, value in values.items():
        text = value.absolute() if isinstance(value, Path) else value or ""
        os.environ[f"CITELOOM_{name.upper()}"] = str(text)
