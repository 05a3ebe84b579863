"""Months of tables, written as a stage leaves them."""

import uuid
from dataclasses import replace

from pipeline.corpus.passages.text import embedded_text
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.text import text_digest


def write_table(root, table, month, rows, *, file=None, **about):
    """Put a month of a table in place, or in another file; `about` are fields of its provenance."""
    made = Provenance(table.name, month, table.version, 1, "0", "made by a test", {}, {})
    with MonthWriter(table, file or root.file(table, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(replace(made, **about))


def passage_row(arxiv_id, place, title, path, text, *, kind="paragraph", anchor=None, cited=()):
    """A row of `passages`: the passage of a paper at a place, from 0."""
    return {
        "passage_id": passage_id(arxiv_id, place),
        "arxiv_id": arxiv_id,
        "ordinal": place,
        "anchor": anchor or f"S1.p{place}",
        "kind": kind,
        "title": title,
        "section_path": list(path),
        "text": text,
        "words": len(text.split()),
        "cited_keys": list(cited),
        "text_sha256": text_digest(embedded_text(title, path, text)),
    }


def passage_id(arxiv_id, place):
    """The id of the passage of `passage_row`."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{arxiv_id} {place}"))
