"""Which sections a judge reads in one conversation, and in which order.

The sections of a task are judged together; those of systems that wrote a task repeatedly also
alone, each repeat.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import factorial
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Job
from pipeline.llm.models import Model
from pipeline.tables.writers import short_names, writer_name

TOGETHER, ALONE = "together", "alone"
_TASK_COLUMNS = ["task_id", "description", "references", "gold"]
# Four times what the judge reads of the target at most, so that a month of full papers is never
# held.
_DESCRIPTION_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class TaskSections:
    """One task as the judge sees it.

    sections: writer's name → text. references: one line each.
    """

    task_id: str
    target: str
    references: str
    gold: str
    sections: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Assignment:
    """One conversation of one judge: sections of a task in an order.

    repeat: of this conversation where sections are judged together, of the section where it is
    judged alone.
    """

    task: TaskSections
    mode: str
    judge: Model
    repeat: int
    order: tuple[str, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The columns by which rows of `g_scores` are sorted."""
        return self.task.task_id, self.mode, self.judge.name, self.repeat, self.order


def task_sections(task: Mapping[str, Any], sections: Mapping[str, str]) -> TaskSections:
    """A row of `related_work_tasks` with the sections to judge: writer's name → text."""
    return TaskSections(
        task_id=task["task_id"],
        target=task["description"][:_DESCRIPTION_CHARS],
        references="\n".join(map(_reference_line, task["references"])),
        gold=task["gold"],
        sections=dict(sorted(sections.items())),
    )


def _reference_line(reference: Mapping[str, Any]) -> str:
    year = f" ({reference['year']})" if reference["year"] else ""
    return f"[Reference {reference['number']}] {reference['title']}{year}"


def read_repeats(job: Job) -> list[list[TaskSections]]:
    """The tasks with any section, by id: for each its sections of every repeat, from 0."""
    texts: dict[str, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in job.iterate(tables.SUMMARIES, ["task_id", "system", "model", "repeat", "text"]):
        texts[row["task_id"]][row["repeat"]][writer_name(row)] = row["text"]
    tasks = [
        [task_sections(task, sections) for _, sections in sorted(texts[task["task_id"]].items())]
        for task in job.iterate(tables.RELATED_WORK_TASKS, _TASK_COLUMNS)
        if task["task_id"] in texts
    ]
    return sorted(tasks, key=lambda repeats: repeats[0].task_id)


def assign(
    repeats: Sequence[TaskSections], models: Sequence[Model], most_orders: int
) -> Iterator[Assignment]:
    """All conversations over one task: for every judge, the systems together in at most
    `most_orders` orders, then each repeated section by itself.

    repeats: the sections of every repeat, from 0. The orders are those of the task whatever
    `most_orders` is, so more repeats keep the answers that are there; and they are the same for
    every judge, so that judges compare in the same conversations.
    """
    task = repeats[0]
    repeated = repeats[1].sections if len(repeats) > 1 else {}
    # By short names: judgements that were paid for before writers had models stay usable.
    names = {short: name for name, short in short_names(task.sections).items()}
    orders = [
        tuple(names[short] for short in order)
        for order in islice(shown_orders(task.task_id, names), most_orders)
    ]
    for model in models:
        for number, order in enumerate(orders):
            yield Assignment(task, TOGETHER, model, number, order)
        for number, sections in enumerate(repeats):
            for writer in repeated:
                yield Assignment(sections, ALONE, model, number, (writer,))


def shown_orders(task_id: str, systems: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Every order of the systems once, the best balanced ones first: the n-th repeat shows the n-th
    of them.

    A judge favours what it reads first. They are the rows of Williams's square (1949, Experimental
    designs balanced for the estimation of residual effects of treatments) over the systems by
    digest, each followed by its mirror image. So after every second repeat each system's mean place
    is the middle one; and after n repeats of n systems, 2n where n is odd, each was in every place,
    and right behind every other, equally often. A task of one system has one order, one of two has
    two: shown in the same order again, a judge at temperature 0 would say the same again, and it
    would count twice.
    """
    names = sorted(systems)
    seen: set[tuple[str, ...]] = set()
    for salt in count() if names else ():
        for row in _square(_by_digest(task_id, names, salt)):
            for order in (row, row[::-1]):
                if order not in seen:
                    seen.add(order)
                    yield order
        if len(seen) == factorial(len(names)):
            return


def _by_digest(task_id: str, names: Sequence[str], salt: int) -> tuple[str, ...]:
    begin = f"{task_id}\0{salt}\0" if salt else f"{task_id}\0"
    return tuple(sorted(names, key=lambda name: hashlib.sha256(f"{begin}{name}".encode()).digest()))


def _square(first: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The rows of Williams's square whose first row is given: 0, 1, n-1, 2, n-2, … and each of
    these one higher.
    """
    size = len(first)
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) % size for place in range(size)]
    named = dict(zip(zigzag, first, strict=True))
    for step in range(size):
        yield tuple(named[(number + step) % size] for number in zigzag)
