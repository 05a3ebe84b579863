"""A small data root whose papers are under different licences, for the tests of exports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from pipeline.storage.data_root import DataRoot
from pipeline.tables import Table
from tests.month_tables import write_table

BY = "http://creativecommons.org/licenses/by/4.0/"
ARXIV = "http://arxiv.org/licenses/nonexclusive-distrib/1.0/"
PAPERS = {
    # id: (licence in the snapshot, source of the metadata, status)
    "2403.00001": (BY, "snapshot", "present"),
    "2403.00002": (ARXIV, "snapshot", "present"),
    "2403.00003": (BY, "oai", "present"),
    "2403.00004": (BY, "snapshot", "withdrawn"),
    "2403.00005": (None, "snapshot", "present"),
    "2404.00001": (BY, "snapshot", "present"),
}
OPEN = ("2403.00001", "2404.00001")
MONTHS = ("2024-03", "2024-04")
# Stands wherever a page's words stand, and nowhere else.
WORD = "quokka"


def make_workspace(folder: Path, **settings: Any) -> Workspace:
    """A data root with two months, and the snapshot that its metadata is from."""
    snapshot = folder / "snapshot.jsonl"
    snapshot.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"id": name, "title": "Known", "categories": "cs.CL", "license": licence}
        for name, (licence, *_) in PAPERS.items()
    ]
    snapshot.write_text("".join(json.dumps(line) + "\n" for line in lines))
    chosen = {
        "data": folder / "data",
        "metadata_snapshot": snapshot,
        "dump_dir": folder,
        **settings,
    }
    workspace = Workspace(load_settings(_env_file=None, **chosen))
    for month in MONTHS:
        fill(workspace.root, month)
    return workspace


def fill(root: DataRoot, month: str) -> None:
    """One month of each table that an export is tried on."""
    ids = [name for name in PAPERS if name.startswith(month[2:].replace("-", ""))]
    write(root, tables.METADATA, month, [_metadata(name) for name in ids])
    write(
        root,
        tables.PAPERS,
        month,
        [_paper(name) for name in ids],
        left_out={"withdrawn": 2, "not_cs": 1},
    )
    write(
        root, tables.PASSAGES, month, [_passage(name, place) for name in ids for place in range(3)]
    )
    write(root, tables.REFERENCES, month, [_reference(name) for name in ids])
    write(root, tables.EMBEDDINGS, month, [_vectors(name) for name in ids])
    write(
        root, tables.QUESTIONS, month, [{"question_id": "q1", "question": WORD, "kind": "author"}]
    )
    write(root, tables.ANSWERS, month, [])
    entries = [{"subject": ids[0], "stage": "papers", "reason": "withdrawn", "detail": WORD}]
    write(root, tables.LEDGER, month, entries, root.ledger_file("papers", month))


def write(
    root: DataRoot,
    table: Table,
    month: str,
    rows: Iterable[Mapping[str, Any]],
    file: Path | None = None,
    left_out: Mapping[str, int] | None = None,
) -> None:
    """Write a month of a table as a stage does."""
    settings = {
        "parser": "fast",
        "embedder_path": "/home/somebody/models/bge-m3",
        "systems": ["/home/somebody/a", "b"],
        "qdrant_url": "http://192.0.2.1:6333",
    }
    write_table(
        root,
        table,
        month,
        rows,
        file=file,
        code_version="1",
        fingerprint="f",
        settings=settings,
        left_out=left_out or {},
    )


def _metadata(name: str) -> dict[str, Any]:
    _, source, status = PAPERS[name]
    return {
        "arxiv_id": name,
        "title": "Known",
        "authors": ["Ada"],
        "source": source,
        "status": status,
    }


def _paper(name: str) -> dict[str, Any]:
    block = {
        "kind": "paragraph",
        "anchor": "S1.p1",
        "section_path": [WORD],
        "text": WORD,
        "cited_keys": ["bib1"],
    }
    return {
        "arxiv_id": name,
        "title": WORD,
        "authors": [{"name": WORD, "affiliations": [], "emails": [f"{WORD}@x.org"]}],
        "abstract": WORD,
        "blocks": [block],
        "bibliography": [{"key": "bib1", "raw": WORD}],
        "paragraphs": 1,
        "kept": {"paragraph": 6},
        "losses": {},
        "grade": "A",
        "grade_reasons": ["ltx_errors"],
    }


def _passage(name: str, place: int) -> dict[str, Any]:
    return {
        "passage_id": f"{name}-{place}",
        "arxiv_id": name,
        "ordinal": place,
        "anchor": f"S1.p{place}",
        "kind": "paragraph",
        "title": WORD,
        "section_path": [WORD],
        "text": WORD,
        "words": 1,
        "cited_keys": ["bib1"],
        "text_sha256": "0" * 64,
    }


def _reference(name: str) -> dict[str, Any]:
    return {
        "arxiv_id": name,
        "key": "bib1",
        "raw": WORD,
        "title": WORD,
        "year": 2020,
        "cited_arxiv_id": "2403.00001",
    }


def _vectors(name: str) -> dict[str, Any]:
    return {
        "passage_id": f"{name}-0",
        "arxiv_id": name,
        "model": "small",
        "dense": [0.5, -0.5],
        "sparse_ids": [7],
        "sparse_weights": [1.0],
        "colbert": [[0.5], [0.25]],
        "truncated": False,
    }
