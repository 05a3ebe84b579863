"""Drafts that wait for a person: which there are, and what accepting or rejecting one does.

Accepted ones are added to a question set, rejected ones are remembered in the data root.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline import tables
from pipeline.answering.drafting import Paper
from pipeline.answering.drafting_choice import read_papers
from pipeline.answering.question_files import add_to_file, read_set
from pipeline.answering.question_rows import read_posed
from pipeline.answering.questions import Question, gold_passages, plain
from pipeline.answering.retrieving import Found
from pipeline.arxiv.months import select_months
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure, TransientFailure
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

_LOCK_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that waits. model: what proposed it; None where it was made of tables."""

    question: Question
    model: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The drafts that wait, by month, paper and kind; and how many the set has already, or a person rejected."""

    drafts: tuple[Draft, ...]
    in_set: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """Ids of the questions that were added to the set, and of those that it had already."""

    added: tuple[str, ...]
    there: tuple[str, ...]


def read_drafts(workspace: Workspace, months: str) -> list[Draft]:
    """The drafts of these months. Raises SettingError for months that are not there, MissingInput where none is."""
    there = workspace.root.months(tables.QUESTION_DRAFTS)
    if not there:
        raise MissingInput(
            f"nothing was drafted in {workspace.root.path}: set CITELOOM_DRAFT_QUESTIONS or CITELOOM_DRAFT_PAPERS and "
            "run citeloom run --select question_drafts"
        )
    rows = (row for month in select_months(months, there) for row in workspace.root.rows(tables.QUESTION_DRAFTS, month))
    return [Draft(_dated(posed.question), row["model"]) for row in rows for posed in read_posed([row])]


def _dated(question: Question) -> Question:
    """The question as a set has it, where a date is a day: the table says the month where no day is known."""
    return question if question.date and len(question.date) > len("2024-03") else replace(question, date=None)


def waiting(workspace: Workspace, months: str, file: Path, *, rejected_too: bool = False) -> Waiting:
    """The drafts that the set does not have and that nobody rejected; with `rejected_too`, these as well.

    Raises SettingError where the set cannot be read; else as `read_drafts` does.
    """
    known = _Known.of(read_set(file))
    rejected = read_rejected(workspace)
    unknown = [draft for draft in read_drafts(workspace, months) if not known.has(draft.question)]
    shown = [draft for draft in unknown if rejected_too or draft.question.id not in rejected]
    everything = read_drafts(workspace, months)
    return Waiting(tuple(shown), len(everything) - len(unknown), len(unknown) - len(shown))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a set has: ids, and what is asked of which papers, in whatever words a person changed about the rest."""

    ids: frozenset[str]
    asked: frozenset[tuple[str, frozenset[str]]]

    @classmethod
    def of(cls, questions: Sequence[Question]) -> _Known:
        """Of the questions of a set."""
        return cls(frozenset(each.id for each in questions), frozenset(map(_asks, questions)))

    def has(self, question: Question) -> bool:
        """Whether it was accepted, perhaps with changes, or somebody wrote the same."""
        return question.id in self.ids or _asks(question) in self.asked


def _asks(question: Question) -> tuple[str, frozenset[str]]:
    return plain(question.question), frozenset(question.papers)


def accept(workspace: Workspace, file: Path, questions: Sequence[Question]) -> Accepted:
    """Add questions to the set as reviewed, all of them or none; one that it has already changes nothing.

    Raises SettingError as `add_to_file` does.
    """
    with _held(workspace, file):
        known, new = _Known.of(read_set(file)), []
        for question in questions:
            if not known.has(question):
                new.append(replace(question, reviewed=True))
                known = _Known(known.ids | {question.id}, known.asked | {_asks(question)})
        add_to_file(file, new)
    added = tuple(question.id for question in new)
    return Accepted(added, tuple(each.id for each in questions if each.id not in added))


def reject(workspace: Workspace, questions: Sequence[Question]) -> None:
    """Remember that these are not wanted, so that they are not shown again."""
    file = _rejected_file(workspace)
    with _held(workspace, file):
        known = {**read_rejected(workspace), **{question.id: question.question for question in questions}}
        write_whole(file, f"{json.dumps(dict(sorted(known.items())), ensure_ascii=False, indent=1)}\n".encode())


def read_rejected(workspace: Workspace) -> Mapping[str, str]:
    """Id → question of what was rejected. Raises PermanentFailure where the file that remembers it is damaged."""
    file = _rejected_file(workspace)
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_bytes())
        return {str(name): str(text) for name, text in found.items()}
    except (ValueError, AttributeError, OSError) as error:
        raise PermanentFailure(
            f"{file}, which remembers rejected drafts, is damaged ({error}): delete it to be shown all drafts again"
        ) from None


def _rejected_file(workspace: Workspace) -> DataPath:
    return workspace.root.path / "question_reviews" / "rejected.json"


@contextmanager
def _held(workspace: Workspace, file: DataPath) -> Iterator[None]:
    """Hold a file against another review of the same data root, so that neither's questions are lost."""
    place = file.resolve() if isinstance(file, Path) else file
    name = hashlib.sha256(str(place).encode()).hexdigest()[:16]
    lock = FileLock(workspace.cache("locks") / f"review-{name}.lock", timeout=_LOCK_SECONDS)
    try:
        with lock:
            yield
    except Timeout:
        raise TransientFailure(f"another review has held {file} for {_LOCK_SECONDS} s: end it first") from None


class Shelf:
    """The papers of the corpus as a review needs them, each read once."""

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root
        self._papers: dict[str, Paper | None] = {}

    def paper(self, arxiv_id: str) -> Paper | None:
        """A paper with its passages; None where the corpus does not have it."""
        if arxiv_id not in self._papers:
            self._papers[arxiv_id] = read_papers(self._root, [arxiv_id]).get(arxiv_id)
        return self._papers[arxiv_id]

    def standing(self, question: Question) -> dict[int, tuple[Found, ...]]:
        """For each claim, by its place from 0, the passages that hold one of its phrases, as the tables are now."""
        papers = {each: paper for each in question.papers if (paper := self.paper(each)) is not None}
        gold = gold_passages(question, {each: paper.rows() for each, paper in papers.items()})
        by_id = {found.passage_id: found for paper in papers.values() for found in paper.passages}
        return {place: tuple(by_id[each] for each in ids) for place, ids in gold.items()}
