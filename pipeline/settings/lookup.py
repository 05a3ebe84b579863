"""Look up things by the names that a setting or an option gives, such as systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pipeline.errors import SettingError

Item = TypeVar("Item")


def lookup_all(items: Mapping[str, Item], names: Iterable[str], setting: str) -> list[Item]:
    """The items that a setting (CITELOOM_…) names, sorted by name, without repetition.

    Raises SettingError for an unknown name, and for no name at all.
    """
    wanted = set(names)
    unknown = sorted(wanted - items.keys())
    if unknown or not wanted:
        raise SettingError(f"{setting} names {', '.join(unknown) or 'nothing'}: write some of {_list_names(items)}")
    return [items[name] for name in sorted(wanted)]


def lookup(items: Mapping[str, Item], name: str, option: str) -> Item:
    """The item that an option (--system) names. Raises SettingError for an unknown name."""
    if name not in items:
        raise SettingError(f"{option} {name}: there is no such {option.lstrip('-')}; write one of {_list_names(items)}")
    return items[name]


def _list_names(items: Mapping[str, object]) -> str:
    return ", ".join(sorted(items))
