"""Ratings of related-work sections: what raters read.

Names and order of the six criteria are ChatCite's (arXiv 2403.02574, section 4); the guide's words
are ours, and say the same as the judge's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from pipeline import tables
from pipeline.evaluation.annotation.study import Selection, StudyItem, StudyText, select_items
from pipeline.evaluation.prose import parted
from pipeline.identity.months import select_months
from pipeline.related_work.task_reader import section_rows
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name
from pipeline.text import clip, text_digest

# About 500 words: title, abstract and how the introduction begins. A rater of ten tasks reads no
# ten papers.
TARGET_CHARS = 3_500


def digests(root: DataRoot, month: str) -> dict[tuple[str, str], str]:
    """(Task, system) → SHA-256 of the section, of a month. Raises as `DataRoot.iterate` does."""
    rows = section_rows(root, month)
    return {(row["task_id"], writer_name(row)): text_digest(row["text"]) for row in rows}


def sections_to_rate(
    root: DataRoot,
    months: str,
    systems: Sequence[str] | None,
    *,
    most: int,
    seed: int,
    with_gold: bool,
) -> tuple[Selection, list[StudyItem]]:
    """Tasks that every system wrote a section for, `most` at most, to be shown with the section
    that was published or without it. systems: None for all.

    Raises as `select_items` does.
    """
    month_of: dict[str, str] = {}
    writers: dict[str, set[str]] = {}
    for month in select_months(months, root.months(tables.RELATED_WORK_TASKS)):
        golds = root.rows(tables.RELATED_WORK_TASKS, month, ["task_id", "gold"])
        usable = {row["task_id"] for row in golds if (row["gold"] or "").strip() or not with_gold}
        for row in golds:
            month_of[row["task_id"]], writers[row["task_id"]] = month, set()
        for row in section_rows(root, month):
            if row["task_id"] in usable and (row["text"] or "").strip():
                writers[row["task_id"]].add(writer_name(row))
    selection = select_items(writers, systems, most=most, seed=seed)
    items: dict[str, StudyItem] = {}
    for month in sorted({month_of[task_id] for task_id in selection.item_ids}):
        items |= _read_items(root, month, selection, with_gold=with_gold)
    return selection, [items[task_id] for task_id in selection.item_ids]


def _read_items(
    root: DataRoot, month: str, selection: Selection, *, with_gold: bool
) -> dict[str, StudyItem]:
    texts: dict[str, dict[str, StudyText]] = defaultdict(dict)
    for row in section_rows(root, month):
        if writer_name(row) in selection.systems:
            text = StudyText(row["text"], text_digest(row["text"]), {})
            texts[row["task_id"]][writer_name(row)] = text
    return {
        task["task_id"]: StudyItem(
            task["task_id"],
            month,
            task["title"] or "",
            [*_background(task, with_gold=with_gold)],
            texts[task["task_id"]],
        )
        for task in root.iterate(tables.RELATED_WORK_TASKS, month)
        if task["task_id"] in selection.item_ids
    }


def _background(task: Row, *, with_gold: bool) -> Iterator[tuple[str, list[str]]]:
    target = (task["description"] or "").removeprefix(f"# {task['title']}").strip()
    if len(target) > TARGET_CHARS:
        target = f"{target[:TARGET_CHARS]}… (the paper continues)"
    yield "The target paper", [part.lstrip("# ") for part in parted(target)]
    yield "References", [*map(_reference_line, task["references"])]
    if with_gold:
        yield "The section that was published", parted(task["gold"])


def _reference_line(reference: Row) -> str:
    title, year, arxiv_id = reference["title"], reference["year"], reference["arxiv_id"]
    parts = [title or clip(reference["text"] or ""), year, arxiv_id and f"arXiv:{arxiv_id}"]
    return f"[Reference {reference['number']}] {', '.join(str(part) for part in parts if part)}"
