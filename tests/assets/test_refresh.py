"""A refresh over the sample corpus: what is run for what changed, and what is told."""

import json
import uuid
import zipfile
from dataclasses import replace

import dagster as dg
import pytest

from pipeline import tables
from pipeline.definitions import defs
from pipeline.settings import SAMPLE_DUMP, SAMPLE_QUESTIONS
from pipeline.stages import CORPUS_STAGES, STAGES
from resources.services import LLM_BUDGET_TAG, LLM_TOKENS_TAG
from sensors.refresh import PART_TAG, STAGES_TAG, refreshed_months
from tests.assets.conftest import digests
from tests.fake_arxiv import deleted, error, raw, record

LAST, NEW = "2024-05", "2024-06"
ALL_PREPARED = [stage.name for stage in CORPUS_STAGES]


@pytest.fixture
def here(own, dump, oai, tmp_path):
    """A copy of the finished data root and of its dump, with an arXiv and an arXiv's pace of its
    own.
    """
    place = own.with_settings(dump_dir=dump, questions=SAMPLE_QUESTIONS, oai_url=oai.url)
    return replace(
        place, variables={**place.variables, "XDG_CACHE_HOME": str(tmp_path / "machine")}
    )


def page_of(arxiv_id):
    """A page of the sample corpus, as its zip has it."""
    for file in SAMPLE_DUMP.glob("*.zip"):
        with zipfile.ZipFile(file) as pages:
            for name in pages.namelist():
                if name.endswith(f"{arxiv_id}.html"):
                    return pages.read(name)
    raise LookupError(arxiv_id)


def put_page(dump, arxiv_id, content):
    """A loose page, which goes before one of the same paper in a zip."""
    file = dump / "no_problem" / arxiv_id[:4] / f"{arxiv_id}.html"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)


def revise_page(dump):
    """Give a paper of the last month another sentence."""
    page = page_of("2405.90001").replace(b"</p>", b" And a sentence that is new.</p>", 1)
    put_page(dump, "2405.90001", page)


def passages_of(place, month, *papers):
    rows = place.workspace().root.rows(tables.PASSAGES, month, ["arxiv_id"])
    return sum(not papers or row["arxiv_id"] in papers for row in rows)


def test_an_arxiv_that_does_not_answer_leaves_the_rest_to_be_done(here, oai):
    oai.script = [lambda request: error("badArgument")]
    told = here.told("refresh", exit_code=1)
    assert "badArgument" in told["harvest_failure"]
    assert told["failures"] == []


def test_what_changed_is_run_in_its_months_alone_and_told_exactly(here, dump, oai, llm):
    """A changed page, a new version, a withdrawn paper, a new month; then nothing; then what was
    left, in a budget.
    """
    passages, gone = passages_of(here, LAST), passages_of(here, LAST, "2405.90003")
    kept = {name: content for name, content in digests(here.root).items() if "summaries" in name}
    revise_page(dump)
    put_page(dump, "2406.90001", page_of("2405.90002"))
    authors = "Davit Melikyan, Roos van Aalderen, Chiamaka Eze, Matías Urrutia Ossa"
    oai.list = [
        [
            record("2405.90002", metadata=raw("2405.90002", versions=3, authors=authors)),
            deleted("2405.90003", "2024-11-10"),
        ],
        [record("2406.90001")],
    ]
    asked = llm.generations
    told = here.told("refresh")

    assert told["months"].keys() == {LAST, NEW}
    changed, new = told["months"][LAST], told["months"][NEW]
    papers = [changed[f"papers_{name}"] for name in ("new", "revised", "withdrawn", "removed")]
    assert papers == [0, 2, 1, 0]
    assert passages - passages_of(here, LAST) == gone
    assert changed["passages_removed"] - changed["passages_added"] == gone
    assert changed["vectors_made"] == changed["passages_added"] + changed["passages_changed"] > 0
    assert (new["papers_new"], new["passages_added"]) == (1, passages_of(here, NEW))
    assert told["changes"] == {name: changed[name] + new[name] for name in changed}

    assert {"key_elements", "summaries"} <= told["out_of_date"][LAST].keys()
    assert told["out_of_date"].keys() == {LAST}
    assert llm.generations == asked
    after = digests(here.root)
    assert {name: after[name] for name in kept} == kept
    (written,) = (here.root / "refreshes").glob("*.json")
    assert json.loads(written.read_text()) == {
        name: told[name] for name in told if not name.startswith("harvest")
    }

    with here.dagster() as instance:
        shown = instance.get_latest_materialization_event(dg.AssetKey("refresh_summary"))
    assert shown.asset_materialization.metadata["papers_revised"].value == 2

    again = here.told("refresh")
    assert (again["months"], again["out_of_date"]) == ({}, told["out_of_date"])
    assert again["harvest"]["requests"] == 2, "the two pages of the harvest, and nothing else"
    assert digests(here.root) == after

    short = here.told("refresh", "--no-harvest", "--llm-tokens", "10")
    assert short["over_budget"]
    assert short["out_of_date"] == told["out_of_date"]
    assert llm.generations == asked
    last = here.told("refresh", "--no-harvest", "--redo", "--llm-tokens", "5000000")
    assert (last["out_of_date"], last["not_made"], last["over_budget"]) == ({}, {}, [])
    assert llm.generations > asked
    assert not any(last["changes"].values()), "language models change no paper, passage or vector"


def test_the_schedule_starts_a_run_that_finds_the_months_and_the_sensor_their_runs(here, dump, oai):
    revise_page(dump)
    with here.entered(), dg.DagsterInstance.ephemeral() as instance:
        done = defs.resolve_job_def("find_changes").execute_in_process(instance=instance)
        (made,) = done.asset_materializations_for_node("arxiv_changes")
        (request,) = follow(here, instance, instance.get_run_by_id(done.run_id))
    told = [made.metadata[name].value for name in ("months", "months_due", "harvest/requests")]
    assert told == [[LAST], 1, 1]
    assert len(oai.asked) == 1
    assert (request.partition_key, request.job_name) == (LAST, "refresh_corpus")
    assert [key.path[-1] for key in request.asset_selection] == ALL_PREPARED
    assert request.tags[PART_TAG] == "corpus"
    assert request.tags[LLM_BUDGET_TAG] == f"refresh {done.run_id}"
    assert request.tags[STAGES_TAG].split(",") == [stage.name for stage in STAGES]
    (before,) = (here.root / "refreshes").glob("*.before.*")
    assert before.stem.endswith(LAST)


def follow(place, instance, run):
    """What the sensor answers to a run that succeeded."""
    (entry,) = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_SUCCESS)
    context = dg.build_run_status_sensor_context(
        "refreshed_months",
        entry.dagster_event,
        instance,
        run,
        resources={"workspace": place.workspace()},
    )
    return refreshed_months(context)


def run_of_refresh(instance, **about):
    """A run of a refresh, recorded as one that succeeded unless its status is given."""
    tags = {PART_TAG: "corpus", LLM_BUDGET_TAG: "refresh r1", "dagster/partition": LAST}
    tags |= about.pop("tags", {})
    run = dg.DagsterRun("refresh_corpus", str(uuid.uuid4()), tags=tags, **about)
    instance.add_run(run)
    if not about:
        success = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, run.job_name)
        instance.report_dagster_event(success, run_id=run.run_id)
    return run


@pytest.mark.parametrize(
    ("tokens", "in_use", "asks"),
    [(0, STAGES, False), (5000, STAGES, True), (5000, CORPUS_STAGES, False)],
)
def test_below_the_index_a_scheduled_refresh_asks_a_model_within_its_budget_for_stages_in_use(
    own, tokens, in_use, asks
):
    """A month whose questions and tasks are there, and whose answers were never made. Which stages
    were in use when the refresh began stands in its tags.
    """
    (own.root / "answers" / f"{LAST}.parquet").unlink()
    there = own.with_settings(refresh_llm_tokens=tokens)
    with there.entered(), dg.DagsterInstance.ephemeral() as instance:
        tags = {STAGES_TAG: ",".join(stage.name for stage in in_use)}
        (request,) = follow(there, instance, run_of_refresh(instance, tags=tags))
    assert request.job_name == ("refresh_corpus" if asks else "summarize_refresh")
    if asks:
        assert request.asset_selection[0].path[-1] == "answers"
        assert request.tags[LLM_TOKENS_TAG] == str(tokens)
        assert request.tags[LLM_BUDGET_TAG] == "refresh r1", (
            "one budget for all runs of the refresh"
        )


def test_a_scheduled_refresh_is_summarized_once_no_run_of_it_is_left(here, dump, oai):
    revise_page(dump)
    with here.entered(), dg.DagsterInstance.ephemeral() as instance:
        defs.resolve_job_def("find_changes").execute_in_process(instance=instance)
        other = run_of_refresh(instance, status=dg.DagsterRunStatus.STARTED)
        ended = run_of_refresh(instance, tags={PART_TAG: "downstream"})
        assert isinstance(follow(here, instance, ended), dg.SkipReason)
        instance.report_run_canceled(other)
        (request,) = follow(here, instance, ended)
        here.invoke("run", "--months", LAST, "--until", "passages")
        done = defs.resolve_job_def(request.job_name).execute_in_process(instance=instance)
        (made,) = done.asset_materializations_for_node("refresh_summary")
    (written,) = (here.root / "refreshes").glob("*.json")
    counted = json.loads(written.read_text())["months"][LAST]
    assert (counted["papers_revised"], counted["papers_new"]) == (1, 0)
    assert {name: made.metadata[name].value for name in counted} == counted
