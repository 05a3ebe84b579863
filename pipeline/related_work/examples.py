"""Examples of style: related-work sections of other papers, shown to a writer (ChatCite, section
5.1, few-shot).

The paper says neither how many nor which. Ours are gold sections of tasks of earlier months, never
of a paper that cites the target or is cited by it, nor the target's own; where these are too few,
sections written for this project (`examples/`) follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
    months = [
        m
        for m in reversed(workspace.root.months(tables.RELATED_WORK_TASKS))
        if before is None or m < before
    ]
    with_tasks: list[str] = []
    for month in months:
        provenance = workspace.root.provenance(tables.RELATED_WORK_TASKS, month)
        if provenance and provenance.rows:
            with_tasks.append(month)
        if len(with_tasks) == _MONTHS:
            break
    return with_tasks


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
    return [
        example
        for month in example_months(workspace, before)
        for example in _of_month(workspace, month)
    ]


def _of_month(workspace: Workspace, month: str) -> Iterable[Example]:
    cites = cited_papers(workspace, month)
    columns = ["task_id", "arxiv_id", "references", "gold"]
    for row in sorted(
        workspace.root.rows(tables.RELATED_WORK_TASKS, month, columns),
        key=lambda row: row["task_id"],
    ):
        if row["arxiv_id"] and len(cited_numbers(row["gold"] or "")) >= _FEWEST_CITED:
            cited = cites.get(row["arxiv_id"], frozenset()) | _reference_ids(row)
            yield Example(row["arxiv_id"], cited, row["gold"])


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
    candidates: Sequence[Example], target: str | None, cites: Collection[str], count: int
) -> tuple[str, ...]:
    """`count` examples, or as many as there are, for a target that cites these papers.

    Every task of a month sees the same ones where it may, so that prompts begin alike.
    """
    others = [
        example
        for example in candidates
        if example.arxiv_id != target and example.arxiv_id not in cites
    ]
    texts = [example.text for example in others if target is None or target not in example.cites]
    return (*texts, *shipped())[:count]


@dataclass(frozen=True, slots=True)
class StyleExamples:
    """What the examples of a month's tasks are chosen from, and what the month's papers cite."""

    candidates: Sequence[Example]
    cites: Mapping[str, frozenset[str]]

    @classmethod
    def before(cls, workspace: Workspace, month: str) -> StyleExamples:
        """Those for the tasks of this month, from earlier ones."""
        return cls(corpus_examples(workspace, month), cited_papers(workspace, month))

    def of_task(self, row: Mapping[str, Any], count: int) -> tuple[str, ...]:
        """The examples of a row of `related_work_tasks`: `count`, or as many as there are."""
        cites = _reference_ids(row) | self.cites.get(row["arxiv_id"], frozenset())
        return choose_examples(self.candidates, row["arxiv_id"], cites, count)
