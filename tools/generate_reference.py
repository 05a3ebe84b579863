"""Write docs/reference from the commands, settings, tables, measures and results of benchmarks, the
README's figures, and names for --help.

    python -m tools.generate_reference

A test compares the committed files with what this writes.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import pyarrow as pa
from typer.models import ArgumentInfo, OptionInfo

from pipeline import stage_names
from pipeline.answering import systems as answering
from pipeline.related_work import systems as related_work
from pipeline.report.measures import measures
from pipeline.settings.fields import PROJECT
from pipeline.settings.settings import BUNDLED_LLM, PREFIX, Settings
from pipeline.stages import STAGES
from pipeline.tables import TABLES
from pipeline.text import one_line
from tools.markdown import markdown_table
from tools.measurements import Measurements

REPOSITORY = Path(__file__).resolve().parents[1]
NOTICE = "<!-- Written by `python -m tools.generate_reference`; do not edit by hand. -->"
# Pages that say more about a command than its help does.
PAGES = {
    "run": "../start/your-own-corpus.md",
    "demo": "../start/first-run.md",
    "refresh": "../how-to/refresh.md",
    "status": "../how-to/operate.md",
    "estimate": "../how-to/language-model.md",
    "convert": "../how-to/new-months.md",
    "fetch-html": "../how-to/new-months.md",
    "export": "../how-to/export.md",
    "search": "../methods/search.md",
    "ask": "../methods/answering.md",
    "chat": "../methods/answering.md",
    "relate": "../methods/related-work.md",
    "import-tasks": "../methods/related-work.md",
    "serve": "../how-to/serve.md",
    "mcp": "../how-to/assistants.md",
    "audit": "../methods/qdrant-index.md",
    "reindex": "../methods/qdrant-index.md",
    "ui": "../how-to/operate.md",
    "doctor": "doctor.md",
    "annotate": "../how-to/annotate.md",
}
MEASURES_INTRODUCTION = """\
# Measures

The metrics of the tables `scores` and `answer_scores`, and the counts beside them, as [reports](../how-to/read-the-report.md)
name and define them. Means are over tasks or questions. `pipeline/report/measures.toml` has them.
"""
COMMANDS_INTRODUCTION = """\
# Commands

`make` installs the command as `.venv/bin/citeloom`; `source .venv/bin/activate` puts it on your path. A relative
data root is relative to the folder where you call a command.

Exit codes: 0 done, 1 a stage failed or something is missing, 2 a setting or an argument is wrong, 130 interrupted. The
first Ctrl-C or SIGTERM lets the current work finish, for 15 seconds at most; a second one ends the command at once.
`--json` prints one JSON document to standard output, also for errors.
"""
SETTINGS_INTRODUCTION = """\
# Settings

Each setting is an environment variable, or a line `NAME=value` in a file `.env`; the environment takes precedence.
Secrets belong there too, never in an address. An unknown name that begins with `CITELOOM_`, a wrong value and a line of
`.env` that cannot be read stop every command with exit code 2 and a message that names them.

The environment variable `CITELOOM_ENV_FILE` names the file, by its whole path; empty, none is read. Unset, a command
reads `.env` of the folder in which it is run if that is the checkout, or the data root that the environment variable
`CITELOOM_DATA` names by its whole path. In any other folder the file is named on standard error and ignored, as the
author of a draft may have put it there. A value is taken as it is: `${NAME}` stands for no variable.

A dash stands for an empty default. Where two defaults are given, the second is used with the bundled language model,
that is, while `CITELOOM_LLM_URL` is empty.
"""
TABLES_INTRODUCTION = """\
# Tables

One table, one month, one file: `<data root>/<table>/<YYYY-MM>.parquet`. The ledger has one folder for each stage:
`ledger/<stage>/<YYYY-MM>.parquet`. A file is complete or absent. DuckDB and Polars read the files directly;
[`citeloom export`](../how-to/export.md) copies the columns that may be published.

The key `citeloom` of a file's metadata records how it was made: code and schema version, the settings that matter,
digests of the inputs, the number of rows, and what was left out. A file of another schema version is refused with a
message that names the command which makes it again. How tables depend on each other:
[how it is built](../concepts/how-it-is-built.md). In a data root, this prints the key:

```python
import json, pyarrow.parquet as pq

print(json.loads(pq.read_metadata("passages/2024-03.parquet").metadata[b"citeloom"]))
```
"""


def commands_page() -> str:
    """commands.md: every command by group, with its arguments and options."""
    from pipeline.doors.cli.app import GROUPS, GROUPS_PANEL, PANELS

    parts = [COMMANDS_INTRODUCTION]
    for panel, commands in PANELS.items():
        summaries = {}
        for name, function in commands.items():
            first_paragraph, *_ = inspect.cleandoc(function.__doc__ or "").split("\n\n")
            summaries[name] = one_line(first_paragraph)
        if panel == GROUPS_PANEL:
            summaries |= {name: purpose for name, (purpose, _) in GROUPS.items()}
        contents = [
            [f"[`citeloom {name}`](#citeloom-{name})", text] for name, text in summaries.items()
        ]
        parts += [f"**{panel}**\n", markdown_table(("command", "what it does"), contents)]
    for commands in PANELS.values():
        for name, function in commands.items():
            parts += [f"## citeloom {name}\n", *_further_page(name), *_command(name, function)]
    for group, (purpose, commands) in GROUPS.items():
        parts += [f"## citeloom {group}\n", f"{purpose}\n", *_further_page(group)]
        for name, function in commands.items():
            parts += [f"### citeloom {group} {name}\n", *_command(name, function)]
    return _page(parts)


def _command(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Paragraphs of help and epilog, then the parameters; a code block after `Examples:`."""
    from pipeline.doors.cli.app import EPILOGS

    text = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{EPILOGS.get(name, '')}"
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        first, *examples = (line.strip(" \b") for line in paragraph.splitlines())
        if first == "Examples:":
            yield "\n".join(("```", *examples, "```\n"))
        else:
            yield " ".join((first, *examples)) + "\n"
    rows = [
        _parameter(parameter)
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
    ]
    if rows:
        yield markdown_table(("argument or option", "value", "default", "what it says"), rows)


def _further_page(command: str) -> Iterator[str]:
    if command in PAGES:
        yield f"More: [{Path(PAGES[command]).stem.replace('-', ' ')}]({PAGES[command]}).\n"


def _parameter(parameter: inspect.Parameter) -> list[str]:
    """Name, values, default and help of an argument or option."""
    kind, info = get_args(parameter.annotation)
    if isinstance(kind, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    is_list = get_origin(kind) is list
    if is_list:
        (kind,) = get_args(kind)
    names = [info.metavar]
    if isinstance(info, OptionInfo):
        # Of an annotation, typer's first argument is no default but the first name.
        declared = [text for text in (info.default, *(info.param_decls or ())) if text is not ...]
        parts = [name for text in declared for name in str(text).split("/")]
        names = [name for name in parts if name.startswith("-")]
        names = names or [f"--{parameter.name.replace('_', '-')}"]
    name = ", ".join(f"`{name}`" for name in names)
    values = _values(kind, info)
    if is_list and isinstance(info, OptionInfo):
        values += ", repeatable"
    default = f"`{parameter.default}`"
    if parameter.default is inspect.Parameter.empty:
        default = "required"
    elif parameter.default is None or parameter.default is False or parameter.default == "":
        default = "–"
    return [name, values, default, " ".join((info.help or "").split()) or "–"]


def _values(kind: Any, info: OptionInfo | ArgumentInfo) -> str:
    if kind is bool:
        return "–"
    if isinstance(info, OptionInfo) and info.metavar:
        return str(info.metavar)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if issubclass(kind, Enum):
        return ", ".join(f"`{member.value}`" for member in kind)
    if kind in (int, float):
        lowest = "" if info.min is None else f" from {info.min:g}"
        highest = "" if info.max is None else f" to {info.max:g}"
        return f"number{lowest}{highest}"
    return "path" if kind is Path else "text"


def tables_page() -> str:
    """tables.md: what the stage of each table does, what a row is, and the columns."""
    stages = {stage.name: stage for stage in STAGES}
    contents = [[f"[`{name}`](#{name})", table.row] for name, table in TABLES.items()]
    parts = [TABLES_INTRODUCTION, markdown_table(("table", "a row is"), contents)]
    for name, table in TABLES.items():
        parts.append(f"## `{name}`\n")
        if name in stages:
            parts.append(f"{stages[name].description}\n")
        parts.append(f"One row is {table.row}. Schema version {table.version}.\n")
        columns = []
        for field, (_, _, text) in zip(table.schema, table.describe_columns(), strict=True):
            columns.append([f"`{field.name}`", f"`{_type(field.type)}`", text])
        parts.append(markdown_table(("column", "type", "what it holds"), columns))
    return _page(parts)


def _type(kind: pa.DataType) -> str:
    """The type in short: list[text], {name: text, year: int32}."""
    if pa.types.is_list(kind):
        return f"list[{_type(kind.value_type)}]"
    if pa.types.is_map(kind):
        return f"map[{_type(kind.key_type)}, {_type(kind.item_type)}]"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{field.name}: {_type(field.type)}" for field in kind) + "}"
    names = {"string": "text", "halffloat": "float16", "float": "float32", "double": "float64"}
    return names.get(str(kind), str(kind))


def _page(parts: Iterable[str]) -> str:
    return f"{NOTICE}\n\n" + "\n".join(parts)


def measures_page() -> str:
    """measures.md: what the numbers of reports mean."""
    rows = [[f"`{name}`", measure.title, measure.means] for name, measure in measures().items()]
    return _page(
        [MEASURES_INTRODUCTION, markdown_table(("metric", "in reports", "what it is"), rows)]
    )


def measurements_page() -> str:
    """measurements.md: every committed result of a benchmark."""
    return _page(Measurements().page())


def readme() -> str:
    """The README with its figures as the committed results have them."""
    return Measurements().readme((REPOSITORY / "README.md").read_text())


def settings_page() -> str:
    """The settings, a table for each group."""
    parts = [SETTINGS_INTRODUCTION]
    *groups, _ = Settings.__bases__
    for group in groups:
        rows = []
        for name, field in group.model_fields.items():
            default = _default(field.default)
            if name in BUNDLED_LLM:
                default += f", bundled {_default(BUNDLED_LLM[name])}"
            rows.append([f"{PREFIX}{name.upper()}", default, field.description or ""])
        parts.append(f"## {(group.__doc__ or '').strip()}\n")
        parts.append(markdown_table(("setting", "default", "what it is"), rows))
    return _page(parts)


def _default(value: object) -> str:
    """A default as a user would write it."""
    if value in (None, "", ()):
        return "–"
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, tuple):
        text = ",".join(map(str, value))
    elif isinstance(value, Path):
        text = str(value.relative_to(PROJECT))
    else:
        text = str(value)
    return f"`{text}`"


def stage_names_module() -> str:
    """stage_names.py: what --help and completion need of stages and systems, without the packages
    that these import.
    """
    names = _listed(stage.name for stage in STAGES)
    plain_names = "".join(
        f'    "{stage.name}": "{stage.plain_name}",\n' for stage in STAGES if stage.plain_name
    )
    return f"""\
\"\"\"Names of all stages, in the order in which they run, and of all systems, for --help and
completion.

Written from `pipeline.stages` and the systems by `python -m tools.generate_reference`; do not edit
by hand. Importing it is cheap.
\"\"\"

STAGE_NAMES = (
{names})
\"\"\"Those of their tables.\"\"\"
RELATED_WORK_SYSTEMS = (
{_listed(related_work.SYSTEMS)})
ANSWERING_SYSTEMS = (
{_listed(answering.SYSTEMS)})

_PLAIN_NAMES = {{
{plain_names}}}


def plain_name(stage: str) -> str:
    \"\"\"What commands and messages call a stage.\"\"\"
    return _PLAIN_NAMES.get(stage, stage)
"""


def _listed(names: Iterable[str]) -> str:
    return "".join(f'    "{name}",\n' for name in names)


GENERATED: Mapping[str, Callable[[], str]] = {
    "pipeline/stage_names.py": stage_names_module,  # before commands.md, which lists them
    "docs/reference/commands.md": commands_page,
    "docs/reference/settings.md": settings_page,
    "docs/reference/tables.md": tables_page,
    "docs/reference/measures.md": measures_page,
    "docs/reference/measurements.md": measurements_page,
    "README.md": readme,
}
"""Path of a generated file → its text."""


def main() -> None:
    for path, text in GENERATED.items():
        (REPOSITORY / path).write_text(text())
        if path.endswith("stage_names.py"):
            importlib.reload(stage_names)  # the command line, which takes them, is imported later


if __name__ == "__main__":
    main()
