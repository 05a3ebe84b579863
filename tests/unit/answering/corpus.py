"""A small corpus with an index of its own: three papers of two months, two with front matter. Not
what is expected.
"""

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.settings import load_settings
from tests.month_tables import passage_row, write_table
from tests.unit.index.building import TEXTS, embed, make_workspace

MARCH, MAY = "2024-03", "2024-05"
QUILLNET, FERNS, UNSIGNED = "2403.00001", "2405.00001", "2403.00002"
TITLES = {
    QUILLNET: "QuillNet: Reading Margins",
    FERNS: "On Ferns",
    UNSIGNED: "A Paper Without Front Matter",
}


def build_corpus(folder):
    """The corpus, embedded and indexed."""
    workspace = make_workspace(folder)
    authors = {QUILLNET: [("Ada Quill", ["Nib University"]), ("Bo Vellum", [])], UNSIGNED: []}
    _month(workspace, MARCH, authors, {QUILLNET: TEXTS[:3], UNSIGNED: TEXTS[3:5]})
    _month(workspace, MAY, {FERNS: [("C. Frond", [])]}, {FERNS: TEXTS[5:]})
    listed = {
        "arxiv_id": QUILLNET,
        "authors": ["Ada Quill", "Bo Vellum"],
        "published": "2024-03-07",
        "categories": ["cs.CL", "cs.DL"],
    }
    write_table(workspace.root, tables.METADATA, MARCH, [listed])
    # Metadata knows two authors, of whom the page names one.
    others = {"arxiv_id": FERNS, "authors": ["C.  FROND", "Dora Moss"], "categories": ["cs.IR"]}
    write_table(workspace.root, tables.METADATA, MAY, [others])
    return workspace


def asking(corpus, llm, **settings):
    """The corpus with a model to ask."""
    given = {
        "data": corpus.root.path,
        "llm_url": llm.url,
        "llm_model": llm.model,
        "_env_file": None,
    }
    return Workspace(load_settings(**given | settings))


def _month(
    workspace,
    month,
    authors,
    texts,
):
    papers = [_paper(paper, month, people) for paper, people in authors.items()]
    write_table(workspace.root, tables.PAPERS, month, papers)
    rows = [row for paper in texts for row in _passages(paper, texts[paper])]
    write_table(workspace.root, tables.PASSAGES, month, rows)
    embed(workspace, month)
    run_stage(INDEX_RECEIPTS, workspace, month)


def _paper(paper, month, authors):
    return {
        "arxiv_id": paper,
        "subset": "no_problem",
        "title": TITLES[paper],
        "authors": [
            {"name": name, "affiliations": places, "emails": []} for name, places in authors
        ],
        "grade": "A",
        "categories": ["cs.CL", "cs.DL"],
        "primary_category": "cs.CL",
        "year": int(month[:4]),
    }


def _passages(paper, texts):
    front = [] if paper == UNSIGNED else [f"{TITLES[paper]} part {part}" for part in (1, 2)]
    rows = []
    for place, text in enumerate([*front, *texts]):
        path, kind, anchor = ["Method"], "paragraph", "S1.p1"
        if text in front:
            path, kind, anchor = [], "front_matter", "front_matter"
        rows.append(passage_row(paper, place, TITLES[paper], path, text, kind=kind, anchor=anchor))
    return rows
