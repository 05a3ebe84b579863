"""Which sections a judge reads in one conversation, and in which order.

A conversation is about the sections of one task by the writers of one candidate set. Where a task
was written repeatedly, each repeat has a conversation too.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from math import factorial
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Job
from pipeline.settings import Settings
from pipeline.tables.writers import parse_writer, short_names, writer_name

_TASK_COLUMNS = ["task_id", "description", "references", "gold"]
# Four times what the judge reads of the target at most, so that a month of full papers is never
# held.
_DESCRIPTION_CHARS = 8_000

MAIN, ABLATIONS = "main", "ablations"
"""The sets of Table 1 and of Table 2."""
_ABLATION_SYSTEMS = (
    "chatcite_no_elements",
    "chatcite_no_incremental",
    "chatcite_no_reflection",
)
# Table 2 has ChatCite and few-shot beside the ablations.
_TABLE_2_SYSTEMS = (*_ABLATION_SYSTEMS, "few_shot", "chatcite")


def candidate_sets(settings: Settings, writers: Iterable[str]) -> dict[str, list[str]]:
    """Name of a set → those of these writers that are in it, by name; sets without one left out.

    writers: names of writers (`system@model`). Where CITELOOM_CANDIDATE_SETS names no set, all
    writers but the ablations are the main set, and the ablations a set of their own, with ChatCite
    and few-shot by the same models.
    """
    parsed = [parse_writer(name) for name in sorted(set(writers))]
    sets: dict[str, list[str]] = {}
    for set_name, members in settings.candidate_sets.items():
        sets[set_name] = [
            writer.name for writer in parsed if writer.name in members or writer.system in members
        ]
    if not settings.candidate_sets:
        models = {writer.model for writer in parsed if writer.system in _ABLATION_SYSTEMS}
        sets[MAIN] = [writer.name for writer in parsed if writer.system not in _ABLATION_SYSTEMS]
        sets[ABLATIONS] = [
            writer.name
            for writer in parsed
            if writer.system in _TABLE_2_SYSTEMS and writer.model in models
        ]
    return {set_name: names for set_name, names in sets.items() if names}


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
    """One conversation of the judge: the sections of a task by a candidate set, in an order.

    section_repeat: of the sections. repeat: of the conversation on the same sections.
    """

    task: TaskSections
    candidate_set: str
    section_repeat: int
    repeat: int
    order: tuple[str, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The columns by which rows of `g_scores` are sorted."""
        return self.task.task_id, self.candidate_set, self.section_repeat, self.repeat


def read_repeats(job: Job) -> list[list[TaskSections]]:
    """The tasks with any section, by id: for each its sections of every repeat, from 0; of a repeat
    that nobody wrote, none.
    """
    texts: dict[str, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in job.iterate(tables.SUMMARIES, ["task_id", "system", "model", "repeat", "text"]):
        texts[row["task_id"]][row["repeat"]][writer_name(row)] = row["text"]
    tasks: list[list[TaskSections]] = []
    for task in job.iterate(tables.RELATED_WORK_TASKS, _TASK_COLUMNS):
        by_repeat = texts.get(task["task_id"])
        if not by_repeat:
            continue
        references = [
            f"[Reference {reference['number']}] {reference['title']}"
            + (f" ({reference['year']})" if reference["year"] else "")
            for reference in task["references"]
        ]
        whole = TaskSections(
            task_id=task["task_id"],
            target=task["description"][:_DESCRIPTION_CHARS],
            references="\n".join(references),
            gold=task["gold"],
            sections={},
        )
        tasks.append(
            [
                replace(whole, sections=dict(sorted(by_repeat.get(number, {}).items())))
                for number in range(max(by_repeat) + 1)
            ]
        )
    return sorted(tasks, key=lambda repeats: repeats[0].task_id)


def assign(
    repeats: Sequence[TaskSections],
    sets: Mapping[str, Sequence[str]],
    most_orders: int,
) -> Iterator[Assignment]:
    """All conversations over one task: for every candidate set, the sections in at most
    `most_orders` orders, then those of each repeat in the first of these.

    repeats: the sections of every repeat, from 0. sets: name → writers. The orders are those of the
    task whatever `most_orders` and the judge are, so more repeats keep the answers that are there.
    A repeat has one order, so that its marks differ by the sections alone.
    """
    for name, writers in sets.items():
        of_set = _restrict(repeats, writers)
        if not of_set:
            continue
        task = of_set[0]
        # By short names: judgements that were paid for before writers had models stay usable.
        names = {short: name for name, short in short_names(task.sections).items()}
        orders = [
            tuple(names[short] for short in order)
            for order in islice(shown_orders(task.task_id, names), most_orders)
        ]
        for number, order in enumerate(orders):
            yield Assignment(task, name, 0, number, order)
        for repeat, sections in of_set.items():
            if repeat > 0:
                yield Assignment(sections, name, repeat, 0, orders[0])


def _restrict(repeats: Sequence[TaskSections], writers: Sequence[str]) -> dict[int, TaskSections]:
    """Repeat → the sections by these writers: repeat 0, and each repeat that all of them with a
    model have, where the others have their only section.
    """
    first = {name: repeats[0].sections[name] for name in writers if name in repeats[0].sections}
    with_model = {name for name in first if parse_writer(name).model is not None}
    restricted = {}
    for repeat, task in enumerate(repeats):
        again = {name: text for name, text in task.sections.items() if name in first}
        if again and with_model <= again.keys():
            sections = first | again
            restricted[repeat] = replace(task, sections=dict(sorted(sections.items())))
    return restricted


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
