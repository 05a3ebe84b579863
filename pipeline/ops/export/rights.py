"""Which columns may leave the machine, and which licences let a paper's words be passed on.

Deny by default: a text column that nobody has named here counts as words, so that a column added to a table stays at
home until somebody has thought of it.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

from pipeline.tables import EMBEDDINGS, METADATA, PAPERS, PASSAGES, REFERENCES, RETRIEVAL_QUERIES, Table


class Texts(StrEnum):
    """Whose words an export holds."""

    NONE = "none"
    OPEN = "open"
    """Words of papers whose own licence lets them be passed on."""
    ALL = "all"
    """Words of all papers, of models and of people: for this machine alone."""


class Right(StrEnum):
    """What may be done with a column."""

    FREE = "free"
    """Ids, numbers and hashes, and what arXiv puts under CC0: may be published."""
    PAPER = "paper"
    """Words of the row's paper, or vectors of them: may be published where the paper's licence lets them."""
    HELD = "held"
    """Words of several papers, of models or of people, which no one paper's licence speaks for."""


# Dense vectors of a short text give most of its words back (Morris et al., 2023, https://arxiv.org/abs/2310.06816);
# sparse ones are its words by number.
_OF_THE_PAPER = {
    PAPERS.name: {"title", "abstract", "sections", "blocks", "bibliography"},
    PASSAGES.name: {"title", "section_path", "text"},
    REFERENCES.name: {"raw", "title", "authors", "venue"},
    EMBEDDINGS.name: {"dense", "sparse_ids", "sparse_weights", "colbert"},
    RETRIEVAL_QUERIES.name: {"text"},
}
# Of every table. Of authors `metadata` has the names; `papers.authors` has e-mail addresses as well, and is held.
_WORDLESS = frozenset(
    {
        "arxiv_id", "passage_id", "query_id", "task_id", "question_id", "cited_arxiv_id", "cited", "papers", "key",
        "cited_keys", "anchor", "doi", "text_sha256", "html_sha256", "ids_sha256", "sha256", "zip", "member", "subset",
        "categories", "primary_category", "kind", "title_source", "abstract_source", "grade", "grade_reasons", "kept",
        "losses", "resolved_by", "model", "judge", "system", "method", "form", "metric", "mode", "order", "marks",
        "best", "cut", "source", "verdict", "unjudged", "varied", "outcome", "hops_shown", "date", "engine",
        "collection", "subject", "stage", "reason",
    }
)  # fmt: skip
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)

# The licences of arXiv that allow passing on what was changed, by anyone (https://info.arxiv.org/help/license), and
# Apache-2.0, under which the sample corpus is. Not those with NC or ND: who exports may be a company, and passages
# with TeX in the place of formulas are changed.
OPEN_LICENCES = {
    "creativecommons.org/licenses/by/": "CC BY",
    "creativecommons.org/licenses/by-sa/": "CC BY-SA",
    "creativecommons.org/publicdomain/zero/": "CC0",
    "creativecommons.org/licenses/publicdomain": "public domain",
    "www.apache.org/licenses/license-2.0": "Apache-2.0",
}
"""Beginning of an address, without its scheme and in small letters → the licence's name."""


def right_of(table: Table, column: pa.Field) -> Right:
    """What may be done with a column of a table."""
    if column.name in _OF_THE_PAPER.get(table.name, ()):
        return Right.PAPER
    if table == METADATA or column.name in _WORDLESS or any(is_one(column.type) for is_one in _NUMBERS):
        return Right.FREE
    return Right.HELD


def is_open(licence: str | None) -> bool:
    """Whether a licence, given by its address, lets anyone pass on the paper's words, also changed."""
    address = (licence or "").strip().lower().removeprefix("https://").removeprefix("http://")
    return any(address.startswith(beginning) for beginning in OPEN_LICENCES)
