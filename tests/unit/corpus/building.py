"""Small LaTeXML pages, zips and workspaces for the corpus tests."""

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq

from pipeline import tables
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.member import Member
from pipeline.corpus.parse import html
from pipeline.corpus.passages.packing import pack, with_ids
from pipeline.engine.stage import Workspace
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


def byline(names, notes=""):
    """A byline of one author, or of all."""
    notes = f'<span class="ltx_author_notes">{notes}</span>' if notes else ""
    creator = (
        '<span class="ltx_creator ltx_role_author"><span'
        f' class="ltx_personname">{names}</span>{notes}</span>'
    )
    return f'<div class="ltx_authors">{creator}</div>'


def para(text, anchor="S1.p1"):
    """A paragraph of running text."""
    return f'<div id="{anchor}" class="ltx_para"><p id="{anchor}.1" class="ltx_p">{text}</p></div>'


def section(content, title="Methods", number="1", anchor="S1", kind="section"):
    """A section with its heading."""
    tag = f'<span class="ltx_tag ltx_tag_{kind}">{number} </span>' if number else ""
    head = f'<h2 class="ltx_title ltx_title_{kind}">{tag}{title}</h2>'
    return f'<section id="{anchor}" class="ltx_{kind}">{head}{content}</section>'


def math(tex):
    """A formula as LaTeXML writes it: presentation, content and TeX, three times the same."""
    return (
        f'<math alttext="{tex}"'
        ' display="inline"><semantics><mi>x</mi><annotation-xml><ci>x</ci></annotation-xml><annotation'
        f' encoding="application/x-tex">{tex}</annotation></semantics></math>'
    )


def cite(*keys, before="[", after="]"):
    """A citation in brackets."""
    links = ", ".join(f'<a href="#{key}" class="ltx_ref">{key[-1]}</a>' for key in keys)
    return f'<cite class="ltx_cite">{before}{links}{after}</cite>'


def note(text, anchor="footnote1"):
    """A footnote in the middle of a sentence."""
    mark = '<sup class="ltx_note_mark">1</sup>'
    return (
        f'<span id="{anchor}" class="ltx_note ltx_role_footnote">{mark}<span'
        f' class="ltx_note_outer"><span class="ltx_note_content">{mark}<span class="ltx_tag'
        f' ltx_tag_note">1</span>{text}</span></span></span>'
    )


def bibitem(key, *blocks):
    """A bibliography item of some blocks."""
    spans = "".join(f'<span class="ltx_bibblock">{block} </span>' for block in blocks)
    return (
        f'<li id="{key}" class="ltx_bibitem"><span class="ltx_tag ltx_tag_bibitem">[1]</span>'
        f" {spans}</li>"
    )


def bibliography(*items):
    """A bibliography of some items."""
    head = '<h2 class="ltx_title ltx_title_bibliography">References</h2>'
    listed = f'<ul class="ltx_biblist">{"".join(items)}</ul>'
    return f'<section id="bib" class="ltx_bibliography">{head}{listed}</section>'


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


def passages_of_sample(papers):
    """Paper → rows of its passages, for these papers of the sample corpus, made from their pages."""
    records = map(json.loads, SAMPLE_SNAPSHOT.read_text().splitlines())
    categories = {record["id"]: record["categories"].split() for record in records}
    found = {}
    for name, content in pages_of(SAMPLE_DUMP):
        paper = Path(name).stem
        if paper in papers:
            row = html.parse(content).as_row()
            row |= {"arxiv_id": paper, "year": 2024, "categories": categories[paper]}
            own = {"arxiv_id": paper, "title": row["title"]}
            found[paper] = [
                {"passage_id": passage_id, "ordinal": ordinal, **own, **passage._asdict()}
                for ordinal, (passage_id, passage) in enumerate(with_ids(paper, pack(row)))
            ]
    return found


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
