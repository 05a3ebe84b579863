"""Old and recent: whether a model can have known a paper by its knowledge cut-off."""

from __future__ import annotations

import calendar
import re
from datetime import date
from typing import Literal, get_args

from pipeline.errors import SettingError

Age = Literal["old", "recent"]
AGES: tuple[Age, ...] = get_args(Age)
_MONTH = re.compile(r"(\d{4})-(\d{2})")


def age_of(question_date: str, cutoff: str) -> Age | None:
    """old where the newest paper of a question first appeared up to a model's cut-off, recent after it; None where no
    cut-off is known (it is empty).

    Both are `YYYY-MM-DD`, or `YYYY-MM` for the month's last day: the report's "December 2023" is all of December, and a
    paper of which the month alone is known is taken to be as new as it may be. Raises SettingError for anything else.
    """
    if not cutoff.strip():
        return None
    return (
        "old" if _last_day(question_date, "date of a question") <= _last_day(cutoff, "knowledge cut-off") else "recent"
    )


def _last_day(text: str, what: str) -> date:
    month = _MONTH.fullmatch(text.strip())
    try:
        if month is None:
            return date.fromisoformat(text.strip())
        year, number = int(month[1]), int(month[2])
        return date(year, number, calendar.monthrange(year, number)[1])
    except (ValueError, calendar.IllegalMonthError):
        raise SettingError(f"{text!r} is no {what}: write it as YYYY-MM or YYYY-MM-DD") from None
