"""What may leave the machine: columns and licences."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.ops.export.rights import Right, is_open, right_of
from pipeline.tables import EMBEDDINGS, METADATA, PAPERS, PASSAGES, TABLES

DOC = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "export.md"


@pytest.mark.parametrize(
    "licence",
    [
        "http://creativecommons.org/licenses/by/4.0/",
        "https://creativecommons.org/licenses/by/3.0/",
        "http://creativecommons.org/licenses/by-sa/4.0/",
        "http://creativecommons.org/publicdomain/zero/1.0/",
        "http://creativecommons.org/licenses/publicdomain/",
        "http://www.apache.org/licenses/LICENSE-2.0",
    ],
)
def test_a_licence_that_lets_anyone_pass_on_changed_words_is_open(licence: str) -> None:
    assert is_open(licence)


@pytest.mark.parametrize(
    "licence",
    [
        None,
        "",
        "http://arxiv.org/licenses/nonexclusive-distrib/1.0/",
        "http://arxiv.org/licenses/assumed-1991-2003/",
        "http://creativecommons.org/licenses/by-nc-sa/4.0/",
        "http://creativecommons.org/licenses/by-nc-nd/4.0/",
        "http://creativecommons.org/licenses/by-nd/4.0/",
        "http://example.org/creativecommons.org/licenses/by/4.0/",
        "by",
    ],
)
def test_any_other_licence_is_not_open(licence: str | None) -> None:
    assert not is_open(licence)


def test_a_text_column_that_nobody_has_thought_of_is_held() -> None:
    for kind in (
        pa.string(),
        pa.list_(pa.string()),
        pa.list_(pa.float32()),
        pa.binary(),
        pa.struct([("a", pa.int8())]),
    ):
        assert right_of(PASSAGES, pa.field("something_new", kind)) is Right.RESTRICTED
    assert right_of(PASSAGES, pa.field("something_counted", pa.int64())) is Right.FREE


def test_vectors_count_as_words() -> None:
    rights = {column.name: right_of(EMBEDDINGS, column) for column in EMBEDDINGS.schema}
    assert {name for name, right in rights.items() if right is Right.PAPER} == {
        "dense", "sparse_ids", "sparse_weights", "colbert",
    }  # fmt: skip


def test_all_that_arxiv_says_of_a_paper_is_free_and_addresses_of_authors_are_not() -> None:
    assert {right_of(METADATA, column) for column in METADATA.schema} == {Right.FREE}
    assert right_of(PAPERS, PAPERS.schema.field("authors")) is Right.RESTRICTED


def test_the_documentation_names_every_column_with_words_of_papers() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|$", DOC.read_text(), re.MULTILINE))
    found = {
        name: ", ".join(
            column.name for column in table.schema if right_of(table, column) is Right.PAPER
        )
        for name, table in TABLES.items()
    }
    assert told == {name: columns for name, columns in found.items() if columns}
