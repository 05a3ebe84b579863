"""Whether a stage names every setting that it reads, so that a change makes its month out of
date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import tables
from pipeline.engine.run import fingerprint, run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.evaluation.stages import SCORES
from pipeline.stages import LLM_STAGES
from pipeline.system_names import RELATED_WORK_SYSTEMS
from tests.models_file import write_models
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.citation_support.building import passage_rows
from tests.unit.evaluation.made_up import write_table
from tests.unit.related_work.building import write_corpus
from tests.unit.settings_read import NO_ROW, READ, Read

pytestmark = pytest.mark.slow

MONTH = "2024-05"
# Those on questions have a corpus of their own (tests/unit/answering/test_stages_stale.py).
RELATED_WORK = [stage for stage in LLM_STAGES if not stage.name.startswith(("answer", "question"))]


def named(stage: Stage, place: Workspace) -> set[str]:
    """What makes the stage's month out of date, or need not."""
    READ.clear()
    fingerprint(stage, place, MONTH)
    return READ | NO_ROW


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    with ScriptedLlm(models=("scripted", "first", "second")) as llm:
        given = {
            "models": write_models(tmp_path / "settings", llm.url, "first", "second"),
            "judges": "first,second",
        }
        given |= {"systems": ",".join(RELATED_WORK_SYSTEMS)}
        given |= {"dump_dir": tmp_path}  # the sample's own would bring its questions
        small = {
            "summary_repeats": 2,
            "repeated_tasks": 1,
            "chatcite_examples": 1,
            "chatcite_samples": 2,
        }
        settings = Read(
            llm_url=llm.url, llm_model="scripted", data=tmp_path, _env_file=None, **given, **small
        )  # type: ignore[call-arg, arg-type]
        place = Workspace(settings)
        write_corpus(place, {1: ["2403.00001", "2403.00002"]})
        write_table(
            place.root,
            tables.PASSAGES,
            "2024-03",
            [*passage_rows("2403.00001"), *passage_rows("2403.00002")],
        )
        yield place


def test_what_a_stage_reads_of_the_settings_can_put_its_month_out_of_date(place: Workspace) -> None:
    for stage in (*RELATED_WORK, SCORES):
        wanted = named(stage, place)
        READ.clear()
        assert run_stage(stage, place, MONTH).rows > 0, stage.name
        assert READ - wanted == set(), stage.name
