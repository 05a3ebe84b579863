"""SIGKILL at moments spread over the stages that call a model: no row changes, only calls in flight are repeated."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.index import close_indexes
from pipeline.stages import LLM_STAGES
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering import staging
from tests.unit.answering.corpus import MARCH, build_corpus
from tests.unit.related_work.building import workspace, write_corpus, write_month

PROJECT = Path(__file__).resolve().parents[2]
SECONDS_TO_END = 300
RUN = (
    "import json, sys\n"
    "from pipeline.engine.run import run_stage\n"
    "from pipeline.engine.stage import Workspace\n"
    "from pipeline.settings import load_settings\n"
    "from pipeline.stages import choose_stages\n"
    "settings, month, stages = json.loads(sys.argv[1])\n"
    "for stage in choose_stages(select=stages):\n"
    "    run_stage(stage, Workspace(load_settings(**settings, _env_file=None)), month)\n"
)


@dataclass(frozen=True)
class Run:
    """Stages of a month in a data root of their own. folders: the settings that name its files."""

    place: Workspace
    month: str
    stages: Sequence[Stage]
    settings: Mapping[str, Any]
    folders: Mapping[str, str]

    def finish(self) -> None:
        for stage in self.stages:
            run_stage(stage, self.place, self.month)

    def start(self, llm: ScriptedLlm) -> subprocess.Popen[bytes]:
        """The same in a process of its own."""
        given = {**self.folders, "llm_url": llm.url, "llm_model": llm.model, **self.settings}
        arguments = json.dumps([given, self.month, [stage.name for stage in self.stages]])
        return subprocess.Popen([sys.executable, "-c", RUN, arguments], cwd=PROJECT)

    def contents(self) -> dict[str, bytes]:
        return {stage.name: self.place.root.file(stage.table, self.month).read_bytes() for stage in self.stages}


def related_work_run(llm: ScriptedLlm, folder: Path) -> Run:
    """Tasks with papers and passages, written by every system."""
    settings = {
        "systems": ",".join(tables.RELATED_WORK_SYSTEMS), "llm_concurrency": 6, "stability_tasks": 1,
        "stability_repeats": 2,
    }  # fmt: skip
    place = workspace(llm, folder, **settings)
    write_corpus(place, {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002", "2403.00004"]})
    passages = [
        {"arxiv_id": f"2403.{i:05}", "passage_id": f"p{i}", "ordinal": 1, "kind": "paragraph", "text": f"Says {i}."}
        for i in range(1, 7)
    ]
    write_month(place, tables.PASSAGES, "2024-03", passages)
    stages = [stage for stage in LLM_STAGES if not stage.disabled_reason(place.settings)]
    folders = {"data": str(place.root.path), "dump_dir": str(place.settings.dump_dir)}
    return Run(place, "2024-05", stages, settings, folders)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    yield build_corpus(tmp_path_factory.mktemp("corpus") / "data")
    close_indexes()


def answering_run(corpus: Workspace, llm: ScriptedLlm, folder: Path) -> Run:
    """A question set over a copy of the corpus, answered and graded."""
    settings = {"llm_concurrency": 4, "grade_controls": 1}
    place = staging.staged(corpus, folder, llm, **settings)
    folders = {"data": str(place.root.path), "questions": str(place.settings.questions)}
    return Run(place, MARCH, staging.STAGES, settings, folders)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "kills"), [("related work", 20), ("answers", 10)])
def test_kills_change_no_row_and_repeat_only_calls_in_flight(
    corpus: Workspace, tmp_path: Path, kind: str, kills: int
) -> None:
    def prepare(llm: ScriptedLlm, name: str) -> Run:
        folder = tmp_path / name
        return related_work_run(llm, folder) if kind == "related work" else answering_run(corpus, llm, folder)

    # A token for each sign: what the texts of one request share is then the same to the token.
    with ScriptedLlm(signs_a_token=1) as llm:
        undisturbed = prepare(llm, "undisturbed")
        undisturbed.finish()
        needed = llm.requested_texts()
    close_indexes()
    assert set(needed.values()) == {1}
    with ScriptedLlm(latency=0.02, signs_a_token=1) as llm:
        killed = prepare(llm, "killed")
        close_indexes()
        kill_and_finish(llm, killed, needed, kills)
    assert killed.contents() == undisturbed.contents()
    for stage in killed.stages:
        assert killed.place.root.rows(stage.table, killed.month), stage.name


def kill_and_finish(llm: ScriptedLlm, run: Run, needed: Counter[str], kills: int) -> None:
    """Kill a run so many times, each after some more texts, then let it end."""
    cut_short = 0
    for moment in range(kills):
        process = run.start(llm)
        texts = max(len(llm.requested_texts()) + 1, len(needed) * moment // kills)
        # The number of texts first, since to count which they are takes a while.
        while process.poll() is None and (llm.generations < texts or len(llm.requested_texts()) < texts):
            time.sleep(0.005)
        cut_short += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert run.start(llm).wait(SECONDS_TO_END) == 0
    requested = llm.requested_texts()
    assert cut_short >= kills - 2  # on a busy machine the last runs may end before they are killed
    assert requested.keys() == needed.keys()
    assert requested.total() - len(requested) <= kills * run.settings["llm_concurrency"]
    assert llm.at_once <= run.settings["llm_concurrency"]
