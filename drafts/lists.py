"""Read the lists beside this file: words of `lists.toml`, and rows of its tables."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@cache
def word_list(name: str) -> frozenset[str]:
    """The words of a list of `lists.toml`."""
    return frozenset(_lists()[name].split())


@cache
def table_rows(name: str) -> list[dict[str, str]]:
    """The rows of a table, by the names of its columns."""
    with (_FOLDER / f"{name}.tsv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def _lists() -> Mapping[str, str]:
    return tomllib.loads((_FOLDER / "lists.toml").read_text(encoding="utf-8"))
