"""Data roots that the code of 2026-11-28 filled are continued: nothing is asked, embedded or loaded again."""

import subprocess
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.qdrant_server import running
from pipeline.storage.data_root import DataRoot
from pipeline.tables import ANSWER_SCORES
from tests.earlier.make import SETTINGS_OF_MODELS
from tests.processes import COMMAND, environment_without_settings
from tests.scripted_llm import ScriptedLlm

ARCHIVE = Path(__file__).parents[1] / "earlier" / "roots-2026-11-28.tar.xz"
# Pages are drawn again when their look changes. Receipts name the server's address, which is another one here. The default
# systems are without `extractive`: its rows leave these tables, and the rows of others are taken over. In `answers`, `passages`
# takes its place, which asks no model. Scores of answers are computed again, since `passages` is measured without grades.
# Tasks count works by their abstract too: the same rows here. `pages` is a table that these roots lack. Pages are read again, since
# titles and authors are those of metadata; passages that have not changed keep their vectors.
WITHOUT_EXTRACTIVE = {"summaries", "scores"}
OTHERS = {"related_work_tasks", "pages", "papers"}
RENEWED = {
    "demo": {"report", "answers", "answer_scores"} | OTHERS | WITHOUT_EXTRACTIVE,
    "models": {"report", "index_receipts", "answer_scores"} | OTHERS,
}

# The name now of what these roots call `arxivbot`.
SETTINGS = SETTINGS_OF_MODELS | {"CITELOOM_ANSWER_SYSTEMS": "arxivbot_fused,direct,wikichat"}


@pytest.fixture
def earlier(tmp_path):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def contents(root):
    return {
        file.relative_to(root): file.read_bytes()
        for file in root.rglob("*.parquet")
        if "cache" not in file.parts
    }


def run_again(root, **settings):
    """Run all months; the tables of which a month was written again, added or removed."""
    before = contents(root)
    environment = environment_without_settings() | settings | {"CITELOOM_DATA": str(root)}
    command = [COMMAND, "run", "--months", "all"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    changed = before.items() ^ contents(root).items()
    return {file.parts[file.parts[0] == "ledger"] for file, _ in changed}


def rows_of_other_systems(root):
    """The rows of these tables but for those of `extractive`, by file."""
    return {
        file: [row for row in pq.read_table(file).to_pylist() if row["system"] != "extractive"]
        for table in WITHOUT_EXTRACTIVE
        for file in (root / table).rglob("*.parquet")
    }


@pytest.mark.slow
def test_a_root_of_the_defaults_is_up_to_date(earlier):
    before = rows_of_other_systems(earlier / "demo")
    assert run_again(earlier / "demo") <= RENEWED["demo"]
    assert rows_of_other_systems(earlier / "demo") == before
    assert all(before.values())


@pytest.mark.slow
def test_a_root_with_models_and_a_server_sends_no_request_and_loads_no_point(
    earlier, qdrant_binary, monkeypatch
):
    monkeypatch.setenv("CITELOOM_TEST_QDRANT", str(qdrant_binary))
    collections = earlier / "qdrant" / "storage" / "collections"
    names = {folder.name for folder in collections.iterdir()}
    root = DataRoot(earlier / "models")
    scores = {month: root.rows(ANSWER_SCORES, month) for month in root.months(ANSWER_SCORES)}
    with running(earlier / "qdrant") as server, ScriptedLlm() as llm:
        changed = run_again(
            earlier / "models",
            **SETTINGS,
            CITELOOM_EMBEDDER_PATH=str(earlier / "tiny-m3"),
            CITELOOM_LLM_URL=llm.url,
            CITELOOM_QDRANT_URL=server.url,
            CITELOOM_QDRANT_GRPC_PORT=str(server.grpc_port),
        )
    assert llm.requests == []
    assert changed <= RENEWED["models"]
    assert {month: root.rows(ANSWER_SCORES, month) for month in scores} == scores
    assert "arxivbot_fused" in {row["system"] for row in scores["2024-05"]}
    assert {folder.name for folder in collections.iterdir()} == names
