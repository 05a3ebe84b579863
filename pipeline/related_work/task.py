"""A related-work task: the target paper and its references as the systems read them, and as a file
holds them.

The JSON format of task files is in docs/methods/related-work.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from pipeline.errors import SettingError
from pipeline.identity.identifiers import normalize_arxiv_id
from pipeline.identity.months import is_month
from pipeline.storage.json_reader import parse_json, short


def _normalized_id(value: str | None) -> str | None:
    arxiv_id = normalize_arxiv_id(value) if value else None
    if value and arxiv_id is None:
        raise ValueError(f"{value} is not an arXiv id; write it as 2403.02574 or cs/0112017")
    return arxiv_id


_ArxivId = Annotated[str | None, AfterValidator(_normalized_id)]
Words = Annotated[str, Field(min_length=1, max_length=2_000)]
ReferenceSource = Literal["full_text", "abstract", "item"]
"""The known part of a reference: its text, its abstract alone, or its bibliography item alone."""


@dataclass(frozen=True, slots=True)
class ReferencePassage:
    """A passage of a reference, without citation markers, on which a sentence may rest.

    passage_id: of the table `passages`; made up for a paragraph of a work outside of the corpus.
    place: its sections and its address, for a reader.
    """

    passage_id: str
    text: str
    place: str = "abstract"


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference of a task: its number in `[Reference i]`, and the work; no arxiv_id where it is
    not on arXiv.
    """

    number: int
    arxiv_id: str | None
    title: str
    source: ReferenceSource = "full_text"
    authors: tuple[str, ...] = ()
    text: str = ""
    passages: tuple[ReferencePassage, ...] = ()
    """Those of the corpus, in order, where a system that is to write ties sentences to them."""


@dataclass(frozen=True, slots=True)
class Task:
    """A target paper and its references in order, with their texts; what every system is given."""

    task_id: str
    title: str
    description: str
    references: tuple[Reference, ...]
    examples: tuple[str, ...] = ()
    """Related-work sections of other papers, for their style alone."""

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(reference.number for reference in self.references)

    @property
    def texts(self) -> tuple[str, ...]:
        """The target's text, then each reference's."""
        return self.description, *(reference.text for reference in self.references)


class FileReference(BaseModel):
    """One reference of a task file; its number is its place, from 1.

    `text` is what there is of it, as `source` says; without a text it is the paper `arxiv_id` of
    the corpus.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Words
    authors: tuple[str, ...] = ()
    year: int | None = Field(None, ge=1000, le=2999)
    arxiv_id: _ArxivId = None
    source: ReferenceSource = "full_text"
    text: str | None = None

    @model_validator(mode="after")
    def _there_is_something(self) -> FileReference:
        if not self.text and (self.arxiv_id is None or self.source != "full_text"):
            raise ValueError(
                "has no text: give one, or the arXiv id of a paper of the corpus with source"
                " full_text"
            )
        return self


class TaskFile(BaseModel):
    """A related-work task as a file holds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-task-1"]
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._#-]{0,99}$")]
    month: str | None = None
    title: Words
    arxiv_id: _ArxivId = None
    text: Annotated[str, Field(min_length=1)]
    section_title: str = "Related Work"
    related_work: str = ""
    references: Annotated[tuple[FileReference, ...], Field(min_length=1)]

    @field_validator("month")
    @classmethod
    def _a_month(cls, value: str | None) -> str | None:
        if value is not None and not is_month(value):
            raise ValueError("is not a month: write it as YYYY-MM")
        return value

    def row(self) -> dict[str, Any]:
        """The task as a row of `related_work_tasks`."""
        return {
            "task_id": self.id,
            "arxiv_id": self.arxiv_id,
            "title": self.title,
            "description": self.text,
            "section_title": self.section_title,
            "references": [
                {
                    "number": number,
                    "arxiv_id": reference.arxiv_id,
                    "key": f"ref{number}",
                    "title": reference.title,
                    "authors": list(reference.authors),
                    "year": reference.year,
                    "source": reference.source,
                    "text": reference.text or None,
                }
                for number, reference in enumerate(self.references, 1)
            ],
            "outside": 0,
            "gold": self.related_work,
        }


def read_task_file(file: Path) -> TaskFile:
    """The task of a file. Raises SettingError that names the file and what is wrong with it."""
    try:
        return TaskFile.model_validate(parse_json(file.read_bytes()))
    except OSError as error:
        raise SettingError(
            f"{file} cannot be read ({error.strerror}): give the path of a task file"
        ) from error
    except ValueError as error:
        raise SettingError(
            f"{file} is no task file: {short(error)}. docs/methods/related-work.md has the format"
        ) from None


def write_task_file(task: TaskFile, folder: Path) -> Path:
    """Write a task as `<id>.json` into a folder, whole or not at all; where it lies."""
    from pipeline.storage.writing import write_whole

    file = folder / f"{task.id}.json"
    text = json.dumps(task.model_dump(mode="json"), ensure_ascii=False, indent=1)
    write_whole(file, f"{text}\n".encode())
    return file


def tasks_of_month(folder: Path, month: str) -> list[tuple[Path, TaskFile]]:
    """The tasks of a folder that are of this month with their files, by id. Raises SettingError as
    `read_task_file` does, and where two files have one id, or the folder is none.
    """
    if not folder.is_dir():
        raise SettingError(
            f"CITELOOM_TASKS_DIR is {folder}, which is no folder: name one, or leave it empty"
        )
    by_id: dict[str, tuple[Path, TaskFile]] = {}
    for file in sorted(folder.glob("*.json")):
        task = read_task_file(file)
        if task.month is None:
            raise SettingError(
                f"{file} has no month: say which month of the dump it is to be run with"
            )
        if task.id in by_id:
            raise SettingError(
                f"{file} and {by_id[task.id][0]} both have the id {task.id}: give one of them"
                " another"
            )
        by_id[task.id] = (file, task)
    return [
        by_id[identifier] for identifier in sorted(by_id) if by_id[identifier][1].month == month
    ]
