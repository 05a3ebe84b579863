"""Annotation studies: which texts annotators see under which labels, and the key to them.

The key is in the data root (`annotations/<name>/key.json`), not beside the sheets: the folder of
sheets is sent to annotators, who must not see the key.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.engine.sampling import shuffled
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.statistics import Estimate, Level, alpha, clear_winner
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import Row, write_whole
from pipeline.system_names import present_name
from pipeline.tables import CRITERIA, HUMAN_GRADES, HUMAN_RATINGS, Table
from pipeline.tables.writers import full_name, writer_name

FOLDER = "annotations"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,49}")

Kind = Literal["ratings", "grades"]
Part = Literal["claim", "gold"]


class SheetFormat(NamedTuple):
    """What the sheets of a kind hold, and where it goes.

    person, item: columns of the table for the annotator, and for the task or question. columns: to
    fill in. item_letter: begins the names of items.
    """

    table: Table
    person: str
    item: str
    columns: tuple[str, ...]
    item_letter: str


FORMATS: Mapping[Kind, SheetFormat] = {
    "ratings": SheetFormat(
        HUMAN_RATINGS, "rater", "task_id", (*CRITERIA, "preferred", "comment"), "T"
    ),
    "grades": SheetFormat(HUMAN_GRADES, "grader", "question_id", ("verdict", "comment"), "Q"),
}


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
    def unit_id(self) -> str:
        """The name of its line: the label, and for a claim its part and number."""
        parts = (self.label,) if self.number is None else (self.label, self.part, self.number)
        return "-".join(map(str, parts))


class Study(BaseModel):
    """The key of a study: what annotators must not know. units: unit id → what is behind it.

    Of the first format, systems may have the names of `EARLIER_NAMES`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-annotation-1", "citeloom-annotation-2"] = "citeloom-annotation-2"
    kind: Kind
    study: str
    seed: int
    units: Annotated[Mapping[str, Unit], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class StudyText:
    """A writer's text. sha256: of what is annotated. claims: to give a verdict on; none where the
    text is rated as a whole.
    """

    text: str
    sha256: str
    claims: Mapping[Part, Sequence[str]]


@dataclass(frozen=True, slots=True)
class StudyItem:
    """A task or question. background: (heading, paragraphs) to read before the texts; texts: system
    → its text.
    """

    item_id: str
    month: str
    title: str
    background: Sequence[tuple[str, Sequence[str]]]
    texts: Mapping[str, StudyText]


@dataclass(frozen=True, slots=True)
class Selection:
    """Items that every one of the systems has a text for. left_out: how many have not."""

    systems: Sequence[str]
    item_ids: Sequence[str]
    left_out: int


def select_items(
    writers: Mapping[str, Collection[str]], systems: Sequence[str] | None, *, most: int, seed: int
) -> Selection:
    """Select items by the seed, of those that have a text of every system: means over different
    items do not compare.

    writers: item id → systems that have a text for it. systems: None for all; one without a model
    means the only writer with it. Raises MissingInput where no item fits.
    """
    available = sorted(set().union(*writers.values()))
    selected = sorted({full_name(name, available) for name in systems or available})
    fitting = [item for item, names in writers.items() if {*selected} <= {*names}]
    if not fitting or not selected:
        raise MissingInput(
            f"nothing has a text of every system of {', '.join(selected) or 'any name'}, and there"
            f" are texts of {', '.join(available) or 'none'}: run the systems, or name other"
            " --systems or --months"
        )
    items = shuffled(seed, "items", fitting)[:most]
    return Selection(selected, items, len(writers) - len(fitting))


def make_study(kind: Kind, name: str, seed: int, items: Iterable[StudyItem]) -> Study:
    """A study of these items, its letters drawn by the seed.

    Raises SettingError for a name that is no name of a file or that reveals a system or its model,
    and for more systems than letters.
    """
    if not _NAME.fullmatch(name):
        raise SettingError(
            f"--name {name!r} is no name of a study: use small letters, digits, '.', '_' and '-',"
            " 50 at most, a letter or digit first"
        )
    units: list[Unit] = []
    for place, item in enumerate(items, 1):
        if len(item.texts) > len(ascii_uppercase):
            raise SettingError(f"{item.item_id} has over 26 texts: name fewer --systems")
        item_name = f"{FORMATS[kind].item_letter}{place:02}"
        systems = shuffled(seed, item.item_id, item.texts)
        for letter, system in zip(ascii_uppercase, systems, strict=False):
            for part in re.sub(r"[^a-z0-9@]", "", system.lower()).split("@"):
                if part and part in re.sub(r"[^a-z0-9]", "", name):
                    raise SettingError(
                        f"--name {name} reveals {part} to annotators, who must be blind: choose"
                        " another"
                    )
            text = item.texts[system]
            whole = Unit(
                item=item_name,
                label=f"{item_name}-{letter}",
                month=item.month,
                item_id=item.item_id,
                system=system,
                text_sha256=text.sha256,
                part="section",
            )
            claims = [
                whole.model_copy(update={"part": part, "number": number, "text": claim})
                for part, of_part in text.claims.items()
                for number, claim in enumerate(of_part, 1)
            ]
            units += claims or [whole]
    return Study(kind=kind, study=name, seed=seed, units={unit.unit_id: unit for unit in units})


def key_file(root: DataRoot, name: str) -> DataPath:
    """Where the key of a study lies."""
    return root.path / FOLDER / name / "key.json"


def write_key(root: DataRoot, study: Study) -> DataPath:
    """Write the key of a study, and return where it lies.

    Raises SettingError where a study of this name has another key: sheets that are out would be
    read with the wrong letters.
    """
    file = key_file(root, study.study)
    if file.exists() and read_key(root, study.study) != study:
        raise SettingError(
            f"there is a study {study.study} already, with other items, systems, seed or texts"
            f" ({file}): give another --name"
        )
    write_whole(file, f"{study.model_dump_json(indent=1)}\n".encode())
    return file


def read_key(root: DataRoot, name: str) -> Study:
    """Read a study. Raises MissingInput where there is none, PermanentFailure if it is damaged."""
    # The name comes from a file that somebody sent: it must not lead out of the folder.
    file = key_file(root, name) if _NAME.fullmatch(name) else None
    if file is None or not file.is_file():
        raise MissingInput(
            f"there is no study {name[:100]!r} in {root.path / FOLDER}: run citeloom annotate"
            " export, or set CITELOOM_DATA to the study's data root"
        )
    try:
        study = Study.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PermanentFailure(
            f"{file} is damaged ({error.errors()[0]['msg']}): restore it from a copy"
        ) from None
    if study.format == "citeloom-annotation-2":
        return study
    units = {
        unit_id: unit.model_copy(update={"system": present_name(unit.system)})
        for unit_id, unit in study.units.items()
    }
    return Study(kind=study.kind, study=study.study, seed=study.seed, units=units)


Key = TypeVar("Key")
Value = TypeVar("Value")


def read_current(
    root: DataRoot,
    form: SheetFormat,
    month: str,
    digests: Mapping[tuple[str, str], str],
    study: str | None,
) -> tuple[list[Row], int]:
    """Rows by people in a month, of one study or of all, whose text has not changed since, with
    the writer's name as `system`; and how many other rows there are.

    digests: (task or question, writer) → SHA-256 of its text. Raises as `DataRoot.iterate` does,
    also for a month without the table.
    """
    writers = {name for _, name in digests}
    columns = [name for name in form.table.schema.names if name not in ("label", "number")]
    current: list[Row] = []
    outdated = 0
    for row in root.iterate(form.table, month, columns):
        if study not in (None, row["study"]):
            continue
        system = full_name(writer_name(row), writers)
        if digests.get((row[form.item], system)) == row["text_sha256"]:
            current.append({**row, "system": system})
        else:
            outdated += 1
    return current, outdated


def group(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Key → its values, both in their order."""
    groups: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def agreement_of(values: Iterable[tuple[tuple[str, ...], Any]], level: Level) -> Estimate:
    """Krippendorff's alpha of those who gave values to the same units.

    values: (unit, value); a unit begins with its task or question, over which intervals are.
    """
    units = group(values)
    return alpha(list(units.values()), [unit[0] for unit in units], level)


def winners(votes: Mapping[Key, Iterable[Value]]) -> dict[Key, Value]:
    """Key → what most voted for; a key of which two have as many has none."""
    clear = {key: clear_winner(choices) for key, choices in votes.items()}
    return {key: winner for key, winner in clear.items() if winner is not None}


def names_of(rows: Sequence[Row], column: str) -> tuple[str, ...]:
    """The values of a column, each once, sorted."""
    return tuple(sorted({row[column] for row in rows}))
