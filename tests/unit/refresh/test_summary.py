"""Which stages a refresh may run without a language model, what it may spend, and its summary over small
made-up months.
"""

import hashlib
import json
from dataclasses import asdict

import pytest

from pipeline import tables
from pipeline.engine.run_stats import StageTiming, note_timing
from pipeline.ops.refresh.plan import token_limit
from pipeline.ops.refresh.summary import (
    ChangeCounts,
    as_json,
    last_refresh,
    record_keys,
    summarize,
    summary_file,
    unfinished_refresh,
)
from pipeline.settings import load_settings
from pipeline.stages import CORPUS_STAGES, LLM_STAGES, STAGES
from tests.cases import cases
from tests.month_tables import write_table
from tests.workspaces import make_workspace

MONTH = "2024-03"
ONE, TWO, THREE = (f"2403.0000{number}" for number in range(1, 4))


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "dump").mkdir()
    return make_workspace(tmp_path / "data", dump_dir=tmp_path / "dump", metadata_snapshot=None)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write_corpus(workspace, papers, withdrawn=(), versions=1):
    """Papers with the texts of their passages, up to the vectors."""
    passages = [
        {"arxiv_id": name, "passage_id": f"{name}#{place}", "text_sha256": sha256(text)}
        for name, texts in papers.items()
        for place, text in enumerate(texts)
    ]
    metadata = [{"arxiv_id": name, "version": versions, "status": "present"} for name in papers]
    metadata += [
        {"arxiv_id": name, "version": versions, "status": "withdrawn"} for name in withdrawn
    ]
    write_table(workspace.root, tables.METADATA, MONTH, metadata)
    write_table(
        workspace.root,
        tables.PAPERS,
        MONTH,
        [{"arxiv_id": n, "html_sha256": sha256("".join(t))} for n, t in papers.items()],
    )
    write_table(workspace.root, tables.PASSAGES, MONTH, passages)
    write_table(workspace.root, tables.EMBEDDINGS, MONTH, passages)


def note_encoded(workspace, vectors, seconds):
    note_timing(
        workspace.root, "embeddings", MONTH, StageTiming("f", seconds, {"encoded": vectors})
    )


def summary_of(workspace):
    return summarize(workspace, last_refresh(workspace.root), {}, [])


def counted(summary):
    """What changed in the month, without zeros."""
    return {name: count for name, count in asdict(summary.months[MONTH]).items() if count}


@cases("unit/refresh/changes.toml")
def test_a_month_is_compared_with_that_before_the_run(workspace, case):
    if case["before"]:
        write_corpus(workspace, case["before"])
        note_encoded(workspace, 4, 1.5)
    record_keys(workspace, [MONTH])
    if case["after"]:
        write_corpus(workspace, **case["after"])
        note_encoded(workspace, case.get("encoded", 0), 2.5)
    summary = summary_of(workspace)
    assert counted(summary) == case["counted"]
    assert summary.changes == summary.months.get(MONTH, ChangeCounts())
    written = json.loads(summary_file(workspace.root, summary.started).read_bytes())
    assert written == as_json(summary)


def test_a_refresh_that_was_killed_is_continued_by_the_next_and_both_have_one_summary(workspace):
    write_corpus(workspace, {ONE: ["a"]})
    record_keys(workspace, [MONTH])
    killed = unfinished_refresh(workspace.root)
    write_corpus(workspace, {ONE: ["a"], TWO: ["b"]})
    record_keys(workspace, [MONTH])
    assert unfinished_refresh(workspace.root) == killed != ""
    write_corpus(workspace, {ONE: ["a"], TWO: ["b"], THREE: ["c"]})
    assert counted(summary_of(workspace)) == {"papers_new": 2, "passages_added": 2}
    assert unfinished_refresh(workspace.root) == ""


def test_a_new_refresh_counts_from_its_own_start(workspace):
    record_keys(workspace, [MONTH])
    write_corpus(workspace, {ONE: ["a"]})
    earlier = summary_of(workspace)
    folder = workspace.root.path / "refreshes"
    for file in list(folder.iterdir()):  # as a month ago
        file.rename(folder / file.name.replace(earlier.started, "2001-01-01T000000Z"))
    record_keys(workspace, [MONTH])
    summary = summary_of(workspace)
    assert counted(summary) == {}
    assert {file.name for file in folder.iterdir()} == {
        "2001-01-01T000000Z.json",
        f"{summary.started}.json",
        f"{summary.started}.before.{MONTH}.parquet",
    }


def test_where_nothing_was_run_no_summary_is_written(workspace):
    summary = summarize(workspace, unfinished_refresh(workspace.root), {}, [])
    assert (summary.months, summary.changes) == ({}, ChangeCounts())
    assert not (workspace.root.path / "refreshes").exists()


def test_what_is_left_out_of_date_and_what_ended_by_the_budget_is_listed(workspace):
    left = [stage for stage in STAGES if stage.name in ("summaries", "scores", "answers")]
    write_table(workspace.root, tables.SUMMARIES, MONTH, [{"task_id": "t"}])
    failures = [
        ("summaries", MONTH, "the LLM budget of this run is reached: …"),
        ("papers", MONTH, "no"),
    ]
    summary = summarize(workspace, "", {MONTH: left}, failures)
    assert summary.out_of_date == {MONTH: {"summaries": 1}}
    assert summary.not_made == {MONTH: ["answers"]}
    assert summary.over_budget == [("summaries", MONTH)]
    assert summary.failures == [("papers", MONTH, "no")]


def test_the_stages_of_the_corpus_ask_no_model_and_read_nothing_of_one():
    prepared = {stage.name for stage in CORPUS_STAGES}
    assert {"index_receipts", "related_work_tasks", "questions"} <= prepared
    assert prepared.isdisjoint(stage.name for stage in LLM_STAGES)
    assert {table.name for stage in CORPUS_STAGES for table in stage.upstream} <= prepared
    assert {"scores", "report"} <= {stage.name for stage in STAGES} - prepared


@cases(
    "unit/refresh/cases.toml", "a_refresh_may_spend_the_lesser_of_its", ["refresh", "run", "most"]
)
def test_a_refresh_may_spend_the_lesser_of_its_budget_and_the_runs(refresh, run, most):
    assert token_limit(load_settings(refresh_llm_tokens=refresh, llm_budget_tokens=run)) == most
