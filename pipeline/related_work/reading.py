"""Reading papers and tasks from tables, as the systems want them. Not here: making tasks, writing rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline import tables
from pipeline.identifiers import month_of
from pipeline.related_work.content import paper_text
from pipeline.related_work.prompting import Reference, Task
from pipeline.stages import Workspace

_TEXT_COLUMNS = ("arxiv_id", "title", "abstract", "blocks")


def read_papers(
    workspace: Workspace, arxiv_ids: Iterable[str], columns: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """Rows of `papers` for these ids, with what `paper_text` needs and `columns`; ids that are not there are missing.

    Reads the months of the ids one after another, holding the wanted rows alone.
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for arxiv_id in arxiv_ids:
        wanted[month_of(arxiv_id) or ""].add(arxiv_id)
    asked = list(dict.fromkeys([*_TEXT_COLUMNS, *columns]))
    present = set(workspace.root.months(tables.PAPERS))
    return {
        row["arxiv_id"]: row
        for month in sorted(wanted.keys() & present)
        for row in workspace.root.iterate(tables.PAPERS, month, asked)
        if row["arxiv_id"] in wanted[month]
    }


def reference_months(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The months that the references of these rows of `related_work_tasks` are of."""
    months = {month_of(reference["arxiv_id"]) for row in rows for reference in row["references"]}
    return {month for month in months if month is not None}


def reference_texts(workspace: Workspace, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Text of every reference of these rows whose paper is in the corpus, by arXiv id."""
    wanted = {reference["arxiv_id"] for row in rows for reference in row["references"]}
    return {arxiv_id: paper_text(paper) for arxiv_id, paper in read_papers(workspace, wanted).items()}


def task_of(row: Mapping[str, Any], texts: Mapping[str, str]) -> Task:
    """A task from its row and its references' texts; of a reference without text, its title is what there is."""
    references = tuple(
        Reference(reference["number"], reference["arxiv_id"], reference["title"]) for reference in row["references"]
    )
    contents = tuple(texts.get(reference.arxiv_id, f"# {reference.title}") for reference in references)
    return Task(row["task_id"], row["title"], row["description"], references, contents)
