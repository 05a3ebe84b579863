"""Search: what it finds on Edge with MiniLM, what it restricts, and what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import tables
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.opening import open_index
from pipeline.index.passage_index import Layout
from pipeline.index.search import search
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.stages import Workspace, run_stage
from tests.unit.index.building import TEXTS, embed, make_point, make_workspace, write_month, write_table


@pytest.fixture
def loaded(workspace: Workspace) -> Workspace:
    write_month(workspace, "2024-03", TEXTS[:3], ["cs.CL"])
    write_month(workspace, "2024-05", TEXTS[3:], ["cs.IR", "stat.ML"])
    for month in ("2024-03", "2024-05"):
        embed(workspace, month)
        run_stage(INDEX_RECEIPTS, workspace, month)
    return workspace


def test_the_passage_that_answers_comes_first_with_its_text(loaded: Workspace) -> None:
    hits = search(loaded, "how do plants get energy from light?")
    assert hits[0].text == TEXTS[5]
    assert hits[0].url == f"https://arxiv.org/abs/{hits[0].arxiv_id}"
    assert hits[0].section_path == ("Method", "Decoding")
    assert (hits[0].month, hits[0].anchor) == ("2024-05", "S1.p2")
    assert len({hit.passage_id for hit in hits}) == len(TEXTS)


def test_a_rare_word_is_found_by_its_letters(loaded: Workspace) -> None:
    assert search(loaded, "untranslated", limit=1)[0].text == TEXTS[1]


@pytest.mark.parametrize(
    ("restriction", "months"),
    [
        ({"category": "cs.CL"}, {"2024-03"}),
        ({"category": "stat"}, {"2024-05"}),
        ({"category": "cs"}, {"2024-03", "2024-05"}),
        ({"category": "CS.cl"}, {"2024-03"}),
        ({"category": " Stat "}, {"2024-05"}),
        ({"category": "cs.CL", "first_month": "2024-04"}, set()),
        ({"first_month": "2024-04"}, {"2024-05"}),
        ({"last_month": "2024-03"}, {"2024-03"}),
        ({"first_month": "2024-06"}, set()),
        ({"kinds": ["table"]}, set()),
        ({"worst_grade": "B"}, set()),
        ({"worst_grade": "c"}, {"2024-03", "2024-05"}),
    ],
)
def test_a_search_is_restricted(loaded: Workspace, restriction: dict[str, str], months: set[str]) -> None:
    assert {hit.month for hit in search(loaded, "decoding words", **restriction)} == months  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "arguments", "message"),
    [
        ("  ", {}, "query is empty"),
        ("x", {"limit": 0}, "limit 0"),
        ("x", {"first_month": "March"}, "not a month"),
        ("caf\udce9", {}, "not valid UTF-8"),
        ("x", {"worst_grade": "E"}, "there is no grade E: give one of A, B, C, D"),
        ("x", {"category": " "}, "is not a category"),
        ("x", {"category": "cs."}, "is not a category"),
        ("x", {"category": "cs,stat"}, "is not a category"),
        ("x", {"first_month": "2024-05", "last_month": "2024-03"}, "backwards"),
    ],
)
def test_a_wrong_argument_is_named(workspace: Workspace, query: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        search(workspace, query, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("category", "message"),
    [
        ("math", "no passage is of the archive math; the index holds cs, stat"),
        ("cs.xx", "of cs, there are cs.CL, cs.I"),
    ],
)
def test_a_category_that_no_passage_has_is_named(loaded: Workspace, category: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        search(loaded, "decoding words", category=category)


def test_a_passages_table_with_broken_pages_is_named(loaded: Workspace) -> None:
    file = loaded.root.file(tables.PASSAGES, "2024-03")
    content = bytearray(file.read_bytes())
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    content[4:-footer] = bytes(len(content) - footer - 4)
    file.write_bytes(content)
    with pytest.raises(
        PermanentFailure, match=r"2024-03\.parquet cannot .* --months 2024-03 --select passages --force"
    ):
        search(loaded, TEXTS[0])


def test_searching_before_anything_is_indexed_makes_no_collection(workspace: Workspace) -> None:
    with pytest.raises(MissingInput, match=r"is not there: run citeloom run --months all --until index_receipts"):
        search(workspace, "anything")
    assert not (workspace.root.path / "qdrant-edge").exists()


def test_an_empty_collection_is_named(workspace: Workspace) -> None:
    open_index(workspace).ensure_collection(Layout(384, sparse_idf=True))
    with pytest.raises(MissingInput, match="is empty"):
        search(workspace, "anything")


def test_an_index_of_another_model_is_named(workspace: Workspace) -> None:
    index = open_index(workspace)
    index.ensure_collection(Layout(8, sparse_idf=True))
    index.upsert([make_point(1)])
    with pytest.raises(PermanentFailure, match=r"holds vectors of a model, and CITELOOM_EMBEDDER is all-MiniLM"):
        search(workspace, "anything")


def test_a_passage_that_left_its_table_is_left_out_with_a_warning(
    loaded: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    rows = loaded.root.rows(tables.PASSAGES, "2024-03")
    write_table(loaded, tables.PASSAGES, "2024-03", rows[1:])
    hits = search(loaded, TEXTS[0])
    assert TEXTS[0] not in [hit.text for hit in hits]
    assert "1 passages found are not in the passages table of 2024-03" in caplog.text


@pytest.mark.parametrize("name", ["", ".hidden", "a/b"])
def test_a_collection_name_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_COLLECTION"):
        open_index(make_workspace(tmp_path, qdrant_collection=name))
