"""Print the table of retrieval-on-real-papers.md: a month of its own, over the papers of the first run.

    .venv/bin/python -m experiments.retrieval_real FIRST_RUN_ROOT RELATED_WORK_FOLDER NEW_ROOT

FIRST_RUN_ROOT holds the papers of first-run.md up to `embeddings`; RELATED_WORK_FOLDER the related-work sections, each
with the papers that it cites, as JSON. Citations by author and year are read as keys, then the stages do the rest.
Identifiers of the cited papers are made up, for the folder has none. Only NEW_ROOT is written.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.evaluation.retrieval.stages import RETRIEVAL_QUERIES, RETRIEVAL_SCORES
from pipeline.report.grid import Section
from pipeline.report.retrieval import read_retrieval, retrieval_section
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import Table

# Months that the first run does not have: the cited papers before most of its own, the citing ones after all of them.
CITED, CITING = "2023-01", "2025-02"
_COPIED = (tables.PAPERS, tables.PASSAGES, tables.EMBEDDINGS)
_OTHERS = r"(?: et al\.?| (?:and|&) [A-Z][\w’'´-]+)?"
_YEAR = r"(?:\s*\({year}[a-z]?\)|,?\s+{year}[a-z]?)"
_ANY_CITATION = re.compile(rf"[A-Z][\w’'´-]+{_OTHERS}{_YEAR.format(year='(?:19|20)[0-9][0-9]')}")

Row = dict[str, Any]


def keyed(text: str, leaves: Mapping[str, Mapping[str, Any]]) -> str:
    """The text with `[@key]` for citations by author and year; what names two of the leaves, or none, is `[@other]`."""
    names = {key: (_surname(leaf), leaf["year"]) for key, leaf in leaves.items()}
    counted = Counter(names.values())
    for key, (surname, year) in names.items():
        if counted[surname, year] == 1:
            pattern = rf"\b{re.escape(surname)}{_OTHERS}{_YEAR.format(year=year)}"
            text = re.sub(pattern, f"[@{key}]", text)
    return _ANY_CITATION.sub("[@other]", text)


def _surname(leaf: Mapping[str, Any]) -> str:
    return str(leaf["author"][0]).split()[-1] if leaf["author"] else leaf["title"]


def _paper(arxiv_id: str, source: Mapping[str, Any], sections: Mapping[str, str]) -> Row:
    blocks = [
        {"kind": "paragraph", "anchor": f"S{number}.p{place}", "section_path": [title], "text": paragraph.strip()}
        for number, (title, text) in enumerate(sections.items(), start=1)
        for place, paragraph in enumerate(filter(str.strip, text.split("\n")), start=1)
    ]
    for block in blocks:
        block["cited_keys"] = list(dict.fromkeys(re.findall(r"\[@([^\]]+)\]", block["text"])))
    authors = [{"name": name, "affiliations": [], "emails": []} for name in source["author"]]
    return {
        "arxiv_id": arxiv_id, "title": source["title"], "authors": authors, "abstract": source["abstract"],
        "categories": ["cs.CL"], "year": source.get("year"), "blocks": blocks,
    }  # fmt: skip


def read(folder: Path) -> tuple[list[Row], list[Row], list[Row]]:
    """(cited papers, citing papers, references) of the folder; a cited paper without a text cannot be found."""
    cited: list[Row] = []
    citing: list[Row] = []
    references: list[Row] = []
    for number, file in enumerate(sorted(folder.glob("*.json")), start=1):
        source = json.loads(file.read_text(encoding="utf-8"))
        root, leaves = source["root"], {f"l{place}": leaf for place, leaf in enumerate(source["leaves"])}
        arxiv_id = f"2502.9{number:04}"
        sections = {
            "Introduction": keyed(root["introduction"], leaves),
            "Related Work": keyed(root["relatedwork"], leaves),
        }
        citing.append(_paper(arxiv_id, root, sections))
        for key, leaf in leaves.items():
            known = f"2301.9{len(cited):04}" if leaf["abstract"] else None
            references.append({"arxiv_id": arxiv_id, "key": key, "cited_arxiv_id": known})
            if known:
                cited.append(_paper(known, leaf, {"Introduction": leaf["introduction"]}))
    return cited, citing, references


def _write(work: Workspace, table: Table, month: str, rows: Iterable[Row]) -> None:
    with MonthWriter(table, work.root.file(table, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(Provenance(table.name, month, table.version, 1, "0", "by hand", {}, {}))


def measure(first_run: Path, folder: Path, new_root: Path) -> Section:
    """Lay the papers of both out in the new root, run the stages, and give the report's section on the citing month."""
    for table in _COPIED:
        if not (first_run / table.name).is_dir():
            sys.exit(f"{first_run} has no {table.name}: run citeloom run --months all --until {_COPIED[-1].name} there")
        shutil.copytree(first_run / table.name, new_root / table.name, dirs_exist_ok=True)
    work = Workspace(load_settings(data=new_root))
    cited, citing, references = read(folder)
    for month, papers in ((CITED, cited), (CITING, citing)):
        _write(work, tables.PAPERS, month, papers)
        _write(work, tables.REFERENCES, month, references if month == CITING else [])
        run_stage(PASSAGES, work, month)
        run_stage(EMBEDDINGS, work, month)
    run_stage(RETRIEVAL_QUERIES, work, CITING)
    run_stage(RETRIEVAL_SCORES, work, CITING)
    return retrieval_section(read_retrieval(work.root, CITING))


def print_section(section: Section) -> None:
    """The section of the report as Markdown."""
    print(*section.paragraphs, "", sep="\n\n")
    (grid,) = section.grids
    _print_row(["text searched", *grid.columns])
    _print_row(["---"] * (1 + len(grid.columns)))
    for group in grid.groups:
        for row in group.rows:
            _print_row([group.title, *(cell.plain() for cell in row)])
    print("", *grid.notes, sep="\n\n")


def _print_row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print_section(measure(*map(Path, sys.argv[1:])))
