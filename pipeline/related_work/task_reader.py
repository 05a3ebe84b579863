"""Read tasks, papers, passages and key elements from tables, as the systems need them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from pipeline import tables
from pipeline.corpus.nouns import PASSAGE_COLUMNS, Passage
from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.references.citation_index import cited_months
from pipeline.engine.digests import digests_by_month
from pipeline.engine.stage import Job, Workspace
from pipeline.errors import MissingInput
from pipeline.index.papers import rows_of_papers
from pipeline.related_work.examples import (
    Example,
    choose_examples,
    cited_papers,
    corpus_examples,
)
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.system import RelatedWorkSystem
from pipeline.related_work.task import Reference, ReferencePassage, Task
from pipeline.storage.data_root import DataRoot

_TEXT_COLUMNS = ("arxiv_id", "title", "abstract", "blocks")
# The text of a work of which only this is known: a model would otherwise add what it believes to
# know.
_SOURCE_TEXTS = {
    "abstract": "## Abstract\n\n{text}",
    "item": "Of this work only its bibliography item is known: {text}",
}


def paper_text(
    paper: Mapping[str, Any], skip: Callable[[Mapping[str, Any]], bool] = lambda block: False
) -> str:
    """Title, abstract and sections of a row of `papers` under Markdown headings, without citation
    markers.

    skip: whether to leave out a block, such as one of the related-work section.
    """
    parts = [f"# {paper['title']}"]
    if paper["abstract"]:
        parts.append(f"## Abstract\n\n{paper['abstract']}")
    blocks = (block for block in paper["blocks"] if not skip(block))
    for path, group in groupby(blocks, key=lambda block: tuple(block["section_path"])):
        heading = [f"## {' > '.join(path)}"] if path else []
        parts.append("\n\n".join([*heading, *(block["text"] for block in group)]))
    return without_markers("\n\n".join(parts))


def read_papers(
    workspace: Workspace, arxiv_ids: Collection[str], columns: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """Rows of `papers` by id, with the columns for `paper_text` and these; unknown ids are missing.

    Reads the months of the ids one after another, and holds these rows alone.
    """
    names = list(dict.fromkeys([*_TEXT_COLUMNS, *columns]))
    rows = rows_of_papers(workspace.root, tables.PAPERS, arxiv_ids, names)
    return {row["arxiv_id"]: row for row in rows}


def reference_passages(
    workspace: Workspace, arxiv_ids: Collection[str]
) -> dict[str, tuple[ReferencePassage, ...]]:
    """Passages of these papers in order, by arXiv id; papers without passages are missing."""
    columns = [*PASSAGE_COLUMNS, "ordinal"]
    rows = rows_of_papers(workspace.root, tables.PASSAGES, arxiv_ids, columns)
    passages: dict[str, list[ReferencePassage]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["ordinal"])):
        passage = Passage.from_row(row)
        if passage.kind != "front_matter":
            section = " > ".join(passage.section_path) or passage.kind
            place = ", ".join(filter(None, (section, passage.url)))
            passages[passage.arxiv_id].append(
                ReferencePassage(passage.passage_id, without_markers(passage.text), place)
            )
    return {arxiv_id: tuple(paper_passages) for arxiv_id, paper_passages in passages.items()}


def in_corpus(reference: Mapping[str, Any]) -> bool:
    """Whether a task's reference is read from `papers`, not from the task itself."""
    return reference["source"] == "full_text" and not reference["text"]


def references_in_corpus(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The papers of the corpus among the references of rows of `related_work_tasks`."""
    return {
        reference["arxiv_id"]
        for row in rows
        for reference in row["references"]
        if in_corpus(reference)
    }


@dataclass(frozen=True)
class MonthTasks:
    """The related-work tasks of a month; what several writers read of them is read once."""

    workspace: Workspace
    month: str

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of `related_work_tasks`, by task id."""
        rows = self.workspace.root.rows(tables.RELATED_WORK_TASKS, self.month)
        return sorted(rows, key=lambda row: str(row["task_id"]))

    @cached_property
    def cited_months(self) -> list[str]:
        """The months of the corpus's papers among the references."""

        def read_papers() -> set[str]:
            root = self.workspace.root
            return references_in_corpus(
                root.rows(tables.RELATED_WORK_TASKS, self.month, ["references"])
            )

        return cited_months(self.workspace, tables.RELATED_WORK_TASKS, self.month, read_papers)

    def cited_digests(self, table: tables.Table) -> dict[str, str]:
        """Digests of the months of a table that what is read of the references is from, for a
        part's `inputs`.
        """
        return digests_by_month(self.workspace, table, self.cited_months)

    @cached_property
    def _texts(self) -> dict[str, str]:
        """The text of each reference in the corpus, by arXiv id: may be a gigabyte for a month."""
        papers = read_papers(self.workspace, references_in_corpus(self.rows))
        return {arxiv_id: paper_text(paper) for arxiv_id, paper in papers.items()}

    @cached_property
    def _passages(self) -> dict[str, tuple[ReferencePassage, ...]]:
        return reference_passages(self.workspace, references_in_corpus(self.rows))

    @cached_property
    def _examples(self) -> list[Example]:
        return corpus_examples(self.workspace, self.month)

    @cached_property
    def _cited(self) -> Mapping[str, frozenset[str]]:
        return cited_papers(self.workspace, self.month)

    def with_texts(self, job: Job) -> list[Task]:
        """The tasks with the texts of their references; those without one go to the ledger."""
        texts = self._texts_noted(job)
        return [task_of(row, texts) for row in self.rows]

    def for_system(self, job: Job, system: RelatedWorkSystem) -> list[Task]:
        """The tasks with the texts, style examples and passages that the system needs; references
        without a text go to the ledger.
        """
        texts = self._texts_noted(job) if system.reads_texts else {}
        passages = self._passages if system.reads_passages else {}
        count = system.count_examples(job.settings)
        candidates, cited = (self._examples, self._cited) if count else ([], {})
        tasks = []
        for row in self.rows:
            cites = cited.get(row["arxiv_id"], ())
            examples = choose_examples(candidates, row, count, cites)
            tasks.append(task_of(row, texts, passages, examples))
        return tasks

    def _texts_noted(self, job: Job) -> dict[str, str]:
        """The texts of the references by arXiv id; those without one go to the ledger."""
        for row in self.rows:
            for reference in row["references"]:
                if in_corpus(reference) and reference["arxiv_id"] not in self._texts:
                    detail = (
                        f"{reference['arxiv_id']} is not in papers any more; its title alone is"
                        " used"
                    )
                    job.leave_out(row["task_id"], "reference_without_text", detail)
        return self._texts


FAILED_TASKS = "failed_tasks"
"""Name of the note that lists the tasks of which a model did not answer for every paper."""


def read_elements(
    job: Job, rows: Iterable[Mapping[str, Any]], model: str | None
) -> dict[str, list[KeyElements]]:
    """Key elements by a model of these rows of `related_work_tasks`, by task: the target's, then
    each reference's. Tasks of which the model gave no answer are missing.

    Raises MissingInput if the month's `key_elements` are of other papers or models: of an earlier
    version of the tasks, or empty, because no system read them then.
    """
    written = job.workspace.root.provenance(tables.KEY_ELEMENTS, job.month)
    parts = written.notes.get("parts", {}) if written else {}
    failed = parts.get(model, {}).get("notes", {}).get(FAILED_TASKS, ())
    papers_of_task = {
        row["task_id"]: [row["arxiv_id"], *(item["arxiv_id"] for item in row["references"])]
        for row in rows
        if row["task_id"] not in failed
    }
    element_rows = (
        row
        for row in job.iterate(tables.KEY_ELEMENTS)
        if row["task_id"] in papers_of_task and row["model"] == model
    )
    papers: dict[str, list[str | None]] = defaultdict(list)
    elements: dict[str, list[KeyElements]] = defaultdict(list)
    for row in sorted(element_rows, key=lambda row: (row["task_id"], row["number"])):
        papers[row["task_id"]].append(row["arxiv_id"])
        elements[row["task_id"]].append(KeyElements.of_row(row))
    changed = sorted(task for task, ids in papers_of_task.items() if papers.get(task) != ids)
    if changed:
        raise MissingInput(
            f"key_elements of {job.month} by {model} has not the papers of task {changed[0]} as it"
            f" is now: run citeloom run --months {job.month} --until key_elements"
        )
    return dict(elements)


def task_of(
    row: Mapping[str, Any],
    texts: Mapping[str, str],
    passages: Mapping[str, tuple[ReferencePassage, ...]] | None = None,
    examples: tuple[str, ...] = (),
) -> Task:
    """A task from its row and its references' texts and passages, by arXiv id.

    A reference without text has its title for one.
    """
    references = tuple(
        Reference(
            number=item["number"],
            arxiv_id=item["arxiv_id"],
            title=item["title"],
            source=item["source"],
            authors=tuple(item.get("authors") or ()),
            text=_text(item, texts),
            passages=(passages or {}).get(item["arxiv_id"], ()),
        )
        for item in row["references"]
    )
    return Task(row["task_id"], row["title"], row["description"], references, examples)


def _text(reference: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    heading, text = f"# {reference['title']}", reference["text"]
    if in_corpus(reference):
        return texts.get(reference["arxiv_id"], heading)
    content = _SOURCE_TEXTS.get(reference["source"], "{text}").replace(
        "{text}", text or reference["title"]
    )
    return f"{heading}\n\n{content}"


def section_rows(root: DataRoot, month: str) -> Iterator[dict[str, Any]]:
    """The sections of a month, without repeats: task_id, system, model, repeat and text.

    Raises as `DataRoot.iterate` does.
    """
    if root.file(tables.SUMMARIES, month).exists():
        rows = root.iterate(
            tables.SUMMARIES, month, ["task_id", "system", "model", "repeat", "text"]
        )
        yield from (row for row in rows if row["repeat"] == 0)
