"""Read the numbers of a text with their units: 12.5 %, 1,200, 3.4 million, 2.1M, 10–20 ms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FORMS_OF_UNITS = {
    "%": "% percent", "times": "× x times fold", "ms": "ms milliseconds",
    "s": "s sec second seconds", "min": "min minute minutes", "h": "h hour hours",
    "days": "day days", "weeks": "week weeks",
    "months": "month months", "years": "year years", "KB": "KB", "MB": "MB", "GB": "GB", "TB": "TB",
}  # fmt: skip
_UNITS = {form: unit for unit, forms in _FORMS_OF_UNITS.items() for form in forms.split()}
_MULTIPLIERS = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "K": 1e3,
    "M": 1e6, "B": 1e9,
}  # fmt: skip
_WORDS = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_VALUES = {word: float(value) for value, word in enumerate(_WORDS, start=2)}


def _any_of(forms: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))


# Longer ones are no quantities, and no floats.
_DIGITS = r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?!\d)(?:\.\d{1,15})?"
_UNIT = rf"[ -]?(?P<unit>{_any_of(_UNITS)})(?![^\W_])"
_NUMBER = re.compile(
    rf"(?<![\d.])(?P<number>{_DIGITS}|\b(?:{_any_of(_VALUES)})\b)"
    rf"(?:[ -]?(?P<times>{_any_of(_MULTIPLIERS)})(?![^\W_]))?"
)
# The first number of a range has the unit of the second: 10–20 ms, 10 to 20 ms.
_UNIT_BEHIND = re.compile(rf"(?P<to>[ ]?(?:[-–—]|to)[ ]?(?:{_DIGITS}))?{_UNIT}")
# GPT-4, recall@10, x_1, 10^5 and Table 2; what follows a number that is part of a name, a version
# or a formula.
_NAME_BEFORE = re.compile(r"(?:[^\W\d_][-–.@/:+]?|[\^_@/])$")
_WORD_OF_NAME_BEFORE = re.compile(r"\b[A-Z]\w*\.? $")
_NAME_BEHIND = re.compile(r"[^\W_]|[\^_@/]|[.]\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
# Of LaTeX: 3.5\,ms, 1{,}200, 2\times, 40\%.
_SPACE = re.compile(r"\\[,;:! ]|~")
_MARKUP = re.compile(r"\\(?=[%$&#])|[${}]")
_LEAST_ROUNDED = 1_000


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text.

    text: as printed, with its unit. value: with its factor ("3 million"); 40 for 40 %. step: value
    of one unit of its last digit that counts. unit: empty for none. is_quantity: in digits, and no
    year and no part of a name or a formula.
    """

    text: str
    value: float
    step: float
    unit: str
    is_quantity: bool

    def agrees(self, other: Number) -> bool:
        """Whether the other has this value, or has it once it is rounded as this one is; and this
        unit, or one of them has none.
        """
        if self.unit and other.unit and self.unit != other.unit:
            return False
        values = [other.value]
        if self.unit == "%" and not other.unit:
            values.append(other.value * 100)
        elif other.unit == "%" and not self.unit:
            values.append(other.value / 100)
        rounding = self.step / 2 if other.step < self.step else 0.0
        return any(abs(value - self.value) <= rounding + 1e-9 * self.value for value in values)

    def distance(self, other: Number) -> float:
        """How far the other's value is from this one."""
        return abs(other.value - self.value)


def numbers_of(text: str) -> Iterator[Number]:
    """The numbers of a text, of its tables and formulas too, in order."""
    text = _MARKUP.sub("", _SPACE.sub(" ", text.replace("{,}", ",").replace(r"\times", "×")))
    for match in _NUMBER.finditer(text):
        digits = match["number"].replace(",", "")
        factor = _MULTIPLIERS.get(match["times"], 1.0)
        behind = _UNIT_BEHIND.match(text, match.end())
        end = behind.end() if behind else match.end()
        is_word = digits in _VALUES
        value = (_VALUES[digits] if is_word else float(digits)) * factor
        is_bare = not (behind or match["times"] or "." in digits or digits != match["number"])
        is_year = _YEAR.fullmatch(digits) and (is_bare or text[match.end() : end] == "s")
        before = text[max(0, match.start() - 40) : match.start()]
        is_name = (
            _NAME_BEFORE.search(before)
            or _NAME_BEHIND.match(text, end)
            or is_year
            or (is_bare and _WORD_OF_NAME_BEFORE.search(before))
        )
        yield Number(
            match[0] + (behind[0] if behind and not behind["to"] else ""),
            value,
            _step(digits, value, factor),
            _UNITS[behind["unit"]] if behind else "",
            is_quantity=not (is_word or is_name),
        )


def _step(digits: str, value: float, factor: float) -> float:
    """One unit of the last digit. From 1,000 on zeros at the end are rounded, within 5 %."""
    decimals = digits.partition(".")[2]
    zeros = len(digits) - len(digits.rstrip("0"))
    if decimals or not zeros or value < _LEAST_ROUNDED:
        return factor * 10.0 ** -len(decimals)
    return min(factor * 10.0**zeros, value / 10)
