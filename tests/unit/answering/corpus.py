"""A small corpus with an index of its own: three papers of two months, two with front matter. Not
what is expected.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.corpus.passages.text import embedded_text, text_digest
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.settings import load_settings
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.index.building import TEXTS, embed, make_workspace

MARCH, MAY = "2024-03", "2024-05"
QUILLNET, FERNS, UNSIGNED = "2403.00001", "2405.00001", "2403.00002"
TITLES = {
    QUILLNET: "QuillNet: Reading Margins",
    FERNS: "On Ferns",
    UNSIGNED: "A Paper Without Front Matter",
}


def build_corpus(folder: Path) -> Workspace:
    """The corpus, embedded and indexed."""
    workspace = make_workspace(folder)
    places = [
        {"name": "Ada Quill", "affiliations": ["Nib University"], "emails": []},
        _author("Bo Vellum"),
    ]
    _month(
        workspace,
        MARCH,
        {QUILLNET: places, UNSIGNED: []},
        {QUILLNET: TEXTS[:3], UNSIGNED: TEXTS[3:5]},
    )
    _month(workspace, MAY, {FERNS: [_author("C. Frond")]}, {FERNS: TEXTS[5:]})
    listed = {
        "arxiv_id": QUILLNET,
        "authors": ["Ada Quill", "Bo Vellum"],
        "published": "2024-03-07",
    }
    write_table(
        workspace.root, tables.METADATA, MARCH, [listed | {"categories": ["cs.CL", "cs.DL"]}]
    )
    # Metadata knows two authors, of whom the page names one.
    others = {"arxiv_id": FERNS, "authors": ["C.  FROND", "Dora Moss"], "categories": ["cs.IR"]}
    write_table(workspace.root, tables.METADATA, MAY, [others])
    return workspace


def asking(corpus: Workspace, llm: ScriptedLlm, **settings: Any) -> Workspace:
    """The corpus with a model to ask."""
    given = {
        "data": corpus.root.path,
        "llm_url": llm.url,
        "llm_model": llm.model,
        "_env_file": None,
    }
    return Workspace(load_settings(**given | settings))


def _author(name: str) -> dict[str, Any]:
    return {"name": name, "affiliations": [], "emails": []}


def _month(
    workspace: Workspace,
    month: str,
    authors: dict[str, list[dict[str, Any]]],
    texts: dict[str, Sequence[str]],
) -> None:
    papers = [_paper(paper, month, people) for paper, people in authors.items()]
    write_table(workspace.root, tables.PAPERS, month, papers)
    write_table(
        workspace.root,
        tables.PASSAGES,
        month,
        [row for paper in texts for row in _passages(paper, texts[paper])],
    )
    embed(workspace, month)
    run_stage(INDEX_RECEIPTS, workspace, month)


def _paper(paper: str, month: str, authors: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "arxiv_id": paper,
        "subset": "no_problem",
        "title": TITLES[paper],
        "authors": authors,
        "grade": "A",
        "categories": ["cs.CL", "cs.DL"],
        "primary_category": "cs.CL",
        "year": int(month[:4]),
    }


def _passages(paper: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    told = [("S1.p1", "paragraph", text) for text in texts]
    if paper != UNSIGNED:
        told = [
            ("front_matter", "front_matter", f"{TITLES[paper]} part {part}") for part in (1, 2)
        ] + told
    return [_passage(paper, place, *each) for place, each in enumerate(told)]


def _passage(paper: str, place: int, anchor: str, kind: str, text: str) -> dict[str, Any]:
    path = [] if kind == "front_matter" else ["Method"]
    return {
        "passage_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{paper} {place}")),
        "arxiv_id": paper,
        "ordinal": place,
        "anchor": anchor,
        "kind": kind,
        "title": TITLES[paper],
        "section_path": path,
        "text": text,
        "words": len(text.split()),
        "cited_keys": [],
        "text_sha256": text_digest(embedded_text(TITLES[paper], path, text)),
    }
