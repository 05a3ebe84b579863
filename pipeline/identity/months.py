"""arXiv months, `YYYY-MM`: the one partition dimension of citeloom."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.errors import SettingError

_MONTH = re.compile(r"(?:199[1-9]|20\d\d)-(?:0[1-9]|1[0-2])")

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_PART = re.compile(r"all|\d{4}-\d\d(?:\.\.\d{4}-\d\d)?")


def is_month(text: str) -> bool:
    """Whether `text` is a month as `YYYY-MM`, 1991 or later."""
    return _MONTH.fullmatch(text) is not None


def month_name(month: str) -> str:
    """`2024-03` → `March 2024`."""
    year, number = month.split("-")
    return f"{_MONTHS[int(number) - 1]} {year}"


def parse_month(text: str) -> str:
    """Return `text` if it is a month as `YYYY-MM`; raises SettingError otherwise."""
    if not is_month(text):
        raise SettingError(f"{text!r} is not a month: write it as YYYY-MM, for example 2024-03")
    return text


def check_selection(selection: str) -> None:
    """Raise SettingError if a selection of months, as `select_months` takes it, is malformed."""
    for part in _parts(selection):
        _bounds(part)


def select_months(selection: str, available: Iterable[str]) -> list[str]:
    """The available months that a selection names, oldest first.

    `selection` is `all`, one month (`2024-03`), a range (`2024-03..2024-05`, both ends included),
    or several of these separated by commas. Raises SettingError if it is malformed or names none.
    """
    in_dump = sorted(set(available))
    selected: set[str] = set()
    for part in _parts(selection):
        low, high = _bounds(part)
        months = [month for month in in_dump if low <= month <= high]
        if not months and part != "all":
            raise SettingError(
                f"no month of {part} is in the dump; it holds {describe_months(in_dump)}"
            )
        selected.update(months)
    return sorted(selected)


def _parts(selection: str) -> list[str]:
    parts = [part.strip() for part in selection.split(",")]
    if not all(map(_PART.fullmatch, parts)):
        raise SettingError(
            f"{selection!r} does not name months: write 2024-03, 2024-03..2024-05, all, or several"
            " of these, comma-separated"
        )
    return parts


def _bounds(part: str) -> tuple[str, str]:
    """The first and the last month of a part."""
    if part == "all":
        return "", "9999-99"
    first, dots, last = part.partition("..")
    low, high = parse_month(first), parse_month(last if dots else first)
    if low > high:
        raise SettingError(f"the range {part} runs backwards: write it as {high}..{low}")
    return low, high


def describe_months(months: list[str]) -> str:
    """The months in words: at most six by name, else their number, the first and the last."""
    if not months:
        return "no month at all"
    if len(months) <= 6:
        return ", ".join(months)
    return f"{len(months)} months from {months[0]} to {months[-1]}"
