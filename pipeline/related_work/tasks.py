"""Related-work tasks from the corpus, and the stage that keeps them. Not here: writing, and scoring what is written.

A task is a paper with a related-work section, at least `min_references` of whose citations are papers of the corpus.
The section is taken out of the target and becomes the gold text; its order of citation is the order of references
(ChatCite, section 4.1: target papers without their related work).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.corpus.related_work import is_related_work
from pipeline.identifiers import month_of
from pipeline.related_work.content import paper_text
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Row, read_provenance

_MARKER = re.compile(r"\[((?:@[^\[\];]+)(?:;\s*@[^\[\];]+)*)\]")
_PAPER_COLUMNS = ["arxiv_id", "title", "abstract", "sections", "blocks"]


@dataclass(frozen=True, slots=True)
class CorpusPaper:
    """A paper of the corpus, as far as a citation needs it."""

    arxiv_id: str
    title: str
    year: int


Citations = Mapping[tuple[str, str], CorpusPaper]
"""(citing paper, key of its item) → the cited paper, where it is in the corpus."""


def related_work_section(paper: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The outermost section that is about related work, by its title; None where the paper has none."""
    found = [section for section in paper["sections"] if is_related_work(section["title"])]
    return min(found, key=lambda section: section["depth"], default=None)


def gold_text(blocks: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]) -> str:
    """The section's text with citations as `[Reference i]`; `numbers` maps keys of items to i, others are dropped."""

    def replace(match: re.Match[str]) -> str:
        keys = [part.strip().removeprefix("@") for part in match.group(1).split(";")]
        return " ".join(f"[Reference {numbers[key]}]" for key in keys if key in numbers)

    text = "\n\n".join(_MARKER.sub(replace, block["text"]) for block in blocks)
    return re.sub(r" +([.,;:)])", r"\1", re.sub(r" {2,}", " ", text)).strip()


def make_task(paper: Mapping[str, Any], section: Mapping[str, Any], citations: Citations, most: int) -> dict[str, Any]:
    """A row of `related_work_tasks` for a paper whose related work is `section`; at most `most` references."""

    def belongs(block: Mapping[str, Any]) -> bool:
        return section["title"] in block["section_path"]

    blocks = [block for block in paper["blocks"] if belongs(block)]
    keys = list(dict.fromkeys(key for block in blocks for key in block["cited_keys"]))
    cited = {key: citations[paper["arxiv_id"], key] for key in keys if (paper["arxiv_id"], key) in citations}
    order = list(dict.fromkeys(known.arxiv_id for known in cited.values()))[:most]
    numbers = {key: order.index(known.arxiv_id) + 1 for key, known in cited.items() if known.arxiv_id in order}
    return {
        "task_id": f"{paper['arxiv_id']}#{section['anchor']}",
        "arxiv_id": paper["arxiv_id"],
        "title": paper["title"],
        "description": paper_text(paper, skip=belongs),
        "section_title": section["title"],
        "references": _references(numbers, cited),
        "outside": len(keys) - len(numbers),
        "gold": gold_text(blocks, numbers),
    }


def _references(numbers: Mapping[str, int], cited: Mapping[str, CorpusPaper]) -> list[dict[str, Any]]:
    first_keys = {number: key for key, number in reversed(list(numbers.items()))}
    return [
        {"number": number, "key": key, "arxiv_id": paper.arxiv_id, "title": paper.title, "year": paper.year}
        for number, key, paper in ((number, key, cited[key]) for number, key in sorted(first_keys.items()))
    ]


def _build(job: Job) -> Iterator[Row]:
    citations = _citations(job)
    made = 0
    for paper in job.iterate(tables.PAPERS, _PAPER_COLUMNS):
        section = related_work_section(paper)
        if section is None:
            job.leave_out(paper["arxiv_id"], "no_related_work_section")
            continue
        task = make_task(paper, section, citations, job.settings.max_references)
        if len(task["references"]) == job.settings.max_references:
            detail = f"CITELOOM_MAX_REFERENCES is {job.settings.max_references}; {task['outside']} items are not used"
            job.leave_out(paper["arxiv_id"], "at_max_references", detail)
        if len(task["references"]) < job.settings.min_references:
            detail = f"{len(task['references'])} of its cited items are papers of the corpus, {task['outside']} are not"
            job.leave_out(paper["arxiv_id"], "too_few_references", detail)
        elif made == job.settings.max_tasks:
            job.leave_out(paper["arxiv_id"], "over_max_tasks", f"CITELOOM_MAX_TASKS is {made}")
        else:
            made += 1
            yield task


def _citations(job: Job) -> Citations:
    """Who cites whom, in this month, among the papers of this month and those before it."""
    rows = [row for row in job.rows(tables.REFERENCES, ["arxiv_id", "key", "cited_arxiv_id"]) if row["cited_arxiv_id"]]
    wanted = {row["cited_arxiv_id"] for row in rows}
    known: dict[str, CorpusPaper] = {}
    for month in _cited_months(job.workspace, job.month, wanted):
        for row in job.workspace.root.iterate(tables.PAPERS, month, ["arxiv_id", "title", "year"]):
            known[row["arxiv_id"]] = CorpusPaper(row["arxiv_id"], row["title"], row["year"])
    return {
        (row["arxiv_id"], row["key"]): known[row["cited_arxiv_id"]] for row in rows if row["cited_arxiv_id"] in known
    }


def _cited_months(workspace: Workspace, month: str, wanted: set[str]) -> list[str]:
    """Months up to this one that hold cited papers and are in the corpus."""
    cited = {month_of(identifier) for identifier in wanted}
    return [other for other in workspace.root.months(tables.PAPERS) if other <= month and other in cited]


def _inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Digests of the other months whose papers are cited."""
    cited = workspace.root.read(tables.REFERENCES, month, ["cited_arxiv_id"])["cited_arxiv_id"].drop_null()
    months = _cited_months(workspace, month, set(cited.to_pylist()))
    return papers_digests(workspace, (other for other in months if other != month))


def papers_digests(workspace: Workspace, months: Iterable[str]) -> dict[str, str]:
    """Digests of the papers of some months, by name, for a stage's `inputs`."""
    found = {month: read_provenance(workspace.root.file(tables.PAPERS, month)) for month in sorted(months)}
    return {f"papers {month}": written.rows_sha256 for month, written in found.items() if written}


RELATED_WORK_TASKS = Stage(
    table=tables.RELATED_WORK_TASKS,
    build=_build,
    upstream=(tables.PAPERS, tables.REFERENCES),
    settings=("min_references", "max_references", "max_tasks"),
    inputs=_inputs,
)
