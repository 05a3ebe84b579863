"""Choosing among things that have names, such as systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pipeline.errors import SettingError

Named = TypeVar("Named")


def chosen(known: Mapping[str, Named], names: Iterable[str], setting: str) -> list[Named]:
    """What a setting (CITELOOM_…) names, by name, once each.

    Raises SettingError for a name that there is not, and for none at all.
    """
    wanted = set(names)
    unknown = sorted(wanted - known.keys())
    if unknown or not wanted:
        raise SettingError(f"{setting} names {', '.join(unknown) or 'nothing'}: write some of {_names(known)}")
    return [known[name] for name in sorted(wanted)]


def named(known: Mapping[str, Named], name: str, option: str) -> Named:
    """What the value of an option names. Raises SettingError for a name that there is not."""
    if name not in known:
        raise SettingError(f"{option} {name}: there is no such {option.lstrip('-')}; write one of {_names(known)}")
    return known[name]


def _names(known: Mapping[str, object]) -> str:
    return ", ".join(sorted(known))
