"""Rows of annotators' sheets: a class for each kind of line, with its cells and its table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from pipeline.evaluation.marks import (
    CLAIM_VERDICTS,
    GOLD_VERDICTS,
    GoldVerdict,
    SixMarks,
)
from pipeline.tables import CRITERIA, HUMAN_GRADES, HUMAN_RATINGS, Table

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
