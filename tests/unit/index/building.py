"""Builders that the tests of the index share: a month of papers and passages, points, and an index's answers.

Imported by name (`tests.unit.index.building`), also from tests/server.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.index.passage_index import Layout, PassageIndex, Point, Restriction, month_number
from pipeline.passages.text import embedded_text, text_digest
from pipeline.settings import load_settings
from pipeline.stages import Workspace, run_stage
from pipeline.tables import MonthWriter, Provenance, Row, Table

LAYOUT = Layout(dimensions=8, sparse_idf=True)
MODEL = "a model"

TEXTS = (
    "Beam search keeps the best partial hypotheses while a sentence is translated word by word.",
    "Coverage penalties stop the decoder from leaving source words untranslated.",
    "Sparse lexical retrieval with inverse document frequency finds rare terms that dense vectors blur.",
    "A dense retriever encodes question and passage into one space and compares them by inner product.",
    "Reciprocal rank fusion merges two ranked lists without comparing their scores.",
    "Photosynthesis in ferns is limited by light on the forest floor.",
)


def passage_id(number: int) -> str:
    """The id of the n-th test passage."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"test passage {number}"))


def make_point(number: int, *, month: str = "2024-03", content: str = "first", **payload: Any) -> Point:
    """A point whose vectors follow from its number: neighbours in number are neighbours in angle.

    No two points score alike on the searches of `answers`, since an engine is free in the order of a tie.
    """
    angle = 0.1 * number
    base = {
        "arxiv_id": f"{month[2:4]}{month[5:]}.{number // 4:05d}",
        "month": month,
        "month_number": month_number(month),
        "categories": ["cs.CL", "stat.ML"] if number % 2 else ["cs.IR"],
        "archives": ["cs", "stat"] if number % 2 else ["cs"],
        "kind": "abstract" if number % 4 == 0 else "paragraph",
        "section_path": ["Method", f"Part {number}"],
        "model": MODEL,
        "grade": "AB"[number % 2],
    }
    digest = hashlib.sha256(f"{number} {content}".encode()).hexdigest()
    return Point(
        passage_id=passage_id(number),
        dense=[math.cos(angle), math.sin(angle), 0.01 * number, 0.0, 0.0, 0.0, 0.0, 0.5],
        sparse_ids=[number % 5, 5 + number % 7, 100 + number],
        sparse_weights=[1.0 + 0.017 * number, 0.5 + 0.011 * number, 0.25],
        payload=base | payload | {"digest": digest},
    )


def answers(index: PassageIndex) -> list[list[tuple[str, float, dict[str, Any]]]]:
    """What an index that holds `make_point(0..39)` over three months says to a set of searches."""
    restrictions = (
        Restriction(),
        Restriction(category="cs.CL"),
        Restriction(category="stat"),
        Restriction(first_month="2024-04"),
        Restriction(last_month="2024-03"),
        Restriction(first_month="2024-04", last_month="2024-04", kinds=("abstract",)),
        Restriction(model="another model"),
        Restriction(grades=("A",)),
        Restriction(model=MODEL, category="cs.IR", kinds=("paragraph", "abstract")),
    )
    return [
        [
            (hit.passage_id, round(hit.score, 6), dict(hit.payload))
            for hit in index.search(
                make_point(17).dense, [3, 7, 117], [1.0, 1.0, 1.0], limit=limit, restriction=restriction
            )
        ]
        for restriction in restrictions
        for limit in (1, 5, 40)
    ]


def three_months() -> list[Point]:
    """Forty points, by turns in three months."""
    return [make_point(number, month=("2024-03", "2024-04", "2024-05")[number % 3]) for number in range(40)]


def make_workspace(folder: Path, **overrides: Any) -> Workspace:
    """A workspace in a folder of its own that reads no .env file."""
    return Workspace(load_settings(data=folder, _env_file=None, **overrides))


def write_table(workspace: Workspace, table: Table, month: str, rows: Sequence[Row]) -> None:
    """Put a month of an upstream table in place."""
    with MonthWriter(table, workspace.root.file(table, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(Provenance(table.name, month, table.version, 1, "0", "made by a test", {}, {}))


def write_month(
    workspace: Workspace, month: str = "2024-03", texts: Sequence[str] = TEXTS, categories: Sequence[str] = ("cs.CL",)
) -> None:
    """Papers and passages of a month: two passages a paper, one for every text."""
    paper_ids = [f"{month[2:4]}{month[5:]}.{number:05d}" for number in range((len(texts) + 1) // 2)]
    write_table(workspace, tables.PAPERS, month, [_paper(arxiv_id, month, categories) for arxiv_id in paper_ids])
    rows = [_passage(paper_ids[number // 2], number, text) for number, text in enumerate(texts)]
    write_table(workspace, tables.PASSAGES, month, rows)


def embed(workspace: Workspace, month: str = "2024-03") -> None:
    """Run the stage embeddings on a month."""
    run_stage(EMBEDDINGS, workspace, month)


def _paper(arxiv_id: str, month: str, categories: Sequence[str]) -> Row:
    return {
        "arxiv_id": arxiv_id,
        "subset": "no_problem",
        "title": f"Paper {arxiv_id}",
        "categories": list(categories),
        "primary_category": categories[0],
        "year": int(month[:4]),
        "grade": "C",
    }


def _passage(arxiv_id: str, number: int, text: str) -> Row:
    title, path = f"Paper {arxiv_id}", ["Method", "Decoding"]
    return {
        "passage_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{arxiv_id} S1.p{number}")),
        "arxiv_id": arxiv_id,
        "ordinal": number,
        "anchor": f"S1.p{number}",
        "kind": "paragraph",
        "title": title,
        "section_path": path,
        "text": text,
        "words": len(text.split()),
        "cited_keys": [],
        "text_sha256": text_digest(embedded_text(title, path, text)),
    }
