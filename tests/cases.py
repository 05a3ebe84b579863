"""Cases of a parser, kept as tables of a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def cases(file: str, group: str | None = None) -> pytest.MarkDecorator:
    """Run a test once for each case of a file below `tests/`, or of one group in it.

    Each table is a case, which the test gets as `case`; its name is the test's id. A group may also
    be a list of texts, each of which is a case.
    """
    content = tomllib.loads((TESTS / file).read_text(encoding="utf-8"))
    chosen = content if group is None else content[group]
    named = dict(zip(chosen, chosen, strict=True)) if isinstance(chosen, list) else chosen
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=name or "nothing") for name, case in named.items()]
    )
