"""Generate docs/reference/settings.md: `python -m pipeline.settings.reference` writes the file anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.settings.fields import GROUPS, PROJECT
from pipeline.settings.settings import EMBEDDED_LLM, PREFIX

FILE = PROJECT / "docs" / "reference" / "settings.md"

_HEAD = """\
<!-- Written by `python -m pipeline.settings.reference`; do not edit by hand. -->

# Settings

Each setting is an environment variable, or a line `NAME=value` in the file `.env` of the folder in which a command is
run; the environment takes precedence. Secrets belong there too, never in an address. An unknown name that begins with
`CITELOOM_`, a wrong value and a line of `.env` that cannot be read stop every command with exit code 2 and a message
that names them.

A dash stands for an empty default. Where two defaults are given, the second is used with the embedded language model,
that is, while `CITELOOM_LLM_URL` is empty.
"""


def render() -> str:
    """The page as Markdown: a heading and a table for each group."""
    return "\n".join([_HEAD, *_lines()])


def _lines() -> Iterator[str]:
    for group in GROUPS:
        yield from (f"## {(group.__doc__ or '').strip()}", "", "| setting | default | what it is |", "|---|---|---|")
        for name, field in group.model_fields.items():
            default = _format(field.default)
            if name in EMBEDDED_LLM:
                default += f", embedded {_format(EMBEDDED_LLM[name])}"
            yield f"| {PREFIX}{name.upper()} | {default} | {field.description} |"
        yield ""


def _format(value: object) -> str:
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


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(render())
