"""A corpus to draft questions on, and a model that drafts them: two months, three papers. Not what is expected."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.answering.question_drafts import QUESTION_DRAFTS
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Outcome, Workspace
from pipeline.settings import load_settings
from tests.scripted_llm import Asked, Rule, ScriptedLlm
from tests.unit.answering.asking import form_of
from tests.unit.related_work.building import write_month

MARCH, MAY = "2024-03", "2024-05"
QUILLNET, FERNS, LONELY = "2405.00001", "2403.00007", "2405.00002"
TITLES = {QUILLNET: "QuillNet: Reading Margins", FERNS: "On Ferns", LONELY: "A Lonely Paper"}
AUTHORS = {
    QUILLNET: [("Ada Quill", ["Nib University"]), ("Bo Vellum", [])],
    FERNS: [("C. Frond", [])],
    LONELY: [],
}
Drafted = tuple[Workspace, ScriptedLlm]
"""A month of drafts, and the endpoint that made them."""
Told = tuple[str, Sequence[str], str, Sequence[str]]
"""Kind, section path, text and cited keys of a passage."""
TEXTS: Mapping[str, Sequence[Told]] = {
    QUILLNET: [
        (
            "front_matter", [],
            "QuillNet: Reading Margins\nAuthors: Ada Quill (Nib University, ada@nib.example); Bo Vellum\n"
            "arXiv:2405.00001 (May 2024), categories cs.CL", [],
        ),
        ("abstract", ["Abstract"], "QuillNet reads what readers wrote into the margins of old letters.", []),
        ("paragraph", ["Data"], "It was tried on 412 letters of the Brambleton archive, which two readers marked.", []),
        ("paragraph", ["Method"], "Unlike ferns [@b1], margins are read from the right, line by line.", ["b1", "b2"]),
        ("paragraph", ["Results"], "It reads 81 % of all margins as the two readers did [@b1].", ["b1"]),
        ("paragraph", ["Limitations"], "Pages with stains were left out of the whole study.", ["b3"]),
    ],
    FERNS: [
        ("front_matter", [], "On Ferns\nAuthors: C. Frond\narXiv:2403.00007 (March 2024), categories cs.IR", []),
        ("abstract", ["Abstract"], "Ferns are read from the left, leaf by leaf, in the light of day.", []),
    ],
    LONELY: [("paragraph", ["Body"], "There is nothing here that anybody could ask after.", [])],
}  # fmt: skip


def corpus(folder: Path, llm: ScriptedLlm | None = None, **settings: Any) -> Workspace:
    """The papers, passages and citations, with a model to ask where one is given."""
    endpoint = {"llm_url": llm.url, "llm_model": llm.model} if llm else {}
    place = Workspace(load_settings(**endpoint | {"data": folder, "draft_questions": 9, "_env_file": None} | settings))
    for month in (MARCH, MAY):
        papers = [text for text in TEXTS if text.startswith(f"{month[2:4]}{month[5:]}")]
        write_month(place, tables.PAPERS, month, [paper_row(paper) for paper in papers])
        write_month(place, tables.METADATA, month, [metadata_row(paper) for paper in papers])
        write_month(place, tables.PASSAGES, month, [row for paper in papers for row in passage_rows(paper)])
        cited = {QUILLNET: [("b1", FERNS), ("b2", "2405.00099"), ("b3", "2406.00001")]}
        citations = [_citation(paper, *item) for paper in papers for item in cited.get(paper, ())]
        write_month(place, tables.CITATIONS, month, citations)
    return place


def paper_row(paper: str) -> dict[str, Any]:
    authors = [{"name": name, "affiliations": places, "emails": []} for name, places in AUTHORS[paper]]
    return {"arxiv_id": paper, "title": TITLES[paper], "authors": authors, "categories": ["cs.CL"]}


def metadata_row(paper: str) -> dict[str, Any]:
    return {"arxiv_id": paper, "published": "2024-05-07" if paper == QUILLNET else None, "categories": ["cs.CL"]}


def passage_rows(paper: str, told: Sequence[Told] | None = None) -> list[dict[str, Any]]:
    return [
        {
            "passage_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{paper} {place}")), "arxiv_id": paper, "ordinal": place,
            "anchor": kind if kind in ("front_matter", "abstract") else f"S{place}.p1", "kind": kind,
            "title": TITLES[paper], "section_path": list(path), "text": text, "words": len(text.split()),
            "cited_keys": list(keys),
        }
        for place, (kind, path, text, keys) in enumerate(TEXTS[paper] if told is None else told)
    ]  # fmt: skip


def _citation(paper: str, key: str, cited: str) -> dict[str, Any]:
    citing = [row["passage_id"] for row in passage_rows(paper) if key in row["cited_keys"]]
    return {"citing": paper, "cited": cited, "keys": [key], "passage_ids": citing}


def drafter(asked: Asked) -> str | None:
    """A model that does as it is told: a claim for each passage, its first six words for evidence."""
    name = form_of(asked)
    if not name.startswith("Proposed"):
        return None
    shown = re.findall(r"Passage (\d+)(?: of paper (\d))?:\n<passage>\n(.*?)\n</passage>", asked.prompt, re.DOTALL)
    claims = [
        {"claim": f"Fact {number}.", "evidence": " ".join(text.split("\n", 1)[1].split()[:6])}
        | ({} if name == "Proposed" else {"paper": int(paper or 1)})
        for number, paper, text in shown
    ]
    return json.dumps({"answerable": "yes", "question": f"What of Fact {asked.digest % 9973}?", "claims": claims})


def saying(**changed: Any) -> Rule:
    """The same model, whose every answer is changed so."""

    def rule(asked: Asked) -> str | None:
        given = drafter(asked)
        return json.dumps(json.loads(given) | changed) if given else None

    return rule


def draft(place: Workspace, month: str = MAY) -> Outcome:
    """Have the questions of a month drafted."""
    return run_stage(QUESTION_DRAFTS, place, month)


def drafted(folder: Path, *rules: Rule, **settings: Any) -> Drafted:
    with ScriptedLlm(*rules or (drafter,)) as llm:
        place = corpus(folder, llm, **settings)
        draft(place)
    return place, llm


def drafts_of(place: Workspace, month: str = MAY) -> dict[tuple[str, str], dict[str, Any]]:
    """The month's rows by paper and kind."""
    rows = place.root.rows(tables.QUESTION_DRAFTS, month)
    found = {(row["papers"][0], row["kind"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def ledger_of(place: Workspace, month: str = MAY) -> list[tuple[str, str]]:
    """Subject and reason of what was left out, in order."""
    import pyarrow.parquet as pq

    rows = pq.read_table(place.root.ledger_file(QUESTION_DRAFTS.name, month)).to_pylist()
    return [(row["subject"], row["reason"]) for row in rows]
