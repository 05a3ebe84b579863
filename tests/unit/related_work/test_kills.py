"""kill -9 at twenty moments of the stages that ask a model: what stands at the end, and what was asked twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.stages import LLM_STAGES
from pipeline.storage.provenance import read_provenance
from tests.llm_kills import asked, kill_and_finish
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace, write_corpus, write_month

PROJECT = Path(__file__).resolve().parents[3]
MONTH = "2024-05"
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002", "2403.00004"]}
KILLS = 20
SETTINGS: dict[str, Any] = {
    "systems": ",".join(tables.RELATED_WORK_SYSTEMS), "llm_concurrency": 6, "stability_tasks": 1,
    "stability_repeats": 2,
}  # fmt: skip
RUN = (
    "import json, sys\n"
    "from pipeline.stages import LLM_STAGES\n"
    "from pipeline.settings import load_settings\n"
    "from pipeline.engine.run import run_stage\n"
    "from pipeline.engine.stage import Workspace\n"
    "place = Workspace(load_settings(**json.loads(sys.argv[1]), _env_file=None))\n"
    f"for stage in LLM_STAGES: run_stage(stage, place, {MONTH!r})\n"
)


def prepared(llm: ScriptedLlm, folder: Path) -> Workspace:
    """A workspace with tasks, papers and passages, as the stages that ask a model find them."""
    place = workspace(llm, folder, **SETTINGS)
    write_corpus(place, TASKS)
    passages = [
        {"arxiv_id": f"2403.{i:05}", "passage_id": f"p{i}", "ordinal": 1, "kind": "paragraph", "text": f"Says {i}."}
        for i in range(1, 7)
    ]
    write_month(place, tables.PASSAGES, "2024-03", passages)
    return place


def start(place: Workspace, llm: ScriptedLlm) -> subprocess.Popen[bytes]:
    folders = {"data": str(place.root.path), "dump_dir": str(place.settings.dump_dir)}
    given = {**folders, "llm_url": llm.url, "llm_model": llm.model, **SETTINGS}
    return subprocess.Popen([sys.executable, "-c", RUN, json.dumps(given)], cwd=PROJECT)


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_change_no_row_and_repeat_only_what_was_in_flight(tmp_path: Path) -> None:
    # A token a sign: what the texts of one request share is then the same to the token, whichever asked for them.
    with ScriptedLlm(signs_a_token=1) as llm:
        undisturbed = prepared(llm, tmp_path / "undisturbed")
        for stage in LLM_STAGES:
            run_stage(stage, undisturbed, MONTH)
        needed = asked(llm)
    assert set(needed.values()) == {1}
    with ScriptedLlm(latency=0.02, signs_a_token=1) as llm:
        killed = prepared(llm, tmp_path / "killed")
        kill_and_finish(llm, lambda: start(killed, llm), needed, KILLS, SETTINGS["llm_concurrency"])
    for stage in (each for each in LLM_STAGES if not each.disabled_reason(killed.settings)):
        file, kept = (place.root.file(stage.table, MONTH) for place in (killed, undisturbed))
        assert file.read_bytes() == kept.read_bytes(), stage.name
        assert read_provenance(file).rows > 0, stage.name  # type: ignore[union-attr]
