"""Files that raters send back, read and checked line by line.

A file comes from the form (CSV or JSON), or from a spreadsheet program that was given the sheet: with a byte order
mark or without, commas, semicolons or tabs between cells, columns in any order. Faults of one kind are told together,
so that a file is mended in one go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import SettingError
from pipeline.evaluation.human.cells import unguarded
from pipeline.evaluation.human.sheets import COLUMNS
from pipeline.storage.csv_reader import Record, columns, decoded, read_content, records
from pipeline.tables import CRITERIA

NEEDED = ("task", "label", *CRITERIA, "preferred")
_WANTED = "a file that a rater sent back"
LONGEST_NAME = 100
_FAULTS_TOLD = 10
# Spreadsheet programs write 4.0, or 4,0 where that is the custom.
_MARK = re.compile(r"([1-5])(?:[.,]0+)?", re.ASCII)
_YES, _NO = ("x", "1", "yes", "y", "true"), ("", "0", "no", "n", "false")


@dataclass(frozen=True, slots=True)
class Line:
    """What a rater gave to one section. place: file and line, for messages. preferred: None where nothing was said."""

    place: str
    study: str | None
    rater: str
    task: str
    label: str
    marks: Mapping[str, int | None]
    preferred: bool | None
    comment: str | None

    @property
    def empty(self) -> bool:
        """Whether nothing was entered."""
        return not (any(self.marks.values()) or self.preferred or self.comment)


@dataclass(slots=True)
class Returned:
    """A file as it came: its lines, and what the user should know of it."""

    file: Path
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def refuse(faults: Sequence[str]) -> None:
    """Raise SettingError with the first of some faults, one a line; nothing where there is none."""
    if faults:
        more = [f"and {len(faults) - _FAULTS_TOLD} more faults"] if len(faults) > _FAULTS_TOLD else []
        raise SettingError("\n".join([*faults[:_FAULTS_TOLD], *more]))


def read_returned(file: Path, rater: str | None = None) -> Returned:
    """The lines of a file. rater: whose marks they are where the file does not say.

    Raises SettingError that names the file, each line that cannot be read, and what to do.
    """
    text = decoded(file, read_content(file, _WANTED))
    read = _read_json if text.lstrip().startswith(("{", "[")) else _read_csv
    found = read(file, text, _rater(rater or "") or None)
    refuse([f"{each.place}: {fault}" for each in found.lines for fault in _faults_of_name(each.rater)])
    return found


def _rater(name: str) -> str:
    return " ".join(name.split())


def _faults_of_name(name: str) -> Iterator[str]:
    if not name:
        yield "the rater is not named: write the name into the column rater, or give --rater NAME"
    elif len(name) > LONGEST_NAME or not name.isprintable():
        yield f"rater is {name[:LONGEST_NAME]!r}: give a name of {LONGEST_NAME} printable characters at most"


def _read_csv(file: Path, text: str, rater: str | None) -> Returned:
    head, *lines = records(file, text, COLUMNS, _WANTED)
    header, notes = columns(file, head, NEEDED, COLUMNS)
    found = Returned(file, notes=notes)
    faults: list[str] = []
    told = {_rater(unguarded(name)) for line in lines if (name := _cells(header, line).get("rater", ""))}
    # One name on any line is that of all: nobody should have to write it forty times.
    alone = rater if not told else next(iter(told)) if len(told) == 1 else None
    for line in lines:
        place = f"{file} line {line.line}"
        faults += [f"{place}: it has more cells than there are columns"] if any(line.cells[len(header) :]) else []
        named = _cells(header, line)
        faults += [f"{place}: {fault}" for fault in _faults(named)]
        found.lines.append(_line(place, named, alone or ""))
    refuse(faults)
    return found


def _cells(header: Sequence[str], line: Record) -> dict[str, str]:
    return {name: cell.strip() for name, cell in line.by_column(header).items()}


def _faults(cells: Mapping[str, str]) -> Iterator[str]:
    for criterion in CRITERIA:
        mark = cells.get(criterion, "")
        if mark and not _MARK.fullmatch(mark):
            yield f"{criterion} is {mark[:40]!r}: give a whole number from 1 to 5, or leave it empty"
    chosen = cells.get("preferred", "")
    if chosen.casefold() not in (*_YES, *_NO):
        yield f"preferred is {chosen[:40]!r}: write x for the section that you like best, and nothing for others"


def _line(place: str, cells: Mapping[str, str], rater: str) -> Line:
    chosen = cells.get("preferred", "").casefold()
    marks = {criterion: _MARK.fullmatch(cells.get(criterion, "")) for criterion in CRITERIA}
    return Line(
        place=place,
        study=cells.get("study") or None,
        rater=_rater(unguarded(cells.get("rater", ""))) or rater,
        task=cells.get("task", "").upper(),
        label=cells.get("label", "").upper(),
        marks={criterion: int(mark[1]) if mark else None for criterion, mark in marks.items()},
        preferred=True if chosen in _YES else None if chosen == "" else False,
        comment=unguarded(cells.get("comment", "")).strip() or None,
    )


_GivenMark = Annotated[int | None, Field(ge=1, le=5, strict=True)]


class _Entry(BaseModel):
    """What one rater gave to one section, in JSON; the marks are those of CRITERIA."""

    model_config = ConfigDict(extra="forbid")

    task: str
    label: str
    consistency: _GivenMark
    coherence: _GivenMark
    comparative: _GivenMark
    integrity: _GivenMark
    fluency: _GivenMark
    citation_accuracy: _GivenMark
    preferred: Annotated[bool | None, Field(strict=True)]
    comment: str | None = None


class _File(BaseModel):
    """A JSON file of ratings, as the form gives it."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["citeloom-ratings-1"]
    study: str
    rater: str = ""
    ratings: list[_Entry]


def _read_json(file: Path, text: str, rater: str | None) -> Returned:
    try:
        given = _File.model_validate(json.loads(text))
    except ValidationError as error:
        refuse([f"{file}, {_where(each['loc'])}: {each['msg']}; give it as the form does" for each in error.errors()])
        raise
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{file} is no JSON ({error}): give the file as the form made it") from error
    of = _rater(given.rater) or rater or ""
    return Returned(
        file, [_entry(f"{file}, entry {n}", given.study, of, each) for n, each in enumerate(given.ratings, 1)]
    )


def _where(location: Sequence[int | str]) -> str:
    """`("ratings", 3, "fluency")` → `entry 4, fluency`."""
    parts = [f"entry {part + 1}" if isinstance(part, int) else part for part in location]
    return ", ".join(parts[1:] if parts[:1] == ["ratings"] and len(parts) > 1 else parts) or "the whole file"


def _entry(place: str, study: str, rater: str, given: _Entry) -> Line:
    marks = {criterion: getattr(given, criterion) for criterion in CRITERIA}
    task, label = given.task.strip().upper(), given.label.strip().upper()
    comment = (given.comment or "").strip() or None
    return Line(place, study.strip() or None, rater, task, label, marks, given.preferred, comment)
