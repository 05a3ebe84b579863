"""Read tasks, papers, passages and key elements from tables, as the systems need them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline import tables
from pipeline.arxiv.identifiers import month_of
from pipeline.corpus.parse.policies import without_markers
from pipeline.engine.stage import Job, Workspace
from pipeline.errors import MissingInput
from pipeline.index.papers import rows_of_papers
from pipeline.related_work.examples import task_examples
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.systems import RelatedWorkSystem
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
    parts.extend(_sections(block for block in paper["blocks"] if not skip(block)))
    return without_markers("\n\n".join(parts))


def _sections(blocks: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for path, group in groupby(blocks, key=lambda block: tuple(block["section_path"])):
        heading = [f"## {' > '.join(path)}"] if path else []
        yield "\n\n".join([*heading, *(block["text"] for block in group)])


def read_papers(
    workspace: Workspace, arxiv_ids: Collection[str], columns: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """Rows of `papers` by id, with the columns for `paper_text` and these; unknown ids are missing.

    Reads the months of the ids one after another, and holds these rows alone.
    """
    names = list(dict.fromkeys([*_TEXT_COLUMNS, *columns]))
    rows = rows_of_papers(workspace.root, tables.PAPERS, arxiv_ids, names)
    return {row["arxiv_id"]: row for row in rows}


def reference_months(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The months of the corpus's papers among the references of `related_work_tasks` rows."""
    months = {month_of(arxiv_id) for arxiv_id in _in_corpus(rows)}
    return {month for month in months if month is not None}


def reference_texts(workspace: Workspace, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Text of every reference of these rows whose paper is in the corpus, by arXiv id."""
    return {
        arxiv_id: paper_text(paper)
        for arxiv_id, paper in read_papers(workspace, _in_corpus(rows)).items()
    }


def reference_passages(
    workspace: Workspace, arxiv_ids: Collection[str]
) -> dict[str, tuple[ReferencePassage, ...]]:
    """Passages of these papers in order, by arXiv id; papers without passages are missing."""
    columns = ["arxiv_id", "passage_id", "ordinal", "kind", "text"]
    rows = rows_of_papers(workspace.root, tables.PASSAGES, arxiv_ids, columns)
    passages: dict[str, list[ReferencePassage]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["ordinal"])):
        if row["kind"] != "front_matter":
            passages[row["arxiv_id"]].append(
                ReferencePassage(row["passage_id"], without_markers(row["text"]))
            )
    return {arxiv_id: tuple(paper_passages) for arxiv_id, paper_passages in passages.items()}


def _in_corpus(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    return {
        reference["arxiv_id"]
        for row in rows
        for reference in row["references"]
        if in_corpus(reference)
    }


def in_corpus(reference: Mapping[str, Any]) -> bool:
    """Whether a task's reference is read from `papers`, not from the task itself."""
    return reference["source"] == "full_text" and not reference["text"]


def read_elements(
    job: Job, rows: Iterable[Mapping[str, Any]], model: str | None
) -> dict[str, list[KeyElements]]:
    """Key elements by a model of these rows of `related_work_tasks`, by task: the target's, then
    each reference's.

    Raises MissingInput if the month's `key_elements` are of other papers or models: of an earlier
    version of the tasks, or empty, because no system read them then.
    """
    papers_of_task = {
        row["task_id"]: [row["arxiv_id"], *(item["arxiv_id"] for item in row["references"])]
        for row in rows
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


def read_tasks(
    job: Job, rows: Sequence[Mapping[str, Any]], *, with_texts: bool = True
) -> list[Task]:
    """The tasks of these rows of `related_work_tasks`.

    with_texts: with the texts of their references, which may be a gigabyte for a month, or with
    their titles alone.
    """
    texts = _texts_of(job, rows) if with_texts else {}
    return [task_of(row, texts) for row in rows]


def tasks_for(job: Job, rows: Sequence[Mapping[str, Any]], system: RelatedWorkSystem) -> list[Task]:
    """The tasks of these rows with the texts, style examples and passages that the system needs."""
    texts = _texts_of(job, rows) if system.reads_texts else {}
    passages = reference_passages(job.workspace, _in_corpus(rows)) if system.reads_passages else {}
    examples = task_examples(job.workspace, job.month, rows, system.count_examples(job.settings))
    return [
        task_of(row, texts, passages, chosen) for row, chosen in zip(rows, examples, strict=True)
    ]


def _texts_of(job: Job, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The texts of the references by arXiv id; those without one go to the ledger."""
    texts = reference_texts(job.workspace, rows)
    for row in rows:
        for reference in row["references"]:
            if in_corpus(reference) and reference["arxiv_id"] not in texts:
                detail = (
                    f"{reference['arxiv_id']} is not in papers any more; its title alone is used"
                )
                job.leave_out(row["task_id"], "reference_without_text", detail)
    return texts


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
