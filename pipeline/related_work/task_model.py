"""A related-work task as the systems read it: the target paper and its references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["full_text", "abstract", "item"]
"""What is known of a reference: its text, its abstract alone, or its bibliography item alone."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a reference that a sentence may rest on; the id is that of the table `passages`, if there."""

    passage_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference of a task: its number in `[Reference i]`, and the work; no arxiv_id where it is not on arXiv."""

    number: int
    arxiv_id: str | None
    title: str
    source: Source = "full_text"
    authors: tuple[str, ...] = ()
    text: str = ""
    passages: tuple[Passage, ...] = ()
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
