"""A study: which tasks raters get, and which system is behind which letter of each. Kept as the study's key.

The key lies in the data root (`studies/<name>/key.json`) and not beside the sheets: the folder of sheets is what is
sent to raters, whole, and a key in it would undo their being blind; `import` finds it by the study's name alone. Not
here: what raters see (`sheets`), and what they send back (`returned`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from string import ascii_uppercase
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole
from pipeline.tables import RELATED_WORK_SYSTEMS

FOLDER = "studies"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,49}")


class Section(BaseModel):
    """What is behind one letter of a task: the system, and the digest of the text that raters get."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str
    text_sha256: str


class StudyTask(BaseModel):
    """One task of a study. `task` is the name that raters see; `labels`: letter → section."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    month: str
    task_id: str
    labels: Mapping[str, Section]


class Study(BaseModel):
    """The key of a study: what raters must not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-study-1"] = "citeloom-study-1"
    study: str
    seed: int
    with_gold: bool
    systems: tuple[str, ...]
    tasks: Annotated[tuple[StudyTask, ...], Field(min_length=1)]

    @property
    def months(self) -> list[str]:
        """The months of its tasks, oldest first."""
        return sorted({task.month for task in self.tasks})

    def file_bytes(self) -> bytes:
        """The key as its file holds it."""
        return f"{self.model_dump_json(indent=1)}\n".encode()


def check_name(name: str, systems: Iterable[str] = RELATED_WORK_SYSTEMS) -> str:
    """Return a name that a study may have. Raises SettingError for one that is no name of a file, or that tells
    raters the name of a system."""
    if not NAME.fullmatch(name):
        raise SettingError(
            f"--name {name!r} names no study: use small letters, digits, '.', '_' and '-', 50 at most, a letter or "
            "digit first"
        )
    told = [system for system in systems if _folded(system.lower()) in _folded(name)]
    if told:
        raise SettingError(f"--name {name} tells raters of {told[0]}, and they are to be blind: choose another name")
    return name


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)


def shuffled(seed: int, place: str, names: Iterable[str]) -> list[str]:
    """Names in an order that follows from the seed and the place alone, the same with every Python and machine."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}\0{place}\0{name}".encode()).digest())


def labelled(seed: int, task_id: str, sections: Mapping[str, str]) -> dict[str, Section]:
    """Letter → section of one task, shuffled. sections: system → text, 26 at most."""
    order = shuffled(seed, task_id, sections)
    digests = {system: text_digest(sections[system]) for system in order}
    letters = ascii_uppercase[: len(order)]
    return {
        letter: Section(system=system, text_sha256=digests[system])
        for letter, system in zip(letters, order, strict=True)
    }


def text_digest(text: str) -> str:
    """SHA-256 of a section's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def key_file(root: DataRoot, name: str) -> DataPath:
    """Where the key of a study lies."""
    return root.path / FOLDER / name / "key.json"


def keep_key(root: DataRoot, study: Study) -> DataPath:
    """Write the key of a study; where it lies.

    Raises SettingError where there is a study of this name with another key: sheets that were given out would then be
    read with letters that are not theirs.
    """
    told = f"there is a study {study.study} already, with other tasks, systems, seed or texts"
    return keep_once(key_file(root, study.study), study.file_bytes(), told)


def keep_once(file: DataPath, content: bytes, taken: str) -> DataPath:
    """Write a key, or find it there. Raises SettingError where another one lies there; taken: what that means."""
    if file.exists() and file.read_bytes() != content:
        raise SettingError(f"{taken} ({file}): give this one another --name")
    write_whole(file, content)
    return file


def read_key(root: DataRoot, name: str) -> Study:
    """The study of a name. Raises MissingInput where there is none, PermanentFailure where its key is damaged."""
    file = key_file(root, name) if NAME.fullmatch(name) else None
    if file is None or not file.is_file():
        known = ", ".join(studies(root)) or "none"
        raise MissingInput(f"there is no study {name!r} in {root.path / FOLDER} (there: {known}): export it first")
    try:
        return Study.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PermanentFailure(f"{file} is damaged ({error.errors()[0]['msg']}): put its copy back") from None


def studies(root: DataRoot) -> list[str]:
    """Names of the studies that were exported from a data root."""
    return sorted(file.parent.name for file in (root.path / FOLDER).glob("*/key.json"))
