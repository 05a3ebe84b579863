"""Small LaTeXML pages, zips and workspaces for the corpus tests."""

import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import tables
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.member import Member
from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.passages.stages import PAPER_COLUMNS, pack_batch
from pipeline.engine.stage import Workspace
from pipeline.identity.identifiers import normalize_arxiv_id
from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT, load_settings
from tests.month_tables import write_table

MONTH = "2024-03"


def page(body, title="A Page"):
    """A LaTeXML page around a body; no document title where `title` is empty."""
    heading = f'<h1 class="ltx_title ltx_title_document">{title}</h1>' if title else ""
    return (
        "<!DOCTYPE html><html><head><title>References</title></head><body><div"
        ' class="ltx_page_main"><article'
        f' class="ltx_document">{heading}{body}</article></div></body></html>'
    ).encode()


def byline(name):
    """A byline of one author."""
    person = f'<span class="ltx_personname">{name}</span>'
    creator = f'<span class="ltx_creator ltx_role_author">{person}</span>'
    return f'<div class="ltx_authors">{creator}</div>'


def para(text, anchor="S1.p1"):
    """A paragraph of running text."""
    return f'<div id="{anchor}" class="ltx_para"><p id="{anchor}.1" class="ltx_p">{text}</p></div>'


def section(content):
    """A section with its heading."""
    tag = '<span class="ltx_tag ltx_tag_section">1 </span>'
    head = f'<h2 class="ltx_title ltx_title_section">{tag}Methods</h2>'
    return f'<section id="S1" class="ltx_section">{head}{content}</section>'


def math(tex):
    """A formula as LaTeXML writes it: presentation, content and TeX, three times the same."""
    return (
        f'<math alttext="{tex}"'
        ' display="inline"><semantics><mi>x</mi><annotation-xml><ci>x</ci></annotation-xml><annotation'
        f' encoding="application/x-tex">{tex}</annotation></semantics></math>'
    )


def note(text):
    """A footnote in the middle of a sentence."""
    mark = '<sup class="ltx_note_mark">1</sup>'
    return (
        f'<span id="footnote1" class="ltx_note ltx_role_footnote">{mark}<span'
        f' class="ltx_note_outer"><span class="ltx_note_content">{mark}<span class="ltx_tag'
        f' ltx_tag_note">1</span>{text}</span></span></span>'
    )


def only_block(paper):
    """The one block of a page."""
    (block,) = paper.blocks
    return block


def write_zip(file, members, method=zipfile.ZIP_DEFLATED):
    """A zip with these members."""
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file


def put_loose(folder, path, content):
    """A page beside the zips of a dump."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def names(folder):
    """The paths of all files below a folder."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def dump_settings(dump, data=None, **overrides):
    """Settings over a dump; the data root lies within the dump unless one is given."""
    return load_settings(dump_dir=dump, data=data or Path(str(dump), "data"), **overrides)


def members_of(settings, month="2024-03"):
    """The pages of a month, as the dump lists them."""
    return [Member(**row) for row in read_dump(settings).pages(month).to_pylist()]


def pages_of(folder):
    """(name, content) of every page in a folder's zips."""
    pages = []
    for file in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(file) as archive:
            pages += [
                (name, archive.read(name)) for name in archive.namelist() if name.endswith(".html")
            ]
    return pages


def papers_of(dump):
    """Rows of the papers of a folder of zips, as far as their pages tell; a page whose name is no
    arXiv id is given one.
    """
    rows = []
    for number, (name, content) in enumerate(pages_of(dump)):
        with suppress(PageError):
            row = html.parse(content).as_row()
            arxiv_id = normalize_arxiv_id(Path(name).stem) or f"2403.{number:05}"
            about = {"arxiv_id": arxiv_id, "title": row["title"] or "", "categories": ["cs.IR"]}
            rows.append(row | about)
    return rows


def packed(rows):
    """What comes of a batch of these papers."""
    schema = pa.schema([tables.PAPERS.schema.field(name) for name in PAPER_COLUMNS])
    columns = [{name: row[name] for name in PAPER_COLUMNS} for row in rows]
    return pack_batch(pa.RecordBatch.from_pylist(columns, schema=schema))


def passages_of_sample(papers):
    """Paper → rows of its passages, for these papers of the sample corpus."""
    records = map(json.loads, SAMPLE_SNAPSHOT.read_text().splitlines())
    categories = {record["id"]: record["categories"].split() for record in records}
    rows = [
        row | {"categories": categories[row["arxiv_id"]]}
        for row in papers_of(SAMPLE_DUMP)
        if row["arxiv_id"] in papers
    ]
    passages = packed(rows).passages.to_pylist()
    return {paper: [row for row in passages if row["arxiv_id"] == paper] for paper in papers}


def workspace_for(folder, **overrides):
    """A workspace over the folders `dump`, which is made, and `data`."""
    (folder / "dump").mkdir(parents=True, exist_ok=True)
    return Workspace(dump_settings(folder / "dump", folder / "data", **overrides))


def put_metadata(workspace, *rows, month=MONTH):
    """Write a month of metadata; what a row does not say is that of a paper of cs.CL."""
    usual = dict.fromkeys(tables.METADATA.schema.names) | {
        "title": "From Metadata",
        "abstract": "Told by metadata.",
        "status": "present",
        "source": "snapshot",
        "categories": ["cs.CL"],
        "primary_category": "cs.CL",
    }
    write_table(workspace.root, tables.METADATA, month, [usual | row for row in rows])


def ledger(workspace, stage, month=MONTH, fields=("subject", "reason")):
    """These fields of all that a stage left out of a month."""
    rows = pq.read_table(workspace.root.ledger_file(stage, month)).to_pylist()
    return [tuple(row[field] for field in fields) for row in rows]
