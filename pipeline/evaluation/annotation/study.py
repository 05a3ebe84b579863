"""Annotation studies: which texts annotators see under which labels, and the key to them.

The key lies in the data root (`annotations/<name>/key.json`) and not beside the sheets: the folder
of sheets is sent to annotators as it is, and a key in it would end their being blind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from pipeline.engine.sampling import shuffled
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.marks import (
    CLAIM_VERDICTS,
    GOLD_VERDICTS,
    GoldVerdict,
    SixMarks,
)
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole
from pipeline.tables import CRITERIA, HUMAN_GRADES, HUMAN_RATINGS, Table
from pipeline.tables.writers import full_name

FOLDER = "annotations"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,49}")

Kind = Literal["ratings", "grades"]


class SheetRow(BaseModel):
    """One line as an annotator filled it in; None for an empty cell.

    A field is a column of the sheet and of the table; its description says what may be written
    there. table: where rows are stored, with the columns `annotator` for the person, `item_id` for
    the task or question, and `unit_columns`, which together are the name of the line. group: the
    column within which an import replaces what the same person gave before. marks: the fields that
    everybody should fill in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: ClassVar[Table]
    annotator: ClassVar[str]
    item_id: ClassVar[str]
    unit_columns: ClassVar[tuple[str, ...]]
    group: ClassVar[str]
    marks: ClassVar[tuple[str, ...]]

    @field_validator("*", mode="before")
    @classmethod
    def _read_cell(cls, cell: str) -> str | None:
        return cell.strip() or None

    @classmethod
    def unit_id(cls, row: Mapping[str, Any]) -> str:
        """The unit that a row of the table is on."""
        return "-".join(str(row[column]) for column in cls.unit_columns)


def _read_choice(cell: object) -> object:
    return True if cell in ("x", "X") else cell


def _read_verdict(cell: object) -> object:
    """The verdict in a cell, which people may write as "Not checkable"."""
    return "_".join(cell.casefold().split()) if isinstance(cell, str) else cell


MarkCell = Annotated[int | None, Field(ge=1, le=5, description="a whole number from 1 to 5")]
Comment = Annotated[str | None, Field(description="a comment")]


class RatingRow(SheetRow, SixMarks[MarkCell]):
    """Marks of one related-work section, as in ChatCite's human study."""

    table = HUMAN_RATINGS
    annotator = "rater"
    item_id = "task_id"
    unit_columns = ("label",)
    group = "task_id"
    marks = CRITERIA

    preferred: Annotated[
        bool | None,
        BeforeValidator(_read_choice),
        Field(description="x for the best section of a task"),
    ]
    comment: Comment


class GradeRow(SheetRow):
    """Verdict on one claim of an answer, or on one gold claim beside it."""

    table = HUMAN_GRADES
    annotator = "grader"
    item_id = "question_id"
    unit_columns = ("label", "part", "number")
    group = "label"
    marks = ("verdict",)


def _read_verdicts(cell: object) -> object:
    """The verdicts in a cell, one for each claim of the line, with `, ` between."""
    if not isinstance(cell, str):
        return cell
    verdicts = [_read_verdict(part) for part in re.split("[,;]", cell) if part.strip()]
    if not set(verdicts) <= set(CLAIM_VERDICTS):
        raise ValueError("no verdict on a claim")
    return ", ".join(map(str, verdicts)) or None


class ClaimGradeRow(GradeRow):
    """Verdict on a claim of an answer: is it correct? Several on a sentence with several claims."""

    verdict: Annotated[
        str | None,
        BeforeValidator(_read_verdicts),
        Field(description=f"one of {', '.join(CLAIM_VERDICTS)}, or one for each claim of the line"),
    ]
    comment: Comment


class GoldGradeRow(GradeRow):
    """Verdict on a gold claim: does the answer hold it?"""

    verdict: Annotated[
        GoldVerdict | None,
        BeforeValidator(_read_verdict),
        Field(description=f"one of {', '.join(GOLD_VERDICTS)}"),
    ]
    comment: Comment


ROW_CLASSES: Mapping[str, type[SheetRow]] = {
    "section": RatingRow,
    "claim": ClaimGradeRow,
    "gold": GoldGradeRow,
}
"""Part of an item → the class of its lines."""


class Unit(BaseModel):
    """One line of a sheet and what is behind it.

    item: name of the task or question that annotators see (T01); label: of the text (T01-B). number
    and text: of a claim; None where the whole text is annotated. text_sha256: of the text as
    annotators see it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    item: str
    label: str
    month: str
    item_id: str
    system: str
    text_sha256: str
    part: Literal["section", "claim", "gold"]
    number: int | None = None
    text: str | None = None

    @property
    def row_class(self) -> type[SheetRow]:
        """The class of its line."""
        return ROW_CLASSES[self.part]


class Study(BaseModel):
    """The key of a study: what annotators must not know. units: unit id → what is behind it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-annotation-1"] = "citeloom-annotation-1"
    kind: Kind
    study: str
    seed: int
    units: Annotated[Mapping[str, Unit], Field(min_length=1)]

    @property
    def months(self) -> list[str]:
        """The months of its items, oldest first."""
        return sorted({unit.month for unit in self.units.values()})

    @property
    def row_class(self) -> type[SheetRow]:
        """The class of its first line; the class variables are those of every line."""
        return next(iter(self.units.values())).row_class


def assign_letters(seed: int, item_id: str, systems: Collection[str]) -> dict[str, str]:
    """Letter → system of one item, shuffled. Raises SettingError for more systems than letters."""
    if len(systems) > len(ascii_uppercase):
        raise SettingError(
            f"{item_id} has texts of {len(systems)} systems, and {len(ascii_uppercase)} have a"
            " letter"
        )
    return dict(zip(ascii_uppercase, shuffled(seed, item_id, systems), strict=False))


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Items of a study. lacking: system → items without its text, left out; notes: in words."""

    systems: tuple[str, ...]
    item_ids: tuple[str, ...]
    lacking: Mapping[str, int]
    notes: tuple[str, ...]


def select_items(
    texts: Mapping[str, Collection[str]],
    systems: Sequence[str] | None,
    noun: str,
    *,
    most: int,
    seed: int,
) -> ItemSelection:
    """Select items by the seed, of those that have a text of every system: means over different
    items do not compare.

    texts: item id → the writers that have a text for it. systems: None for all; one without a model
    means the only writer with it. noun: what the items are, for notes. Raises SettingError for a
    system without any text, MissingInput where no item fits.
    """
    available = sorted({name for names in texts.values() for name in names})
    named = sorted({full_name(name, available) for name in systems or ()})
    unknown = sorted(set(named) - set(available))
    if unknown:
        raise SettingError(
            f"--systems: there is nothing of {', '.join(unknown)}; there is {', '.join(available)}"
        )
    selected = named or available
    lacking = Counter(name for name in selected for names in texts.values() if name not in names)
    fitting = [item for item, names in texts.items() if set(selected) <= set(names)]
    if not fitting:
        counts = ", ".join(f"{count} without {name}" for name, count in sorted(lacking.items()))
        raise MissingInput(
            f"nothing has a text of every system ({counts}): run the systems, or name fewer"
            " --systems"
        )
    notes = [
        f"{count} {noun} have nothing of {name}, and are left out"
        for name, count in sorted(lacking.items())
    ]
    if len(fitting) < most:
        notes.append(f"there are {len(fitting)} {noun}, and {most} were requested")
    items = tuple(shuffled(seed, "items", fitting)[:most])
    return ItemSelection(tuple(selected), items, dict(lacking), tuple(notes))


def check_name(name: str, systems: Iterable[str]) -> str:
    """Return a name that a study of these systems may have.

    Raises SettingError for one that is no name of a file, or that reveals a system or its model.
    """
    if not NAME.fullmatch(name):
        raise SettingError(
            f"--name {name!r} is no name of a study: use small letters, digits, '.', '_' and '-',"
            " 50 at most, a letter or digit first"
        )
    parts = {part for system in systems for part in system.split("@")}
    revealed = sorted(part for part in parts if _letters(part) and _letters(part) in _letters(name))
    if revealed:
        raise SettingError(
            f"--name {name} reveals {revealed[0]} to annotators, who must be blind: choose another"
            " name"
        )
    return name


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def key_file(root: DataRoot, name: str) -> DataPath:
    """Where the key of a study lies."""
    return root.path / FOLDER / name / "key.json"


def write_key(root: DataRoot, study: Study) -> DataPath:
    """Write the key of a study, and return where it lies.

    Raises SettingError where a study of this name has another key: sheets that are out would be
    read with the wrong letters.
    """
    file, content = key_file(root, study.study), f"{study.model_dump_json(indent=1)}\n".encode()
    if file.exists() and file.read_bytes() != content:
        raise SettingError(
            f"there is a study {study.study} already, with other items, systems, seed or texts"
            f" ({file}): give another --name"
        )
    write_whole(file, content)
    return file


def read_key(root: DataRoot, name: str) -> Study:
    """Read a study. Raises MissingInput where there is none, PermanentFailure if it is damaged."""
    # The name comes from a file that somebody sent: it must not lead out of the folder.
    file = key_file(root, name) if NAME.fullmatch(name) else None
    if file is None or not file.is_file():
        known = ", ".join(study_names(root)) or "none"
        raise MissingInput(
            f"there is no study {name[:100]!r} in {root.path / FOLDER} (there: {known}): run"
            " citeloom annotate export"
        )
    try:
        return Study.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PermanentFailure(
            f"{file} is damaged ({error.errors()[0]['msg']}): restore it from a copy"
        ) from None


def study_names(root: DataRoot) -> list[str]:
    """Names of the studies of a data root."""
    return sorted(file.parent.name for file in (root.path / FOLDER).glob("*/key.json"))
