"""Which tasks a study takes, and the texts that its raters see.

A task is taken only where every system of the study wrote something for it: a rater who compares four sections in one
task and three in the next gives preferences that cannot be added up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pipeline import tables
from pipeline.arxiv.months import select_months
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.human.study import Study, StudyTask, labelled, shuffled
from pipeline.related_work.written import written
from pipeline.storage.data_root import DataRoot
from pipeline.tables import RELATED_WORK_SYSTEMS

# About 500 words: title, abstract and how the introduction begins. A rater of ten tasks reads no ten papers.
TARGET_CHARS = 3_500
# A bibliography item that stands in for a title; the longest of the real papers have some 400 characters.
_ITEM_CHARS = 600


@dataclass(frozen=True, slots=True)
class ShownReference:
    """One reference in the list that raters see."""

    number: int
    title: str
    year: int | None
    arxiv_id: str | None


@dataclass(frozen=True, slots=True)
class ShownTask:
    """One task as raters see it. sections: letter → text; gold: None unless the study shows it."""

    task: str
    title: str
    target: str
    cut: bool
    references: tuple[ShownReference, ...]
    gold: str | None
    sections: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """A study with what its raters see. lacking: why tasks could not be taken, with how many; asked: tasks asked for;
    fitting: tasks that could be taken."""

    study: Study
    shown: tuple[ShownTask, ...]
    lacking: Mapping[str, int]
    asked: int
    fitting: int

    def notes(self) -> list[str]:
        """What the user should know: tasks that could not be taken, and that there are fewer than asked for."""
        told = [f"{count} tasks have nothing of {what}, and were left out" for what, count in self.lacking.items()]
        if len(self.shown) < self.asked:
            told.append(f"there are {self.fitting} tasks, and {self.asked} were asked for")
        return told


def choose(
    root: DataRoot, name: str, months: str, systems: Sequence[str], *, tasks: int, seed: int, with_gold: bool
) -> Choice:
    """Choose tasks by the seed and give each system its letter in each.

    Raises SettingError for systems that are none or fewer than two, MissingInput where no task has all their sections.
    """
    wanted = _checked(systems)
    chosen = select_months(months, root.months(tables.RELATED_WORK_TASKS))
    months_of, lacking = _fitting(root, chosen, wanted, with_gold=with_gold)
    if not months_of:
        raise MissingInput(_nothing(months, wanted, lacking))
    order = shuffled(seed, "tasks", months_of)[:tasks]
    names = {task_id: f"T{number:02}" for number, task_id in enumerate(order, 1)}
    texts = _texts(root, set(order), sorted({months_of[task_id] for task_id in order}), wanted)
    study = Study(
        study=name, seed=seed, with_gold=with_gold, systems=tuple(wanted),
        tasks=tuple(_task(seed, names[each], months_of[each], each, texts[each]) for each in order),
    )  # fmt: skip
    return Choice(study, _shown(root, study, texts), lacking, tasks, len(months_of))


def _checked(systems: Sequence[str]) -> list[str]:
    wanted = sorted(set(systems))
    unknown = sorted(set(wanted) - set(RELATED_WORK_SYSTEMS))
    if unknown:
        raise SettingError(f"--systems: {', '.join(unknown)} is none of {', '.join(RELATED_WORK_SYSTEMS)}")
    if len(wanted) < 2:
        raise SettingError(f"--systems {', '.join(wanted)}: a study compares two systems or more, name another one")
    return wanted


def _fitting(
    root: DataRoot, months: Sequence[str], wanted: Sequence[str], *, with_gold: bool
) -> tuple[dict[str, str], dict[str, int]]:
    """Task → month of the tasks that have all that is shown, and what the others lack."""
    fitting: dict[str, str] = {}
    lacking: Counter[str] = Counter()
    for month in months:
        there: dict[str, set[str]] = defaultdict(set)
        for row in written(root, month, ["task_id", "system", "text"]):
            if (row["text"] or "").strip():
                there[row["task_id"]].add(row["system"])
        for task in root.iterate(tables.RELATED_WORK_TASKS, month, ["task_id", "gold"]):
            missing = [system for system in wanted if system not in there[task["task_id"]]]
            if with_gold and not (task["gold"] or "").strip():
                missing.append("the gold section")
            if missing:
                lacking.update(missing)
            else:
                fitting[task["task_id"]] = month
    return fitting, dict(sorted(lacking.items()))


def _nothing(months: str, wanted: Sequence[str], lacking: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} without {what}" for what, count in lacking.items()) or "there is no task at all"
    return (
        f"of --months {months}, no task has a section of each of {', '.join(wanted)} ({told}): run "
        f"CITELOOM_SYSTEMS={','.join(wanted)} citeloom run --months {months}, or name other --systems"
    )


def _texts(root: DataRoot, tasks: set[str], months: Sequence[str], wanted: Sequence[str]) -> dict[str, dict[str, str]]:
    """Task → system → text, of the chosen tasks alone."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for month in months:
        for row in written(root, month, ["task_id", "system", "text"]):
            if row["task_id"] in tasks and row["system"] in wanted:
                texts[row["task_id"]][row["system"]] = row["text"]
    return texts


def _task(seed: int, task: str, month: str, task_id: str, texts: Mapping[str, str]) -> StudyTask:
    return StudyTask(task=task, month=month, task_id=task_id, labels=labelled(seed, task_id, texts))


def _shown(root: DataRoot, study: Study, texts: Mapping[str, Mapping[str, str]]) -> tuple[ShownTask, ...]:
    of_study = {task.task_id for task in study.tasks}
    rows = {
        row["task_id"]: row
        for month in study.months
        for row in root.iterate(tables.RELATED_WORK_TASKS, month)
        if row["task_id"] in of_study
    }
    return tuple(_shown_task(task, rows[task.task_id], texts[task.task_id], study.with_gold) for task in study.tasks)


def _shown_task(task: StudyTask, row: Mapping[str, Any], texts: Mapping[str, str], with_gold: bool) -> ShownTask:
    target, cut = beginning(row["description"] or "", row["title"] or "")
    return ShownTask(
        task=task.task,
        title=row["title"] or task.task,
        target=target,
        cut=cut,
        references=tuple(_reference(each) for each in row["references"]),
        gold=row["gold"] if with_gold else None,
        sections={letter: texts[section.system] for letter, section in task.labels.items()},
    )


def _reference(row: Mapping[str, Any]) -> ShownReference:
    title = row["title"] or (row["text"] or "")[:_ITEM_CHARS] or "(no title)"
    return ShownReference(row["number"], title, row["year"], row["arxiv_id"])


def beginning(description: str, title: str) -> tuple[str, bool]:
    """The beginning of a target, in whole paragraphs as far as they fit, and whether anything was left out.

    The heading that repeats the title goes: it stands above the text. Where the first paragraph is too long by
    itself, it is cut.
    """
    body = description.removeprefix(f"# {title}").strip()
    paragraphs, length = [part for part in body.split("\n\n") if part.strip()], 0

    def fits(part: str) -> bool:
        nonlocal length
        length += len(part) + 2
        return length <= TARGET_CHARS

    kept = list(takewhile(fits, paragraphs)) or [body[:TARGET_CHARS]]
    while len(kept) > 1 and kept[-1].startswith("#"):
        kept.pop()  # a heading with nothing under it
    text = "\n\n".join(kept)
    return text, len(text) < len("\n\n".join(paragraphs))
