"""Annotation studies: the schema of what people fill in, and the key to what they see.

The key lies in the data root (`annotations/<name>/key.json`) and not beside the sheets: the folder of sheets is sent to
annotators as it is, and a key in it would end their being blind.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import Row, write_whole
from pipeline.tables import Table
from pipeline.tables.writers import full_name, parse_writer

FOLDER = "annotations"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,49}")
# Spreadsheet programs write 4.0, or 4,0 where that is the custom.
_WHOLE = re.compile(r"([0-9]+)[.,]0+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """A column that annotators fill in.

    values: what may be written, in small letters with `_` for white space → what goes into the table. allowed: the same
    in words, for messages. best_of_item: whether it marks one label of each item, as the best.
    """

    name: str
    values: Mapping[str, int | str | bool | None]
    allowed: str
    best_of_item: bool = False

    def value(self, cell: str) -> int | str | bool | None:
        """The value of a cell, None for an empty one. Raises ValueError, with what is allowed, for any other."""
        word = "_".join(cell.casefold().replace("_", " ").split())
        if whole := _WHOLE.fullmatch(word):
            word = whole[1]
        if word and word not in self.values:
            raise ValueError(f"{self.name} is {cell[:40]!r}: write {self.allowed}, or leave it empty")
        return self.values.get(word)


@dataclass(frozen=True, slots=True)
class Schema:
    """What one kind of annotation is.

    annotator, item_id: columns of the table that name the person, and the task or question. group: its columns within
    which an import replaces all that the same person gave before. entries: part of an item → what is filled in for it.
    shown: columns of the sheet that annotators read.
    """

    name: Literal["ratings", "grades"]
    table: Table
    annotator: str
    item_id: str
    group: tuple[str, ...]
    entries: Mapping[str, tuple[Entry, ...]]
    shown: tuple[str, ...]

    @property
    def filled_in(self) -> tuple[str, ...]:
        """Columns of the sheet that annotators fill in."""
        names = dict.fromkeys(entry.name for entries in self.entries.values() for entry in entries)
        return (*names, "comment")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the sheet."""
        return ("study", "annotator", "unit", *self.filled_in, *self.shown)

    @property
    def best(self) -> str:
        """The column that marks the best of an item; empty where there is none."""
        entries = (entry for of_part in self.entries.values() for entry in of_part)
        return next((entry.name for entry in entries if entry.best_of_item), "")

    def row(self, study: str, annotator: str, unit: Unit, values: Mapping[str, Any]) -> dict[str, Any]:
        """The table's row of what one person filled in for one unit."""
        row = {
            "study": study,
            self.annotator: annotator,
            self.item_id: unit.item_id,
            **parse_writer(unit.system).columns,
            "label": unit.label,
            "part": unit.part,
            "number": unit.number,
            "text": unit.text,
            "text_sha256": unit.text_sha256,
            **values,
        }
        return {name: row[name] for name in self.table.schema.names}

    def group_of(self, row: Row) -> tuple[str, ...]:
        """Study, annotator and group of a row. Names of annotators are compared without regard to capitals."""
        return row["study"], row[self.annotator].casefold(), *(row[column] for column in self.group)


class Unit(BaseModel):
    """One line of a sheet and what is behind it.

    item: name of the task or question that annotators see (T01); label: of the text (T01-B). number and text: of a
    claim; None where the whole text is annotated. text_sha256: of the text as annotators see it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    item: str
    label: str
    month: str
    item_id: str
    system: str
    text_sha256: str
    part: str
    number: int | None = None
    text: str | None = None


class Study(BaseModel):
    """The key of a study: what annotators must not know. units: unit id → what is behind it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-annotation-1"] = "citeloom-annotation-1"
    kind: Literal["ratings", "grades"]
    study: str
    seed: int
    units: Annotated[Mapping[str, Unit], Field(min_length=1)]

    @property
    def months(self) -> list[str]:
        """The months of its items, oldest first."""
        return sorted({unit.month for unit in self.units.values()})

    @property
    def items(self) -> list[str]:
        """The names of its items, in their order."""
        return list(dict.fromkeys(unit.item for unit in self.units.values()))


def sha256(*parts: str) -> str:
    """SHA-256 of some texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def shuffled(seed: int, purpose: str, names: Iterable[str]) -> list[str]:
    """Names in an order that follows from seed and purpose alone, the same with every Python and machine."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}\0{purpose}\0{name}".encode()).digest())


def assign_letters(seed: int, item_id: str, systems: Collection[str]) -> dict[str, str]:
    """Letter → system of one item, shuffled. Raises SettingError for more systems than letters."""
    if len(systems) > len(ascii_uppercase):
        raise SettingError(f"{item_id} has texts of {len(systems)} systems, and {len(ascii_uppercase)} have a letter")
    return dict(zip(ascii_uppercase, shuffled(seed, item_id, systems), strict=False))


@dataclass(frozen=True, slots=True)
class Selection:
    """Items that a study takes. lacking: system → items without a text of it, left out; fitting: items that fit."""

    systems: tuple[str, ...]
    item_ids: tuple[str, ...]
    lacking: Mapping[str, int]
    fitting: int
    requested: int

    def notes(self, items: str) -> list[str]:
        """What the user should know of the selection. items: what they are, in words."""
        notes = [f"{count} {items} have nothing of {name}, and are left out" for name, count in self.lacking.items()]
        if self.fitting < min(self.requested, len(self.item_ids) + 1):
            notes.append(f"there are {self.fitting} {items}, and {self.requested} were requested")
        return notes


def select_items(
    texts: Mapping[str, Collection[str]],
    systems: Sequence[str] | None,
    *,
    most: int,
    seed: int,
    needed: Mapping[str, Collection[str]] | None = None,
) -> Selection:
    """Select items by the seed, of those that have a text of every system: means over different items do not compare.

    texts: item id → the writers that have a text for it. systems: None for all; one without a model means the only
    writer with it. needed: what an item must have besides, in words → the items that have it. Raises SettingError for
    a system without any text, MissingInput where no item fits.
    """
    there = sorted({name for names in texts.values() for name in names})
    systems = [full_name(name, there) for name in systems or ()]
    unknown = sorted(set(systems) - set(there))
    if unknown:
        raise SettingError(f"--systems: there is nothing of {', '.join(unknown)}; there is {', '.join(there)}")
    wanted = tuple(sorted(set(systems))) if systems else tuple(there)
    missing = {item: [name for name in wanted if name not in names] for item, names in texts.items()}
    for name, items in (needed or {}).items():
        for item in texts.keys() - set(items):
            missing[item].append(name)
    lacking = Counter(name for names in missing.values() for name in names)
    fitting = [item for item, names in missing.items() if not names]
    if not fitting:
        counts = ", ".join(f"{count} without {name}" for name, count in sorted(lacking.items()))
        raise MissingInput(f"nothing has a text of every system ({counts}): run the systems, or name fewer --systems")
    selected = shuffled(seed, "items", fitting)[:most]
    return Selection(wanted, tuple(selected), dict(sorted(lacking.items())), len(fitting), most)


def check_name(name: str, systems: Iterable[str]) -> str:
    """Return a name that a study of these systems may have.

    Raises SettingError for one that is no name of a file, or that tells annotators a system or its model.
    """
    if not NAME.fullmatch(name):
        raise SettingError(
            f"--name {name!r} is no name of a study: use small letters, digits, '.', '_' and '-', 50 at most, a letter "
            "or digit first"
        )
    parts = {part for system in systems for part in system.split("@")}
    revealed = sorted(part for part in parts if _letters(part) and _letters(part) in _letters(name))
    if revealed:
        raise SettingError(f"--name {name} reveals {revealed[0]} to annotators, who must be blind: choose another name")
    return name


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def key_file(root: DataRoot, name: str) -> DataPath:
    """Where the key of a study lies."""
    return root.path / FOLDER / name / "key.json"


def write_key(root: DataRoot, study: Study) -> DataPath:
    """Write the key of a study, and return where it lies.

    Raises SettingError where a study of this name has another key: sheets that are out would be read with the wrong
    letters.
    """
    file, content = key_file(root, study.study), f"{study.model_dump_json(indent=1)}\n".encode()
    if file.exists() and file.read_bytes() != content:
        raise SettingError(
            f"there is a study {study.study} already, with other items, systems, seed or texts ({file}): give another "
            "--name"
        )
    write_whole(file, content)
    return file


def read_key(root: DataRoot, name: str) -> Study:
    """The study of a name. Raises MissingInput where there is none, PermanentFailure where its key is damaged."""
    # The name comes from a file that somebody sent: it must not lead out of the folder.
    file = key_file(root, name) if NAME.fullmatch(name) else None
    if file is None or not file.is_file():
        known = ", ".join(study_names(root)) or "none"
        raise MissingInput(
            f"there is no study {name[:100]!r} in {root.path / FOLDER} (there: {known}): run citeloom annotate export"
        )
    try:
        return Study.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PermanentFailure(f"{file} is damaged ({error.errors()[0]['msg']}): restore it from a copy") from None


def study_names(root: DataRoot) -> list[str]:
    """Names of the studies of a data root."""
    return sorted(file.parent.name for file in (root.path / FOLDER).glob("*/key.json"))
