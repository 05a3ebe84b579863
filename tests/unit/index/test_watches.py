"""Watches: their file, the papers that they list, and the messages about new ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from pipeline.engine.finish import finish_stage
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes, edge_folder
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.index.watches import read_watches, update_watches, watched_papers
from tests.unit.index.building import TEXTS, embed, write_month

WATCH = '[[watch]]\nname = "decoding"\nquery = "{query}"\n'


def load(workspace: Workspace) -> None:
    write_month(workspace)
    embed(workspace)
    run_stage(INDEX_RECEIPTS, workspace, "2024-03")


def with_watches(workspace: Workspace, text: str, webhook: str | None = None) -> Workspace:
    """The workspace under a file of watches."""
    file = Path(str(workspace.root.path)).parent / "watches.toml"
    file.write_text(text)
    url = SecretStr(webhook) if webhook else None
    return Workspace(workspace.settings.model_copy(update={"watches": file, "webhook_url": url}))


def test_new_papers_of_a_month_are_listed_and_reported_once(
    workspace: Workspace, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")
    load(workspace)
    watching = with_watches(workspace, WATCH.format(query=TEXTS[0]), httpserver.url_for("/hook"))
    new = update_watches(watching)
    paper = new[0]
    assert (paper.watch, paper.month, paper.arxiv_id) == ("decoding", "2024-03", "2403.00000")
    sent = [json.loads(request.data)["text"] for request, _ in httpserver.log]
    assert len(sent) == 1
    assert f"arXiv:{paper.arxiv_id}" in sent[0]
    listed = Path(str(workspace.root.path)) / "watches" / "2024-03.json"
    content = listed.read_bytes()
    assert update_watches(watching) == []
    assert (listed.read_bytes(), len(httpserver.log)) == (content, 1)
    assert watched_papers(watching.root, read_watches(watching.settings.watches)) == new

    other = WATCH.format(query=TEXTS[0]).replace("decoding", "again")
    both = with_watches(workspace, f"{WATCH.format(query=TEXTS[0])}\n{other}")
    assert {paper.watch for paper in update_watches(both)} == {"again"}


def test_a_month_that_is_loaded_is_listed_when_its_stage_is_finished(workspace: Workspace) -> None:
    watching = with_watches(workspace, WATCH.format(query=TEXTS[0]))
    load(watching)
    finish_stage(watching, INDEX_RECEIPTS)
    papers = watched_papers(watching.root, read_watches(watching.settings.watches))
    assert [paper.arxiv_id for paper in papers] == ["2403.00000"]


def test_without_an_index_the_lists_stay(workspace: Workspace) -> None:
    load(workspace)
    watching = with_watches(workspace, WATCH.format(query=TEXTS[0]))
    listed = update_watches(watching)
    close_indexes()
    shutil.rmtree(edge_folder(workspace))
    changed = with_watches(workspace, f"{WATCH.format(query=TEXTS[0])}limit = 5\n")
    assert update_watches(changed) == []
    assert watched_papers(changed.root, read_watches(changed.settings.watches)) == listed


def test_a_filter_that_no_paper_meets_lists_nothing(workspace: Workspace) -> None:
    load(workspace)
    text = WATCH.format(query=TEXTS[0]) + 'authors = ["Nobody"]\n'
    assert update_watches(with_watches(workspace, text)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[watch]]\nname = \n", "line 2"),
        (f"{WATCH}\nquerry = 1\n", r"line 5: querry: is not a key; the keys are name, query"),
        ("# none\n[[watch]]\nquery = 'x'\n", r"line 2: name: Field required"),
        (f"{WATCH}limit = 0\n", r"line 4: limit: "),
        (f"{WATCH}categories = ['c s']\n", r"line 4: categories: "),
        ("watch = [1]\n", "line 1: Input should be"),
        (f"{WATCH}{WATCH}", r"line 5: name: there are two watches 'decoding'"),
        ("[watches]\n", r"must hold tables \[\[watch\]\], not watches"),
    ],
)
def test_each_fault_of_the_file_is_named_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "w.toml"
    file.write_text(text)
    with pytest.raises(SettingError, match=rf"CITELOOM_WATCHES: .*w\.toml.*{message}"):
        read_watches(file)
