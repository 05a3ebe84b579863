"""A task file from works and a section that cites them, for every data set.

A section that is not numbered yet cites a work as `[Work i]`, i being the place of the work in the
data set, from 0. Citations by name and year, (Zhang et al., 2018) or Popović (2015), are matched to
the works first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.related_work.task import FileReference, TaskFile
from pipeline.text import one_line

_WORK = re.compile(r"\[Work (\d+)\]")


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """A task, the titles of references that its section does not cite, and citations that match no
    reference.
    """

    task: TaskFile
    uncited: tuple[str, ...]
    unmatched: tuple[str, ...] = ()


def make_imported_task(
    identifier: str,
    month: str | None,
    title: str,
    text: str,
    section: str,
    works: Sequence[FileReference],
    *,
    arxiv_id: str | None = None,
    unmatched: Sequence[str] = (),
    in_bibliography_order: bool = False,
) -> ImportedTask:
    """The task with its references in the order of a bibliography, not of their first citation.

    in_bibliography_order: whether the works come in that order; else they are sorted as most
    bibliographies of names are. Raises pydantic's ValidationError where a task file cannot hold it.
    """
    places = (
        range(len(works))
        if in_bibliography_order
        else sorted(range(len(works)), key=lambda i: _key(works[i]))
    )
    numbers = {place: number for number, place in enumerate(places, 1)}
    cited = {int(place) for place in _WORK.findall(section)}
    task = TaskFile(
        format="citeloom-task-1",
        id=identifier,
        month=month,
        title=title,
        arxiv_id=arxiv_id,
        text=text,
        related_work=_WORK.sub(
            lambda match: f"[Reference {numbers[int(match[1])]}]", section
        ).strip(),
        references=tuple(works[place] for place in places),
    )
    uncited = tuple(work.title for place, work in enumerate(works) if place not in cited)
    return ImportedTask(task, uncited, tuple(unmatched))


def _key(work: FileReference) -> tuple[str, int, str]:
    """Family name of the first author, year, title; works without authors are sorted in by their
    title.
    """
    return family_name(work.authors) or letters(work.title), work.year or 0, letters(work.title)


def family_name(authors: Sequence[str]) -> str:
    """The letters of the first author's last name, in lower case; "" without authors."""
    words = authors[0].split() if authors else []
    return letters(words[-1]) if words else ""


def letters(text: str) -> str:
    """A text's letters without accents and case, by which names and titles are compared."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(sign for sign in plain if sign.isalpha())


def item_text(authors: Sequence[str], year: int | None, title: str) -> str:
    """A bibliography item for a work of which no more is known."""
    return f"{', '.join(authors)}{f' ({year})' if year else ''}. {title}.".lstrip(" .")


_NAME = r"[^\W\d_][\w’'´`\-]{1,60}"
_OTHERS = rf"(?:\s+et\s+al\.?|\s+(?:and|&)\s+{_NAME})?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})(?P<letter>[a-z]?)"
# Zhang et al. (2018), Bulte and Tezcan (2019), Popović (2015): the names stay, the year goes.
_IN_TEXT = re.compile(rf"(?P<names>(?P<first>{_NAME}){_OTHERS})\s*\({_YEAR}\)")
# Text between two semicolons of (Zhang et al., 2018; Popović, 2015).
_IN_GROUP = re.compile(rf"(?:.*?\s)??(?P<first>{_NAME}){_OTHERS},?\s+{_YEAR}")
_GROUP = re.compile(r"\(([^()]*(?:19|20)[0-9]{2}[a-z]?)\)")


class NameYearCitations:
    """Replaces citations of works by `[Work i]`; `unmatched` collects those that match none."""

    def __init__(self, works: Sequence[FileReference]) -> None:
        self.unmatched: list[str] = []
        self._works = works

    def mark(self, text: str) -> str:
        """The text with `[Work i]` in place of citations, i being a place among the works, from
        0.
        """
        return _GROUP.sub(self._mark_group, _IN_TEXT.sub(self._mark_in_text, text))

    def _mark_in_text(self, match: re.Match[str]) -> str:
        place = self._place(match)
        return match.group() if place is None else f"{match['names']} [Work {place}]"

    def _mark_group(self, match: re.Match[str]) -> str:
        marks, others = [], []
        for part in match[1].split(";"):
            cited = _IN_GROUP.fullmatch(part.strip())
            place = self._place(cited) if cited else None
            if place is None:
                others.append(part.strip())
            else:
                marks.append(f"[Work {place}]")
        if not marks:
            return match.group()
        return " ".join(marks + ([f"({'; '.join(others)})"] if others else []))

    def _place(self, cited: re.Match[str]) -> int | None:
        """Of works by this first author the one of this year, else the only one a year off, as
        preprints are.
        """
        family, year = letters(cited["first"]), int(cited["year"])
        same = [
            (place, work.year or 0)
            for place, work in enumerate(self._works)
            if family_name(work.authors) == family
        ]
        exact = [place for place, other in same if other == year]
        near = [place for place, other in same if abs(other - year) == 1]
        if exact:
            return exact[min(max(ord(cited["letter"] or "a") - ord("a"), 0), len(exact) - 1)]
        if len(near) == 1:
            return near[0]
        self.unmatched.append(one_line(cited.group()))
        return None
