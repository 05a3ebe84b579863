"""Ratings of related-work sections: what raters read, and what the six marks ask, as in ChatCite's
human study.

Names and order of the six criteria are ChatCite's (arXiv 2403.02574, section 4); the words are
ours, and say the same as the judge's, but for consistency where raters do not see the gold section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from pipeline import tables
from pipeline.arxiv.months import select_months
from pipeline.errors import MissingInput
from pipeline.evaluation.annotation.export import Export, Item
from pipeline.evaluation.annotation.study import (
    Study,
    Unit,
    assign_letters,
    check_name,
    select_items,
)
from pipeline.evaluation.prose import paragraphs
from pipeline.related_work.task_reader import section_rows
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name
from pipeline.text import text_digest

# About 500 words: title, abstract and how the introduction begins. A rater of ten tasks reads no
# ten papers.
TARGET_CHARS = 3_500
# A bibliography item that stands in for a title; the longest of the real papers have some 400
# characters.
_ITEM_CHARS = 600
_QUESTIONS = {
    "coherence": (
        "Do the sentences build on one another to a connected text, rather than a heap of related"
        " facts?"
    ),
    "comparative": (
        "Does it compare the cited works with one another and with the target paper, and take"
        " similar works together?"
    ),
    "integrity": (
        "Does it have what such a section needs: the background of the question, what each cited"
        " work did, an appraisal of past research, and what the target paper adds?"
    ),
    "fluency": "Are grammar, spelling, punctuation, choice of words and sentence structure right?",
    "citation_accuracy": (
        "Wherever it speaks of a cited work, does it name it as [Reference i], with the number of"
        " the list?"
    ),
}


def digests(root: DataRoot, month: str) -> dict[tuple[str, str], str]:
    """(Task, system) → SHA-256 of the section, of a month. Raises as `DataRoot.iterate` does."""
    rows = section_rows(root, month)
    return {(row["task_id"], writer_name(row)): text_digest(row["text"]) for row in rows}


def criteria(*, with_gold: bool) -> dict[str, str]:
    """Criterion → what it asks, in ChatCite's order. with_gold: whether raters see the section that
    was published.
    """
    reference = (
        "the published section"
        if with_gold
        else "the target paper and with what you know of the cited works"
    )
    consistency = (
        f"Does what it says agree with {reference}, and does it contradict neither that nor itself?"
    )
    questions = {"consistency": consistency, **_QUESTIONS}
    return {name: questions[name] for name in tables.CRITERIA}


def export_ratings(
    root: DataRoot,
    name: str,
    months: str,
    systems: Sequence[str] | None,
    *,
    items: int,
    seed: int,
    with_gold: bool,
) -> Export:
    """A study of tasks that every system wrote a section for, `items` at most. systems: None for
    all.

    Raises SettingError for a name or system that cannot be taken, MissingInput where no task fits.
    """
    available = select_months(months, root.months(tables.RELATED_WORK_TASKS))
    month_of, writers, without_gold = _available(root, available, with_gold=with_gold)
    if without_gold and not writers:
        raise MissingInput(f"of --months {months}, no task has a gold section: give --without-gold")
    if not any(writers.values()):
        raise MissingInput(
            f"of --months {months}, no section is written: run citeloom run --months {months}"
        )
    selection = select_items(writers, systems, "tasks", most=items, seed=seed)
    check_name(name, selection.systems)
    rows = _rows(root, {task_id: month_of[task_id] for task_id in selection.item_ids})
    units: dict[str, Unit] = {}
    shown = []
    for number, task_id in enumerate(selection.item_ids, 1):
        item = f"T{number:02}"
        task, texts = rows[task_id]
        sections = {}
        for letter, system in assign_letters(seed, task_id, selection.systems).items():
            label = f"{item}-{letter}"
            sections[label] = texts[system]
            units[label] = Unit(
                item=item,
                label=label,
                month=month_of[task_id],
                item_id=task_id,
                system=system,
                text_sha256=text_digest(texts[system]),
                part="section",
            )
        shown.append(_item(item, task, sections, with_gold=with_gold))
    notes = (
        [f"{without_gold} tasks have no gold section, and are left out (--without-gold)"]
        if without_gold
        else []
    )
    return Export(
        study=Study(kind="ratings", study=name, seed=seed, units=units),
        items=tuple(shown),
        systems=selection.systems,
        shown=("title",),
        words={"criteria": criteria(with_gold=with_gold), "with_gold": with_gold},
        notes=(
            *notes,
            *selection.notes,
            f"each annotator has {len(units)} sections of {len(shown)} tasks to rate",
        ),
        lacking=selection.lacking,
    )


def _available(
    root: DataRoot, months: Sequence[str], *, with_gold: bool
) -> tuple[dict[str, str], dict[str, set[str]], int]:
    """(task → month, task → systems that wrote for it, count of tasks without a gold section)."""
    month_of: dict[str, str] = {}
    writers: dict[str, set[str]] = {}
    without_gold = 0
    for month in months:
        for task in root.iterate(tables.RELATED_WORK_TASKS, month, ["task_id", "gold"]):
            if with_gold and not (task["gold"] or "").strip():
                without_gold += 1
                continue
            month_of[task["task_id"]] = month
            writers[task["task_id"]] = set()
        for row in section_rows(root, month):
            if row["task_id"] in writers and (row["text"] or "").strip():
                writers[row["task_id"]].add(writer_name(row))
    return month_of, writers, without_gold


def _rows(root: DataRoot, month_of: Mapping[str, str]) -> dict[str, tuple[Row, dict[str, str]]]:
    """Task → its row, and system → its section, of some tasks."""
    rows: dict[str, tuple[Row, dict[str, str]]] = {}
    for month in sorted(set(month_of.values())):
        for task in root.iterate(tables.RELATED_WORK_TASKS, month):
            if task["task_id"] in month_of:
                rows[task["task_id"]] = task, {}
        for row in section_rows(root, month):
            if row["task_id"] in rows:
                rows[row["task_id"]][1][writer_name(row)] = row["text"]
    return rows


def _item(name: str, task: Row, sections: Mapping[str, str], *, with_gold: bool) -> Item:
    title = task["title"] or name
    target, cut = beginning(task["description"] or "", task["title"] or "")
    numbers = {reference["number"] for reference in task["references"]}
    view = {
        "name": name,
        "title": title,
        "target": [*_parts(target)],
        "cut": cut,  # whether there is more of the target
        "references": [
            {
                **reference,
                "title": reference["title"]
                or (reference["text"] or "")[:_ITEM_CHARS]
                or "(no title)",
            }
            for reference in task["references"]
        ],
        "gold": paragraphs(task["gold"], numbers) if with_gold else None,
        "sections": {label: paragraphs(text, numbers) for label, text in sections.items()},
    }
    return Item(name, view, dict.fromkeys(sections, (title,)))


def _parts(target: str) -> Iterator[tuple[bool, str]]:
    """(whether it is a Markdown heading, text) of each paragraph of a target."""
    for part in filter(None, target.split("\n\n")):
        heading = re.fullmatch(r"#{1,6} (.+)", part)
        yield (True, heading[1]) if heading else (False, part)


def beginning(description: str, title: str) -> tuple[str, bool]:
    """The beginning of a target, in whole paragraphs as far as they fit, and whether anything was
    left out.

    The heading that repeats the title is removed: it is above the text. If the first paragraph is
    too long by itself, it is cut.
    """
    body = description.removeprefix(f"# {title}").strip()
    parts = [part.strip() for part in body.split("\n\n") if part.strip()]
    ends = accumulate(len(part) + 2 for part in parts)
    fitting = [part for part, end in zip(parts, ends, strict=True) if end <= TARGET_CHARS]
    if not fitting:
        fitting = [body[:TARGET_CHARS]]
    while len(fitting) > 1 and fitting[-1].startswith("#"):
        fitting.pop()  # a heading with nothing under it
    text = "\n\n".join(fitting)
    return text, len(text) < len("\n\n".join(parts))
