"""Prints the tables of first-run.md from a data root, as Markdown.

    .venv/bin/python -m experiments.first_run [DATA_ROOT]

DATA_ROOT is CITELOOM_DATA's where it is not given. Only stored tables are read; nothing is computed again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.errors import CiteloomError
from pipeline.settings import load_settings
from pipeline.storage.data_root import DataRoot
from pipeline.tables import Table

_TITLE_LENGTH = 45
_HEAD = (
    "arXiv id", "severity", "title", "authors", "sections", "passages", "references", "with an arXiv id",
    "resolved", "in the run", "characters", "kept, %",
)  # fmt: skip

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Run:
    """The tables of one data root, by paper."""

    members: Rows
    metadata: Rows
    papers: Rows
    passages: Rows
    references: Rows
    left_out: dict[str, dict[str, Any]]


def read(root: DataRoot) -> Run:
    """Every month of the tables that the document speaks of."""
    return Run(
        members=_by_paper(root, tables.DUMP_MEMBERS),
        metadata=_by_paper(root, tables.METADATA),
        papers=_by_paper(root, tables.PAPERS),
        passages=_by_paper(root, tables.PASSAGES),
        references=_by_paper(root, tables.REFERENCES),
        left_out={row["subject"]: row for row in _ledger(root, tables.PAPERS)},
    )


def _by_paper(root: DataRoot, table: Table) -> Rows:
    rows: Rows = {}
    for month in root.months(table):
        for row in root.rows(table, month):
            rows.setdefault(row["arxiv_id"], []).append(row)
    return rows


def _ledger(root: DataRoot, table: Table) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    for month in root.months(table):
        yield from pq.read_table(root.ledger_file(table.name, month)).to_pylist()


def print_papers(run: Run) -> None:
    """One line for each paper that was parsed."""
    print(_line(_HEAD))
    print(_line(["---"] * len(_HEAD)))
    for arxiv_id, (paper,) in sorted(run.papers.items()):
        print(_line(_paper_cells(run, arxiv_id, paper)))
    print(_line(_total_cells(run)))


def _paper_cells(run: Run, arxiv_id: str, paper: dict[str, Any]) -> list[object]:
    references = run.references.get(arxiv_id, [])
    return [
        arxiv_id,
        paper["subset"],
        _short(paper["title"]),
        len(paper["authors"]),
        len(paper["sections"]),
        len(run.passages[arxiv_id]),
        *_reference_counts(run, references, paper["bibliography"]),
        f"{paper['chars_seen']:,}",
        f"{100 * paper['chars_kept'] / paper['chars_seen']:.1f}",
    ]


def _total_cells(run: Run) -> list[object]:
    papers = [paper for (paper,) in run.papers.values()]
    references = [row for rows in run.references.values() for row in rows]
    items = [item for paper in papers for item in paper["bibliography"]]
    seen, kept = (sum(paper[name] for paper in papers) for name in ("chars_seen", "chars_kept"))
    return [
        f"{len(papers)} papers",
        "",
        "",
        sum(len(paper["authors"]) for paper in papers),
        sum(len(paper["sections"]) for paper in papers),
        sum(len(rows) for rows in run.passages.values()),
        *_reference_counts(run, references, items),
        f"{seen:,}",
        f"{100 * kept / seen:.1f}",
    ]


def _reference_counts(run: Run, references: Sequence[dict[str, Any]], items: Sequence[dict[str, Any]]) -> list[int]:
    """How many references there are, name an arXiv id, are resolved to one, and cite a paper of the run."""
    return [
        len(references),
        sum(item["arxiv_id"] is not None for item in items),
        sum(row["cited_arxiv_id"] is not None for row in references),
        sum(row["cited_arxiv_id"] in run.papers for row in references),
    ]


def print_left_out(run: Run) -> None:
    """One line for each paper that was not parsed, as the ledger says."""
    print(_line(["arXiv id", "severity", "title", "reason", "categories"]))
    print(_line(["---"] * 5))
    for arxiv_id, row in sorted(run.left_out.items()):
        title = _short(run.metadata[arxiv_id][0]["title"])
        print(_line([arxiv_id, run.members[arxiv_id][0]["subset"], title, row["reason"], row["detail"]]))


def print_check(run: Run) -> None:
    """Whether every paper has a title, an abstract, and a passage of each of its sections; and passages by length."""
    papers = [paper for (paper,) in run.papers.values()]
    without = [lack for paper in papers for lack in _lacks(paper, run.passages[paper["arxiv_id"]])]
    sources = Counter(f"{paper['title_source']}/{paper['abstract_source']}" for paper in papers)
    taken = ", ".join(f"{name} ({count})" for name, count in sorted(sources.items()))
    print(f"- Title and abstract taken from: {taken}.")
    print(f"- Without title, abstract or a passage of a section: {'; '.join(without) or 'none'}.")
    words = [row["words"] for rows in run.passages.values() for row in rows]
    short, long = sum(count < 20 for count in words), sum(count > 300 for count in words)
    print(f"- Characters lost: {_losses(papers)}.")
    print(f"- Kinds of passages: {_kinds([row for rows in run.passages.values() for row in rows])}.")
    print(f"- Passages: {len(words):,}, of which {short} under 20 words and {long} over 300.")
    resolved = Counter(row["resolved_by"] or "not resolved" for rows in run.references.values() for row in rows)
    print(f"- References: {', '.join(f'{name} {count}' for name, count in sorted(resolved.items()))}.")


def _lacks(paper: dict[str, Any], passages: list[dict[str, Any]]) -> Iterator[str]:
    for name in ("title", "abstract"):
        if not paper[name]:
            yield f"{paper['arxiv_id']}: {name}"
    paths = [row["section_path"] for row in passages]
    held = {tuple(path[:depth]) for path in paths for depth in range(len(path) + 1)}
    # A section that was too short for a passage of its own stands in another's, under a line of titles.
    headings = {title for row in passages for line in row["text"].splitlines() for title in line.split(" > ")}
    for section in paper["sections"]:
        if tuple(section["path"]) not in held and section["title"] not in headings:
            yield f"{paper['arxiv_id']}: {' > '.join(section['path'])}"


def _kinds(passages: Sequence[dict[str, Any]]) -> str:
    counted = Counter(row["kind"].replace("_", " ") for row in passages)
    return ", ".join(f"{kind} {count:,}" for kind, count in counted.most_common())


def _losses(papers: Iterable[dict[str, Any]]) -> str:
    losses: Counter[str] = Counter()
    for paper in papers:
        losses.update(dict(paper["losses"]))
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in losses.most_common())


def _short(title: str) -> str:
    return title if len(title) <= _TITLE_LENGTH else f"{title[:_TITLE_LENGTH].rsplit(' ', 1)[0]} …"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> int:
    """Print the three parts; 2 where the data root cannot be read."""
    root = DataRoot(Path(sys.argv[1]) if len(sys.argv) > 1 else load_settings().data_root)
    try:
        run = read(root)
    except CiteloomError as error:
        print(error, file=sys.stderr)
        return 2
    if not run.papers:
        print(f"{root.path} holds no papers: run citeloom run first", file=sys.stderr)
        return 2
    for part in (print_papers, print_left_out, print_check):
        part(run)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
