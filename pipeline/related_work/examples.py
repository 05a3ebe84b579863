"""Examples of style: related-work sections of other papers, shown to a writer (ChatCite, section
5.1, few-shot).

The paper says neither how many nor which. Ours are gold sections of tasks of earlier months, never
of a paper that cites the target or is cited by it, nor the target's own; where these are too few,
sections written for this project (`examples/`) follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.engine.digests import digests_by_month
from pipeline.engine.stage import Workspace
from pipeline.related_work.summary import cited_numbers
from pipeline.text import text_digest

_FOLDER = Path(__file__).parent / "examples"
# Months looked through: a section's style does not grow with how many there are to choose from.
_MONTHS = 3
# An example of fewer citations shows no comparison.
_FEWEST_CITED = 2


@dataclass(frozen=True, slots=True)
class Example:
    """A section that may be shown: whose it is, what that paper cites on arXiv, and the text."""

    arxiv_id: str
    cites: frozenset[str]
    text: str


@cache
def shipped() -> tuple[str, ...]:
    """The sections written for this project, about papers that do not exist."""
    return tuple(file.read_text(encoding="utf-8").strip() for file in sorted(_FOLDER.glob("*.txt")))


def example_months(workspace: Workspace, before: str | None) -> list[str]:
    """The newest months before this one (None for all) that have tasks, newest first."""
    root, table = workspace.root, tables.RELATED_WORK_TASKS
    with_tasks = (
        month
        for month in reversed(root.months(table))
        if (before is None or month < before)
        and (provenance := root.provenance(table, month))
        and provenance.rows
    )
    return list(islice(with_tasks, _MONTHS))


def example_inputs(workspace: Workspace, month: str) -> dict[str, str]:
    """Digests of what the examples of a month's tasks are chosen from, by name."""
    months = example_months(workspace, month)
    digests = digests_by_month(workspace, tables.RELATED_WORK_TASKS, months)
    digests |= digests_by_month(workspace, tables.REFERENCES, [*months, month])
    return {"examples": text_digest("\0".join(shipped()))} | {
        f"examples {name}": digest for name, digest in digests.items()
    }


def corpus_examples(workspace: Workspace, before: str | None) -> list[Example]:
    """Sections of the corpus that may be shown, newest month first, by task id within it."""
    columns = ["task_id", "arxiv_id", "references", "gold"]
    examples = []
    for month in example_months(workspace, before):
        cites = cited_papers(workspace, month)
        rows = workspace.root.rows(tables.RELATED_WORK_TASKS, month, columns)
        for row in sorted(rows, key=itemgetter("task_id")):
            if row["arxiv_id"] and len(cited_numbers(row["gold"] or "")) >= _FEWEST_CITED:
                cited = cites.get(row["arxiv_id"], frozenset()) | _reference_ids(row)
                examples.append(Example(row["arxiv_id"], cited, row["gold"]))
    return examples


def cited_papers(workspace: Workspace, month: str) -> Mapping[str, frozenset[str]]:
    """Paper of a month → the papers of arXiv that it cites, as far as references are resolved;
    empty without them.
    """
    if workspace.root.provenance(tables.REFERENCES, month) is None:
        return {}
    cites: dict[str, set[str]] = defaultdict(set)
    for row in workspace.root.iterate(tables.REFERENCES, month, ["arxiv_id", "cited_arxiv_id"]):
        if row["cited_arxiv_id"]:
            cites[row["arxiv_id"]].add(row["cited_arxiv_id"])
    return {citing: frozenset(cited) for citing, cited in cites.items()}


def _reference_ids(row: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        reference["arxiv_id"] for reference in row["references"] if reference["arxiv_id"]
    )


def choose_examples(
    candidates: Sequence[Example], row: Mapping[str, Any], count: int, cites: Collection[str] = ()
) -> tuple[str, ...]:
    """`count` examples, or as many as there are, for a row of `related_work_tasks`.

    cites: papers that its target cites beside the references.

    Every task of a month sees the same ones where it may, so that prompts begin alike.
    """
    if not count:
        return ()
    target = row["arxiv_id"]
    related = {target, *cites, *_reference_ids(row)}
    texts = [
        example.text
        for example in candidates
        if example.arxiv_id not in related and (target is None or target not in example.cites)
    ]
    return (*texts, *shipped())[:count]
