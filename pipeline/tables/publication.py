"""Which columns of the tables may be published: the lists of `publication.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LISTS = Path(__file__).with_name("publication.toml")


@dataclass(frozen=True, slots=True)
class Publication:
    """The columns of a table. published: anyone may have them. texts: words of the row's paper,
    which its licence may allow to redistribute. withheld: neither.
    """

    published: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


@cache
def publications() -> dict[str, Publication]:
    """Name of a table → its columns."""
    lists = tomllib.loads(_LISTS.read_text(encoding="utf-8"))
    return {
        table: Publication(**{name: tuple(columns) for name, columns in by_list.items()})
        for table, by_list in lists.items()
    }
