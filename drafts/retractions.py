"""Look works up in the list of retractions that Retraction Watch publishes through Crossref.

Its columns: https://doi.org/10.13003/c23rw1d9.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from citeloom import SettingError
from drafts.author_lists import surname
from pipeline.identity.identifiers import split_dois
from pipeline.identity.titles import title_words

Work = tuple[Collection[str], str | None, Sequence[str]]
"""DOIs in lower case, title and authors of a work."""

_COLUMNS = (
    "Title",
    "Author",
    "RetractionDate",
    "RetractionDOI",
    "RetractionNature",
    "OriginalPaperDOI",
)
# Fewer words are the title of many works.
_FEWEST_WORDS = 4
_LONGEST_FIELD = 10_000_000
_RETRACTION, _REINSTATEMENT = "retraction", "reinstatement"
_DAYS = ("%m/%d/%Y %H:%M", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class Retraction:
    """A notice on a work. nature: as the list says, such as "Expression of concern"."""

    nature: str
    day: str
    doi: str

    @property
    def is_retraction(self) -> bool:
        """Whether the work is retracted, and not only corrected or doubted."""
        return self.nature.lower() == _RETRACTION

    @property
    def sentence(self) -> str:
        """The notice as a remark."""
        notice = f" (notice {self.doi})" if self.doi.startswith("10.") else ""
        return f"Retraction Watch: {self.nature.lower()} of {self.day}{notice}"


def find_retractions(file: Path, works: Sequence[Work]) -> list[Retraction | None]:
    """The newest notice on each work, found by its DOI, or by its title and first author.

    A reinstatement ends the notices before it. Raises SettingError where the file is missing, or is
    no list of retractions.
    """
    by_doi: dict[str, list[int]] = defaultdict(list)
    by_title: dict[str, list[int]] = defaultdict(list)
    for number, (dois, title, _) in enumerate(works):
        for doi in dois:
            by_doi[doi].append(number)
        words = title_words(title or "")
        if len(words) >= _FEWEST_WORDS:
            by_title[" ".join(words)].append(number)
    notices: dict[int, list[Retraction]] = defaultdict(list)
    for row in _rows(file):
        numbers = set[int]()
        for doi in split_dois(row["OriginalPaperDOI"]):
            numbers.update(by_doi.get(doi, ()))
        for number in by_title.get(" ".join(title_words(row["Title"])), ()):
            if _shares_author(row["Author"], works[number][2]):
                numbers.add(number)
        for number in numbers:
            day = _day(row["RetractionDate"])
            notice_doi = next(iter(split_dois(row["RetractionDOI"])), "")
            notices[number].append(Retraction(row["RetractionNature"].strip(), day, notice_doi))
    return [_newest(notices.get(number, [])) for number in range(len(works))]


def _newest(notices: Sequence[Retraction]) -> Retraction | None:
    """The notice that counts: a retraction before other notices on the same work."""
    ordered = sorted(notices, key=lambda notice: notice.day)
    for place, notice in enumerate(ordered):
        if notice.nature.lower() == _REINSTATEMENT:
            return _newest(ordered[place + 1 :])
    retractions = [notice for notice in ordered if notice.is_retraction]
    return next(reversed(retractions or ordered), None)


def _shares_author(names: str, authors: Sequence[str]) -> bool:
    theirs = set(filter(None, map(surname, names.split(";"))))
    ours = set(filter(None, map(surname, authors)))
    return not ours.isdisjoint(theirs)


def _day(text: str) -> str:
    for form in _DAYS:
        try:
            return datetime.strptime(text.strip(), form).date().isoformat()
        except ValueError:
            continue
    return text.strip()


def _rows(file: Path) -> Iterator[Mapping[str, str]]:
    if not file.is_file():
        raise SettingError(
            f"CITELOOM_RETRACTIONS={file}: there is no such file; give the CSV file of Retraction"
            " Watch, or nothing"
        )
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        reader = csv.DictReader(lines, restval="")
        missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise SettingError(
                f"CITELOOM_RETRACTIONS={file}: it has no column {missing[0]}; give the CSV file of"
                " Retraction Watch, or nothing"
            )
        limit_before = csv.field_size_limit(_LONGEST_FIELD)  # of the whole process
        try:
            yield from reader
        except csv.Error as error:
            raise SettingError(f"CITELOOM_RETRACTIONS={file} cannot be read: {error}") from error
        finally:
            csv.field_size_limit(limit_before)
