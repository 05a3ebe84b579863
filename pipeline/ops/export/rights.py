"""Rights: which columns may be published, which licences allow it for a paper's text, and the terms
of an export.

Deny by default: a text column that is not named here is held back, so that a new column is not
published by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa

from pipeline.arxiv.snapshot import Snapshot
from pipeline.engine.stage import Workspace
from pipeline.tables import (
    EMBEDDINGS,
    METADATA,
    PAPERS,
    PASSAGES,
    REFERENCES,
    Table,
)


class Texts(StrEnum):
    """Whose text an export includes."""

    NONE = "none"
    OPEN = "open"
    """Text of papers under a licence that allows redistribution."""
    ALL = "all"
    """Text of all papers, of models and of people: not to be published."""


class Right(StrEnum):
    """Who may receive a column."""

    FREE = "free"
    """Ids, numbers and hashes, and what arXiv puts under CC0: may be published."""
    PAPER = "paper"
    """Text of the row's paper, or vectors of it: may be published if the paper's licence allows it.
    """
    RESTRICTED = "restricted"
    """Text of several papers, of models or of people, which no paper's licence covers."""


# Most words of a short text can be recovered from its dense vector (Morris et al., 2023,
# https://arxiv.org/abs/2310.06816); a sparse vector is its words by number.
_TEXT_OF_PAPER = {
    PAPERS.name: {"title", "abstract", "sections", "blocks", "bibliography"},
    PASSAGES.name: {"title", "section_path", "text"},
    REFERENCES.name: {"raw", "title", "authors", "venue"},
    EMBEDDINGS.name: {"dense", "sparse_ids", "sparse_weights", "colbert"},
}
# Columns without text, in any table. `metadata.authors` has names only; `papers.authors` has e-mail
# addresses too.
_WITHOUT_TEXT = frozenset({
    "arxiv_id", "passage_id", "query_id", "task_id", "question_id", "cited_arxiv_id", "cited",
    "papers", "key", "cited_keys", "citing", "keys", "passage_ids", "anchor", "doi",
    "text_sha256", "html_sha256", "ids_sha256", "sha256", "zip", "member", "subset", "categories",
    "primary_category", "kind", "title_source", "authors_source", "abstract_source", "grade",
    "grade_reasons", "kept", "losses", "resolved_by", "model", "judge", "system", "method",
    "form", "metric", "candidate_set", "order", "marks", "best", "cut", "source", "verdict",
    "unjudged", "varied", "outcome", "hops_shown", "date", "engine", "collection", "subject",
    "stage", "reason",
})  # fmt: skip
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)

# arXiv's licences that let anyone redistribute changed text (https://info.arxiv.org/help/license),
# and Apache-2.0, the licence of the sample corpus. Licences with NC or ND do not: the user may be a
# company, and passages with TeX in place of formulas are changed text.
OPEN_LICENCES = {
    "creativecommons.org/licenses/by/": "CC BY",
    "creativecommons.org/licenses/by-sa/": "CC BY-SA",
    "creativecommons.org/publicdomain/zero/": "CC0",
    "creativecommons.org/licenses/publicdomain": "public domain",
    "www.apache.org/licenses/license-2.0": "Apache-2.0",
}
"""Prefix of an address, lower case and without its scheme → name of the licence."""


def right_of(table: Table, column: pa.Field) -> Right:
    """Who may receive a column of a table."""
    if column.name in _TEXT_OF_PAPER.get(table.name, ()):
        return Right.PAPER
    if (
        table == METADATA
        or column.name in _WITHOUT_TEXT
        or any(is_number(column.type) for is_number in _NUMBERS)
    ):
        return Right.FREE
    return Right.RESTRICTED


def is_open(licence: str | None) -> bool:
    """Whether a licence, by its address, lets anyone redistribute the text, changed or not."""
    address = (licence or "").strip().lower().removeprefix("https://").removeprefix("http://")
    return address.startswith(tuple(OPEN_LICENCES))


def licences_of(workspace: Workspace, month: str) -> Mapping[str, str]:
    """arXiv id → address of the licence, for the month's papers whose licence is known.

    The table `metadata` does not hold licences; the snapshot does. A paper that OAI-PMH or the API
    has reported since the snapshot may have another licence now, so its licence is unknown, as is a
    withdrawn paper's.

    Raises MissingInput where the month has no metadata or the snapshot is gone, PermanentFailure
    where one of them cannot be read.
    """
    snapshot = Snapshot.of(workspace)
    if snapshot is None:
        return {}
    rows = workspace.root.iterate(METADATA, month, ["arxiv_id", "source", "status"])
    arxiv_ids = [
        row["arxiv_id"]
        for row in rows
        if row["source"] == "snapshot" and row["status"] == "present"
    ]
    return snapshot.licences(arxiv_ids)


_SAMPLE = (
    "The papers are the sample corpus of citeloom: people, systems and numbers in them are"
    " invented, arXiv has never given their ids, and they are under Apache-2.0."
)
_SOURCE = (
    "The pages come from the ar5iv data set of SIGMathLing, whose licence lets one compute on them"
    " and bars republishing them; pages of later months may be arXiv's own. Most papers are on"
    " arXiv under a licence that lets arXiv alone distribute them."
)
_METADATA = (
    "The table metadata is descriptive metadata, which arXiv puts under CC0 1.0: titles, abstracts,"
    " names of authors and the like, as arXiv has them. Ids, anchors, counts, hashes and measures"
    " hold no words of a page."
)
_AGREEMENT = (
    "An author's licence does not lift what you agreed to with SIGMathLing: settle with them that"
    " words of their pages may be published before you publish these."
)
_TEXTS = {
    Texts.NONE: (
        "No words of a page are in this export, and no vectors of them, which give words away."
        " Under these terms it may leave the machine."
    ),
    Texts.OPEN: (
        "Words and vectors are here of those papers alone whose own licence lets anyone pass them"
        f" on, also changed ({', '.join(OPEN_LICENCES.values())}); of all others they are null. The"
        " column license says which it is: the authors have to be named, and what is made of a"
        " paper under CC BY-SA stays under it. It is the licence of the newest version that the"
        " metadata snapshot knows; the page may be of an earlier one."
    ),
    Texts.ALL: (
        "DO NOT PUBLISH: this export holds words and vectors of every paper, whatever its licence,"
        " e-mail addresses of authors, and what models and people wrote about papers. It is for the"
        " machine that it was made on. The column license says under which licence a row's"
        " paper is."
    ),
}


def terms(texts: Texts, *, sample: bool) -> list[str]:
    """Paragraphs for the card and the command: what may be published. sample: whether this is the
    sample corpus.
    """
    source = [_SAMPLE] if sample else [_SOURCE, _METADATA]
    settle = [_AGREEMENT] if texts is Texts.OPEN and not sample else []
    return [*source, _TEXTS[texts], *settle]
