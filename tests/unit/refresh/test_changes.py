"""The table `changes` and its pages over small made-up months."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.ops.refresh.stages import CHANGES, take_baseline
from pipeline.report.publish import write_overall_page
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter, Row
from pipeline.tables import Table
from tests.unit.evaluation.hostile import HOSTILE

MONTH = "2024-03"
EMPTY: Mapping[str, str] = {}
Texts = dict[str, Sequence[str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "dump").mkdir()
    return Workspace(load_settings(dump_dir=tmp_path / "dump", data=tmp_path / "data", metadata_snapshot=None))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(workspace: Workspace, table: Table, rows: Sequence[Row], **notes: Any) -> None:
    """A month of a table as its stage would leave it."""
    with MonthWriter(table, workspace.root.file(table, MONTH)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(Provenance(table.name, MONTH, table.version, 1, "test", "", {}, {}, notes=notes))


def write_corpus(
    workspace: Workspace, papers: Texts, withdrawn: Sequence[str] = (), titles: Mapping[str, str] = EMPTY
) -> None:
    """Papers with the texts of their passages, up to the index."""
    passages = [
        {"arxiv_id": name, "passage_id": f"{name}#{place}", "text_sha256": sha256(text), "text": text}
        for name, texts in papers.items()
        for place, text in enumerate(texts)
    ]
    told = {"version": 1, "status": "present", "title": "On it", "authors": [], "categories": ["cs.CL"]}
    metadata = [{**told, "arxiv_id": name, "title": titles.get(name, "On it")} for name in papers]
    metadata += [{**told, "arxiv_id": name, "status": "withdrawn"} for name in withdrawn]
    write(workspace, tables.METADATA, metadata)
    write(workspace, tables.PAPERS, [{"arxiv_id": n, "html_sha256": sha256("".join(t))} for n, t in papers.items()])
    write(workspace, tables.PASSAGES, passages)
    write_vectors(workspace, [passage["passage_id"] for passage in passages], "m")
    write(workspace, tables.INDEX_RECEIPTS, [{"collection": "c", "expected": len(passages)}])


def write_vectors(workspace: Workspace, passages: Sequence[str], model: str) -> None:
    write(workspace, tables.EMBEDDINGS, [{"passage_id": passage, "model": model} for passage in passages], model=model)


def tell(workspace: Workspace) -> Provenance:
    run_stage(CHANGES, workspace, MONTH)
    written = read_provenance(workspace.root.file(tables.CHANGES, MONTH))
    assert written is not None
    return written


def changes(workspace: Workspace) -> dict[str, str]:
    return {row["arxiv_id"]: row["change"] for row in workspace.root.rows(tables.CHANGES, MONTH)}


def test_a_month_is_told_of_against_how_the_last_refresh_left_it(workspace: Workspace) -> None:
    write_corpus(workspace, {"2403.00001": ["a", "b"], "2403.00002": ["c"], "2403.00003": ["d"]})
    first = tell(workspace).notes
    assert (first["papers_new"], first["passages_added"], first["vectors_made"]) == (3, 4, 4)
    write_corpus(workspace, {"2403.00001": ["a", "x"], "2403.00003": ["d"], "2403.00004": ["c"]}, ["2403.00002"])
    second = tell(workspace).notes
    assert changes(workspace) == {
        "2403.00001": "changed", "2403.00002": "withdrawn", "2403.00003": "kept", "2403.00004": "new",
    }  # fmt: skip
    counted = [second[f"passages_{name}"] for name in ("added", "removed", "kept")]
    assert (counted, second["vectors_reused"], second["vectors_made"]) == ([2, 2, 2], 3, 1)
    assert [each["papers_new"] for each in second["history"]] == [3, 1]
    write_corpus(workspace, {"2403.00001": ["a", "x"], "2403.00003": ["d"], "2403.00002": ["c"]})
    tell(workspace)
    assert changes(workspace)["2403.00002"] == "new", "a withdrawn paper that comes back"
    assert changes(workspace)["2403.00004"] == "removed"


def test_a_second_time_changes_no_byte_and_what_was_told_last_stays(workspace: Workspace) -> None:
    write_corpus(workspace, {"2403.00001": ["a"], "2403.00002": ["b"]})
    tell(workspace)
    write_corpus(workspace, {"2403.00001": ["a", "b"], "2403.00002": ["b"]})
    tell(workspace)
    files = [workspace.root.file(tables.CHANGES, MONTH), *(workspace.root.path / "reports" / "changes").iterdir()]
    before = [file.read_bytes() for file in files]
    assert state(CHANGES, workspace, MONTH) is State.DONE
    assert run_stage(CHANGES, workspace, MONTH).skipped
    run_stage(CHANGES, workspace, MONTH, force=True)
    assert [file.read_bytes() for file in files] == before
    (workspace.root.path / "reports" / "changes" / f"{MONTH}.html").unlink()
    run_stage(CHANGES, workspace, MONTH)
    assert [file.read_bytes() for file in files] == before


def test_a_month_that_no_refresh_told_of_is_compared_with_how_it_stands_before_its_run(workspace: Workspace) -> None:
    take_baseline(workspace, [MONTH])
    assert not workspace.root.file(tables.CHANGES, MONTH).exists(), "it has no table yet"
    write_corpus(workspace, {"2403.00001": ["a"], "2403.00002": ["b"]})
    take_baseline(workspace, [MONTH])
    assert set(changes(workspace).values()) == {"kept"}
    write_corpus(workspace, {"2403.00001": ["a"], "2403.00002": ["b"], "2403.00003": ["c"]})
    take_baseline(workspace, [MONTH])
    told = tell(workspace).notes
    assert (told["papers_new"], told["papers_kept"], told["vectors_reused"]) == (1, 2, 2)
    assert len(told["history"]) == 1


def test_another_embedding_model_reuses_no_vector(workspace: Workspace) -> None:
    write_corpus(workspace, {"2403.00001": ["a"]})
    tell(workspace)
    write_vectors(workspace, ["2403.00001#0"], "another")
    told = tell(workspace).notes
    assert (told["vectors_reused"], told["vectors_made"], told["papers_kept"]) == (0, 1, 1)


def _page_of(workspace: Workspace, papers: Texts) -> str:
    """The month's page once all titles are harmless, and other than they were."""
    write_corpus(workspace, papers, titles=dict.fromkeys(papers, "On something else"))
    tell(workspace)
    return (workspace.root.path / "reports" / "changes" / f"{MONTH}.html").read_text()


def _elements(page: str) -> set[str]:
    return set(re.findall(r"<(/?\w+)", page.partition("</style>")[2]))


def test_the_pages_show_changes_and_obey_no_title(workspace: Workspace) -> None:
    titles = {f"2403.{number:05}": title for number, title in enumerate(HOSTILE)}
    papers: Texts = {name: ["a"] for name in titles}
    write_corpus(workspace, papers)
    tell(workspace)
    write_corpus(workspace, papers, titles=titles)
    tell(workspace)
    page = (workspace.root.path / "reports" / "changes" / f"{MONTH}.html").read_text()
    harmless = _page_of(workspace, papers)
    assert _elements(page) == _elements(harmless)
    assert page.count('<a class="id"') == len(HOSTILE)
    assert f"{len(HOSTILE)} papers of March 2024 changed" in page
    overview = (workspace.root.path / "reports" / "changes" / "index.html").read_text()
    assert f'href="{MONTH}.html"' in overview
    write_overall_page(workspace)
    assert 'href="changes/index.html"' in (workspace.root.path / "reports" / "index.html").read_text()
