"""Find the list of references at the end of a plain text, and the citations of its items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drafts.draft import Entry
from pipeline.corpus.parse.policies import citation_marker
from pipeline.corpus.parse.typed_references import (
    are_references,
    cited_names,
    is_title_of_references,
)
from pipeline.identity.people import surname
from pipeline.identity.titles import title_words
from pipeline.text import replace_spans

_MARKUP = "#*_=: \t"
_LABEL = re.compile(
    r"[ \t]{0,3}(?:[-*+][ \t]+)?\\?(?:\[(?P<number>\d{1,4})\\?\]:?"
    r"|\[(?P<name>[A-Za-z][\w+.:-]{0,30})\\?\]"
    r"|\((?P<round>\d{1,3})\)|(?P<dot>\d{1,3})(?: ?[.)]|(?=\s)))"
    r"(?:[ \t]+(?=\S)|(?=[^\W\d_a-z]))"
)
_BULLET = re.compile(r"[ \t]*+[-*+•][ \t]+")
# "[dplyr](https://dplyr.org)", "Manual: <https://dplyr.org>."
_LINK = re.compile(r"(?:\[[^\]]*\]\([^)\s]*\)|(?:[^.,:]{1,40}: )?<?https?://\S++)\W*")
_HEADING = re.compile(r"#{1,6}[ \t]+\S|(?i:appendix|acknowledge?ments?|annex)\b.{0,60}$")
_BEGINS_ITEM = re.compile(r"[A-Z][^.]{0,40}[,.]")
_ENDS_ITEM = re.compile(r"(?:[.)\]”\d/]|https?://\S{1,150}|10\.\d{4}\S{1,100})\s{0,9}$")

_NUMBERS = re.compile(r"\[(\d{1,4}(?:\s*[,;–—-]\s*\d{1,4})*+)\](?![(:])")
_RANGE_OF_GROUPS = re.compile(r"\[(\d{1,4})\]\s?[–—-]\s?\[(\d{1,4})\]")
_ROUND = re.compile(r"\((\d{1,3}(?:\s*[,;–—-]\s*\d{1,3})*+)\)")
_RAISED = re.compile(r"\^(\d{1,3}(?:\s*[,;–—-]\s*\d{1,3})*+)\^")
# Small digits behind a word or a stop; those of a unit or a variable are its exponent.
_SMALL_DIGITS = re.compile(
    r"(?:(?<=[.,;:!?)\]\"”’])|(?<=[a-z]{3}))([⁰¹²³⁴-⁹]+(?:\s?[,–-]\s?[⁰¹²³⁴-⁹]+)*+)"
)
_PLAIN_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_NAMED = re.compile(r"\[([A-Za-z][^\[\]@]{0,120})\]")
_YEAR = re.compile(r"(?<![\w-])((?:19|20)\d\d)([a-z]?)(?![\w-])")
_UNKNOWN = re.compile(
    r"\(([A-Z][\w’'-]+(?: et al\.?| (?:and|&) [A-Z][\w’'-]+)?,? (?:19|20)\d\d[a-z]?)\)"
)
_LONGEST_NAMES = 80
_LONGEST_WRAPPED = 120


@dataclass(frozen=True, slots=True)
class TypedList:
    """A list. start: its first line, from 0. items: as (label, text, line from 1).

    form: `number`, `round`, `dot`, `name`, or `plain` for one without labels. is_read: whether its
    items look like references.
    """

    start: int
    items: tuple[tuple[str, str, int], ...]
    form: str
    is_read: bool


def find_list(lines: Sequence[str]) -> TypedList | None:
    """The list of references of a text; None where it has neither a heading nor labels of one."""
    headings = [
        number
        for number, line in enumerate(lines)
        if len(line) < 80 and is_title_of_references(line.strip(_MARKUP))
    ]
    if headings:
        start = headings[-1]
        first = start + 1
    else:
        # "1 Introduction" is no item.
        firsts = [
            number
            for number, line in enumerate(lines)
            if _number(line) == 1 and not line.lstrip().startswith("1 ")
        ]
        if not firsts:
            return None
        start = first = firsts[-1]
    end = first
    while end < len(lines) and not _HEADING.match(lines[end]):
        end += 1
    form, items = _items(lines, first, end)
    is_read = are_references([text for _, text, _ in items if not _LINK.fullmatch(text)])
    if not headings and not is_read:
        return None
    return TypedList(start, tuple(items), form, is_read)


def _number(line: str) -> int | None:
    label = _LABEL.match(line)
    digits = label and (label["number"] or label["round"] or label["dot"])
    return int(digits) if digits else None


def _items(lines: Sequence[str], first: int, end: int) -> tuple[str, list[tuple[str, str, int]]]:
    """The form of a list, and its items as (label, text, line from 1)."""
    while first < end and not lines[first].strip():
        first += 1
    label = _LABEL.match(lines[first]) if first < end else None
    form, expected = "plain", None
    if label is not None and label.lastgroup is not None:
        form, expected = label.lastgroup, _number(lines[first])
    is_wrapped = all(len(line) <= _LONGEST_WRAPPED for line in lines[first:end])
    items = list[list[str]]()
    places = list[tuple[str, int]]()
    for number in range(first, end):
        line = lines[number]
        label = _LABEL.match(line) if form != "plain" else None
        is_next = label is not None and label.lastgroup == form
        if is_next and expected is not None:
            is_next = _number(line) == expected
        if form == "plain":
            is_next = _begins_plain(lines, first, number, is_wrapped=is_wrapped)
        if is_next:
            if expected is not None:
                expected += 1
            places.append((label[form] if label else "", number + 1))
            mark = label or _BULLET.match(line)
            items.append([line[mark.end() :] if mark else line])
        elif items:
            items[-1].append(line)
    texts = [" ".join(" ".join(item).split()) for item in items]
    return form, [(name, text, line) for (name, line), text in zip(places, texts, strict=True)]


def _begins_plain(lines: Sequence[str], first: int, number: int, *, is_wrapped: bool) -> bool:
    """Whether a line without a label begins an item: by a bullet, a blank line, or its form; in a
    list that is not wrapped every line does.
    """
    line = lines[number]
    before = lines[number - 1] if number > first else ""
    if not line.strip():
        return False
    if _BULLET.match(line) or not before.strip():
        return True
    if line[0] in " \t":
        return False
    if not is_wrapped:
        return True
    return bool(_ENDS_ITEM.search(before[-200:]) and _BEGINS_ITEM.match(line))


def keys_of_names(entries: Sequence[Entry]) -> list[str]:
    """A key for each entry of a list without labels: first author and year."""
    keys, taken = list[str](), set[str]()
    for number, entry in enumerate(entries, start=1):
        first = entry.authors[0] if entry.authors else ""
        key = f"{''.join(first.split()[-1:])}{entry.year or ''}" or f"reference{number}"
        while key in taken:
            key += "x"
        taken.add(key)
        keys.append(key)
    return keys


def mark_citations(text: str, form: str, entries: Sequence[Entry]) -> tuple[str, list[str]]:
    """The text with markers for citations of the items of a list in this form; the citations by
    name and year without an item.
    """
    marked = text
    if form != "plain":
        marked = _mark_labels(text, form, frozenset(entry.key for entry in entries))
    if form == "plain" or (form == "dot" and marked == text):
        marked = _mark_names(text, entries)
        return marked, list(_unknown(marked))
    return marked, []


def _mark_labels(text: str, form: str, keys: frozenset[str]) -> str:
    """The text with citations by label as `[@key; @key]`."""
    if form == "name":
        return _NAMED.sub(lambda match: _named(match, keys), text)
    text = _RANGE_OF_GROUPS.sub(r"[\1-\2]", text)
    marked = _NUMBERS.sub(lambda match: _numbered(match, keys), text)
    if form == "round":
        marked = _ROUND.sub(lambda match: _numbered(match, keys), marked)
    marked = _SMALL_DIGITS.sub(lambda match: _numbered(match, keys), marked)
    return _RAISED.sub(lambda match: _numbered(match, keys), marked)


def _named(match: re.Match[str], keys: frozenset[str]) -> str:
    names = list(cited_names(match[1]))
    return citation_marker(names) if keys.issuperset(names) else match[0]


def _numbered(match: re.Match[str], keys: frozenset[str]) -> str:
    numbers = list(cited_names(match[1].translate(_PLAIN_DIGITS)))
    # Without one of them it is an interval, or a year.
    return match[0] if keys.isdisjoint(numbers) else citation_marker(numbers)


def _mark_names(text: str, entries: Sequence[Entry]) -> str:
    """The text with `[@key]` behind citations by name and year."""
    by_year: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.year:
            by_year.setdefault(entry.year, []).append(entry)
    markers, before = list[tuple[int, int, str]](), 0
    for match in _YEAR.finditer(text):
        names = text[max(before, match.start() - _LONGEST_NAMES) : match.start()]
        words = set(title_words(names.rpartition(";")[2]))
        fitting = [
            entry
            for entry in by_year.get(int(match[1]), ())
            if entry.authors and surname(entry.authors[0]) in words
        ]
        if match[2]:
            lettered = [entry for entry in fitting if match[0] in entry.raw]
            fitting = lettered or fitting
        before = match.end()
        if fitting:
            closing = text[match.end() : match.end() + 1]
            end = match.end() + (1 if closing in (")", "]") else 0)
            markers.append((end, end, f" [@{fitting[0].key}]"))
    return replace_spans(text, markers)


def _unknown(marked: str) -> Iterator[str]:
    for match in _UNKNOWN.finditer(marked):
        if not marked.startswith(" [@", match.end()):
            yield match[1]
