"""Tables of a run itself: the report's files, what a refresh changed, what was left out."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.table import COUNT, TEXT, TEXTS, Table, schema

REPORT = Table(
    "report",
    "one file of the month's report",
    schema(
        ("path", TEXT, "path below the data root"),
        ("bytes", COUNT, "size"),
        ("sha256", TEXT, "SHA-256 of the file"),
    ),
)
CHANGES = Table(
    "changes",
    "one paper as the last refresh left it, with what had changed since the one before",
    schema(
        ("arxiv_id", TEXT, "paper"),
        ("change", TEXT, "new, changed, withdrawn, removed (its page or its category went) or kept"),
        ("what", TEXTS, "of a changed paper: version, page, metadata, text (its passages)"),
        ("version_before", pa.int32(), "newest version known before; null where none was"),
        ("version", pa.int32(), "newest version known now; null where none is"),
        ("passages_added", COUNT, "passages, by id and text, that were not there before"),
        ("passages_removed", COUNT, "passages, by id and text, that are no more"),
        ("passages_kept", COUNT, "passages, by id and text, that were there before"),
        ("vectors_reused", COUNT, "of its passages, those of whose text the month had a vector of the same model"),
        ("html_sha256", TEXT, "SHA-256 of the page; null for a paper that is gone"),
        ("metadata_sha256", TEXT, "SHA-256 of what its metadata says, version and dates left aside"),
        ("passages_sha256", pa.binary(), "of each passage 12 bytes of the SHA-256 of id and text"),
        ("texts_sha256", pa.binary(), "of each passage the first 12 bytes of text_sha256, in the same order"),
    ),
)
LEDGER = Table(
    "ledger",
    "one thing left out",
    schema(
        ("subject", TEXT, "arXiv id, passage id or file"),
        ("stage", TEXT, "stage that left it out"),
        ("reason", TEXT, "reason, one of a few per stage"),
        ("detail", TEXT, "what exactly"),
    ),
)
