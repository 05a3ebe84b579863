"""Related-work tasks from the corpus, and the stage that writes them.

A task is a paper with a related-work section that cites at least `min_references` works whose text
the task can give: papers of the corpus, and works whose abstract the metadata have. The section is
taken out of the target and becomes the gold text (ChatCite, section 4.1: target papers without
their related work). Other sections on related work, such as one in an appendix, are taken out with
it, since they say the same at length. Tasks of files join those of their month.

References are numbered in the order of the bibliography: in order of first citation they would tell
a writer in which order the gold section treats them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pipeline import tables
from pipeline.corpus.parse.policies import (
    CITATION_MARKER,
    cited_keys,
    without_missing_markers,
)
from pipeline.corpus.references.citation_index import months_cited_by_references, note_cited_months
from pipeline.corpus.related_work import is_related_work
from pipeline.engine.digests import digests_by_month
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.identity.identifiers import month_of
from pipeline.index.papers import rows_of_papers
from pipeline.related_work.task import ReferenceSource, tasks_of_month
from pipeline.related_work.task_reader import paper_text, references_in_corpus
from pipeline.storage.writing import Row
from pipeline.text import number_of, one_line

_PAPER_COLUMNS = ["arxiv_id", "title", "abstract", "sections", "blocks"]
_ITEM_COLUMNS = ["arxiv_id", "key", "ordinal", "raw", "title", "authors", "year", "cited_arxiv_id"]
_METADATA_COLUMNS = ["arxiv_id", "title", "authors", "abstract", "published"]
# References of one task; the rest of a longer section is counted only.
MAX_REFERENCES = 100
# A bibliography item of which no title was read is shown by its beginning.
_TITLE_CHARS = 160


@dataclass(frozen=True, slots=True)
class CitedWork:
    """A work as one item cites it. identity: the same for two items of one work.

    text: its abstract or its bibliography item; None for a work in `papers`.
    """

    identity: str
    arxiv_id: str | None
    title: str
    year: int | None
    source: ReferenceSource = "full_text"
    text: str | None = None
    authors: tuple[str, ...] = ()
    place: int = 0
    """Of the item in its bibliography."""


@dataclass(frozen=True, slots=True)
class ResolvedItem:
    """The arXiv id that a bibliography item has, and the item's place in its bibliography."""

    cited: str
    place: int


ResolvedItems = Mapping[tuple[str, str], ResolvedItem]
"""(citing paper, key of its item) → the arXiv id of the cited work."""
Citations = Mapping[tuple[str, str], CitedWork]
"""(citing paper, key of its item) → the cited work, where a task may have it for a reference."""


def related_work_section(paper: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The outermost section on related work, by its title; None if the paper has none."""
    sections = [section for section in paper["sections"] if is_related_work(section["title"])]
    return min(sections, key=lambda section: section["depth"], default=None)


def gold_text(blocks: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]) -> str:
    """The section's text with citations as `[Reference i]`. numbers: key → i; others vanish."""

    def replace(match: re.Match[str]) -> str:
        keys = cited_keys(match[0])
        return " ".join(f"[Reference {numbers[key]}]" for key in keys if key in numbers)

    text = "\n\n".join(
        CITATION_MARKER.sub(replace, without_missing_markers(block["text"])) for block in blocks
    )
    return re.sub(r" ([.,;:)])", r"\1", re.sub(r" {2,}", " ", text)).strip()


def section_blocks(paper: Mapping[str, Any], section: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The blocks of a paper within a section."""
    return [block for block in paper["blocks"] if section["title"] in block["section_path"]]


def keys_cited_in(blocks: Sequence[Mapping[str, Any]]) -> set[str]:
    """Keys of the bibliography items that some blocks cite."""
    return {key for block in blocks for key in block["cited_keys"]}


def make_task(
    paper: Mapping[str, Any], section: Mapping[str, Any], citations: Citations, most: int
) -> dict[str, Any]:
    """A row of `related_work_tasks` for a paper and its section; at most `most` references."""
    blocks = section_blocks(paper, section)
    keys = keys_cited_in(blocks)
    cited = {
        key: citations[paper["arxiv_id"], key]
        for key in keys
        if (paper["arxiv_id"], key) in citations
    }
    # Two items of one work are one reference, under the key of the first.
    numbers: dict[str, int] = {}
    first_keys: list[str] = []
    number_of: dict[str, int] = {}
    for key, work in sorted(cited.items(), key=lambda item: (item[1].place, item[0])):
        if work.identity not in number_of:
            if len(number_of) == most:
                continue
            number_of[work.identity] = len(number_of) + 1
            first_keys.append(key)
        numbers[key] = number_of[work.identity]
    reviews = {other["title"] for other in paper["sections"] if is_related_work(other["title"])}

    def is_review(block: Mapping[str, Any]) -> bool:
        return not reviews.isdisjoint(block["section_path"])

    return {
        "task_id": f"{paper['arxiv_id']}#{section['anchor']}",
        "arxiv_id": paper["arxiv_id"],
        "title": paper["title"],
        "description": paper_text(paper, skip=is_review),
        "section_title": section["title"],
        "references": [
            {
                "number": number,
                "arxiv_id": cited[key].arxiv_id,
                "key": key,
                "title": cited[key].title,
                "authors": list(cited[key].authors),
                "year": cited[key].year,
                "source": cited[key].source,
                "text": cited[key].text,
            }
            for number, key in enumerate(first_keys, 1)
        ],
        "outside": len(keys) - len(numbers),
        "gold": gold_text(blocks, numbers),
    }


def _most_tasks(workspace: Workspace, month: str) -> int:
    """The most tasks of a month: by its own limit, and by what earlier months leave of all."""
    settings, table = workspace.settings, tables.RELATED_WORK_TASKS
    if not settings.max_tasks_in_all:
        return settings.max_tasks
    earlier = [other for other in workspace.root.months(table) if other < month]
    written = [workspace.root.provenance(table, other) for other in earlier]
    left = settings.max_tasks_in_all - sum(made.rows for made in written if made)
    return max(0, min(settings.max_tasks, left))


def _corpus_tasks(job: Job, citations: Citations) -> Iterator[dict[str, Any]]:
    fewest = job.settings.min_references
    too_few = []
    tasks = 0
    for paper in job.iterate(tables.PAPERS, _PAPER_COLUMNS):
        section = related_work_section(paper)
        if section is None:
            job.leave_out(paper["arxiv_id"], "no_related_work_section")
            continue
        task = make_task(paper, section, citations, MAX_REFERENCES)
        if len(task["references"]) == MAX_REFERENCES:
            detail = (
                f"a task has {MAX_REFERENCES} references at most; {task['outside']} items are not"
                " used"
            )
            job.leave_out(paper["arxiv_id"], "at_max_references", detail)
        known = sum(reference["source"] != "item" for reference in task["references"])
        if known < fewest:
            cited = len(task["references"]) + task["outside"]
            detail = f"{known} of {cited} cited works have a known text"
            job.leave_out(paper["arxiv_id"], "too_few_references", detail)
            too_few.append(known)
        else:
            tasks += 1
            yield task
    if too_few and not tasks:
        job.notes["no_task"] = _why_no_task(too_few, fewest, job.settings.outside_references)


def _why_no_task(too_few: Sequence[int], fewest: int, outside: str) -> str:
    """Why no paper with a related-work section became a task. too_few: of each, how many of the
    cited works have a known text.
    """
    most = max(too_few)
    text = (
        f"No related-work section of {number_of(len(too_few), 'paper')} cites works of which"
        f" {fewest} have a known text (CITELOOM_MIN_REFERENCES): at most {most} have one, in"
        f" {number_of(too_few.count(most), 'paper')}. Known are papers of the corpus, and abstracts"
        " of the metadata: a whole snapshot has more."
    )
    if outside == "drop":
        text += (
            " CITELOOM_OUTSIDE_REFERENCES=drop leaves out works that only the metadata describe."
        )
    return text


def _citations(job: Job, resolved: ResolvedItems) -> Citations:
    """The works that papers of this month cite: papers up to this month, and works outside."""
    root = job.workspace.root
    ids = {item.cited for item in resolved.values() if (month_of(item.cited) or "") <= job.month}
    works: dict[str, CitedWork] = {}
    for row in rows_of_papers(root, tables.PAPERS, ids, ["arxiv_id", "title", "authors", "year"]):
        paper, authors = row["arxiv_id"], tuple(author["name"] for author in row["authors"] or ())
        works[paper] = CitedWork(paper, paper, row["title"], row["year"], authors=authors)
    if job.settings.outside_references != "drop":
        # Works that arXiv's metadata describes though they are not among the papers: of other
        # categories, or unparsed.
        for row in rows_of_papers(root, tables.METADATA, ids - works.keys(), _METADATA_COLUMNS):
            paper, title, abstract = row["arxiv_id"], row["title"], row["abstract"]
            if title and abstract:
                year = int(row["published"][:4]) if row["published"] else None
                authors = tuple(row["authors"] or ())
                works[paper] = CitedWork(paper, paper, title, year, "abstract", abstract, authors)
    citations = {
        key: replace(works[item.cited], place=item.place)
        for key, item in resolved.items()
        if item.cited in works
    }
    if job.settings.outside_references == "item":
        known = Counter(citing for citing, _ in citations)
        enough = {paper for paper, works in known.items() if works >= job.settings.min_references}
        citations |= _items(job, citations, enough)
    return citations


def _items(
    job: Job, with_text: Citations, citing: Collection[str]
) -> dict[tuple[str, str], CitedWork]:
    """The other items of these papers, as printed; those of a whole month would be too many to
    hold.
    """
    items = {}
    for row in job.iterate(tables.REFERENCES, _ITEM_COLUMNS):
        item, cited = (row["arxiv_id"], row["key"]), row["cited_arxiv_id"]
        printed = one_line(row["raw"] or row["title"] or "")
        if row["arxiv_id"] in citing and item not in with_text and printed:
            items[item] = CitedWork(
                cited or f"{row['arxiv_id']} {row['key']}",
                cited,
                row["title"] or printed[:_TITLE_CHARS],
                row["year"],
                "item",
                printed,
                tuple(row["authors"] or ()),
                row["ordinal"],
            )
    return items


class RelatedWorkTasks(Stage):
    """Papers whose related work cites works with a known text; the section is taken out and is the
    gold text.
    """

    table = tables.RELATED_WORK_TASKS
    upstream = (tables.PAPERS, tables.REFERENCES)
    settings = ("min_references", "max_tasks", "outside_references")
    version = 5
    plain_name = "tasks"

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        """Digests of other months of cited papers, of metadata for works outside, and of task
        files; the most tasks, where earlier months count.
        """
        cited = months_cited_by_references(workspace, month)
        not_later = [other for other in cited if other <= month]
        earlier = [other for other in not_later if other != month]
        digests = digests_by_month(workspace, tables.PAPERS, earlier)
        if workspace.settings.outside_references != "drop":
            digests |= digests_by_month(workspace, tables.METADATA, not_later)
        if workspace.settings.tasks_dir is not None:
            digests |= {
                f"task {file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
                for file, _ in tasks_of_month(workspace.settings.tasks_dir, month)
            }
        if workspace.settings.max_tasks_in_all:
            digests["most tasks"] = str(_most_tasks(workspace, month))
        return digests

    def build(self, job: Job) -> Iterator[Row]:
        columns = ["arxiv_id", "key", "ordinal", "cited_arxiv_id"]
        resolved = {
            (row["arxiv_id"], row["key"]): ResolvedItem(row["cited_arxiv_id"], row["ordinal"])
            for row in job.iterate(tables.REFERENCES, columns)
            if row["cited_arxiv_id"]
        }
        citations = _citations(job, resolved)
        sources: Counter[str] = Counter()
        cited: set[str] = set()
        count, most = 0, _most_tasks(job.workspace, job.month)
        folder = job.settings.tasks_dir
        of_files = () if folder is None else tasks_of_month(folder, job.month)
        rows_of_files = (task.row() for _, task in of_files)
        for task in chain(_corpus_tasks(job, citations), rows_of_files):
            if count == most:
                detail = f"CITELOOM_MAX_TASKS is {most}"
                if most < job.settings.max_tasks:
                    detail = f"earlier months leave {most} of CITELOOM_MAX_TASKS_IN_ALL"
                job.leave_out(task["arxiv_id"] or task["task_id"], "over_max_tasks", detail)
                continue
            count += 1
            sources.update(reference["source"] for reference in task["references"])
            cited |= references_in_corpus([task])
            yield task
        job.notes["references"] = dict(sorted(sources.items()))
        note_cited_months(job, cited)


RELATED_WORK_TASKS = RelatedWorkTasks()
