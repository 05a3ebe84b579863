"""The estimate against what runs then do: calls exactly, tokens and time from what was seen."""

import contextlib
import json
from functools import partial

import pytest

from pipeline import tables
from pipeline.answering.stages import QUESTIONS
from pipeline.answering.systems import SYSTEMS
from pipeline.engine.run import run_stage
from pipeline.errors import MissingInput
from pipeline.llm.cache import CallCache
from pipeline.llm.messages import Spent
from pipeline.llm.rehearsal import ASSUMED_UNLIMITED
from pipeline.ops.estimate import estimate
from pipeline.related_work.chatcite import vote_tokens
from pipeline.settings import SAMPLE_DUMP
from pipeline.stages import LLM_STAGES
from tests.command import invoke
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import MARCH, build_corpus
from tests.unit.answering.scripted_answers import form_of
from tests.unit.answering.stage_runs import ASKING, BEAM, reading, staged, write_set
from tests.unit.evaluation.citation_support.building import passage_rows
from tests.unit.related_work.building import workspace, write_corpus

pytestmark = pytest.mark.slow

MONTH = "2024-05"
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002", "2403.00004"]}
SETTINGS = {
    "systems": "chatcite,zero_shot",
    "llm_price": "2/8",
    "judge_repeats": 1,
    "draft_tokens": 512,
    "element_tokens": 96,
}


@pytest.fixture
def llm():
    with ScriptedLlm() as endpoint:
        yield endpoint


@pytest.fixture
def place(llm, tmp_path):
    """A month of tasks that nothing was written for yet."""
    return with_tasks(llm, tmp_path)


def with_tasks(llm, folder, **changes):
    made = workspace(llm, folder, **SETTINGS | changes)
    write_corpus(made, TASKS)
    return made


def run_all(place):
    return [run_stage(stage, place, MONTH) for stage in LLM_STAGES]


@pytest.mark.parametrize(("samples", "votes", "kept"), [(3, 5, 2), (1, 1, 1), (2, 3, 4)])
def test_calls_are_those_that_the_run_then_makes(llm, tmp_path, samples, votes, kept):
    chosen = {"chatcite_samples": samples, "chatcite_votes": votes, "chatcite_kept": kept}
    place = with_tasks(llm, tmp_path, **chosen)
    found = estimate(place, [MONTH])
    assert llm.requests == []
    made = {outcome.stage: outcome.measured for outcome in run_all(place) if not outcome.disabled}
    assert list(made) == list(dict.fromkeys(part.stage for part in found.parts))
    for stage, measured in made.items():
        parts = [part for part in found.parts if part.stage == stage]
        calls = measured.get("llm_calls", 0)
        assert sum(part.calls for part in parts) == calls, stage
        assert sum(part.to_pay for part in parts) == calls - measured.get("llm_cached", 0), stage
    assert llm.generations == found.total().to_pay
    assert found.total().money > 0


def test_calls_without_a_longest_answer_are_those_of_the_run_and_have_an_assumed_length(
    llm, tmp_path
):
    systems = "chatcite,chatcite_no_incremental,few_shot"
    place = with_tasks(llm, tmp_path, draft_tokens=0, element_tokens=0, systems=systems)
    found = estimate(place, [MONTH])
    run_all(place)
    assert found.total().to_pay == llm.generations
    written = [part for part in found.parts if part.system]
    assert {part.completion_tokens / part.to_pay for part in written} == {ASSUMED_UNLIMITED}
    assert f"{ASSUMED_UNLIMITED} tokens where there is none" in found.notes[0]


def test_citations_of_sections_that_are_not_written_yet_are_counted(place):
    write_table(place.root, tables.PASSAGES, "2024-03", passage_rows("2403.00001"))
    found = estimate(place, [MONTH])
    (cost,) = [part for part in found.parts if part.stage == "citation_support"]
    assert cost.to_pay > 0


def test_what_is_done_or_answered_is_not_to_be_paid(place, llm, tmp_path):
    before = estimate(place, [MONTH]).total()
    twice = estimate(place, [MONTH, MONTH]).total()
    assert (twice.to_pay, twice.calls) == (before.to_pay, 2 * before.calls)
    run_all(place)
    done = estimate(place, [MONTH])
    assert (done.parts, done.total().seconds) == ((), 0)
    assert done.notes[0].startswith("there is nothing to pay")
    more = estimate(workspace(llm, tmp_path, **SETTINGS | {"chatcite_votes": 7}), [MONTH])
    by_name = {(part.stage, part.system): part for part in more.parts}
    assert ("key_elements", None) not in by_name
    assert by_name["summaries", "zero_shot"].to_pay == 0
    # The first round's samples and five of its seven votes are kept, with their real texts; what
    # comes after depends.
    chatcite = by_name["summaries", "chatcite"]
    assert 0 < chatcite.to_pay < chatcite.calls
    for file in (tmp_path / "cache" / "llm").iterdir():
        file.unlink()
    assert estimate(place, [MONTH]).total().to_pay == 0, "a month that is done needs no answers"


def see(place, bounds):
    """Let it be as if requests with these bounds on their answers had taken so many seconds."""
    with contextlib.closing(CallCache(place.cache("llm") / "calls.sqlite")) as cache:
        for bound, seconds in bounds.items():
            for number in range(5):
                request = {"model": "scripted", "max_tokens": bound}
                cache.write(f"{bound} {number}", request, {}, Spent(1, 100, 10), seconds)


def test_time_is_that_of_an_endpoint_that_is_always_in_full_use(llm, tmp_path):
    place = with_tasks(llm, tmp_path, llm_concurrency=1)
    settings = place.settings
    elements, judgement = 7 * settings.element_tokens + 200, 64 + 128 * 2
    see(place, {elements: 3.0, settings.draft_tokens: 2.0, vote_tokens(settings): 1.0})
    see(place, {judgement: 5.0})
    found = estimate(place, [MONTH])
    calls = {part.system or part.stage: part.to_pay for part in found.parts}
    drafts, votes = calls["chatcite"] - 5 * 5 + calls["zero_shot"], 5 * 5
    seconds = 3 * calls["key_elements"] + 2 * drafts + votes + 5 * 2
    assert found.total().seconds == pytest.approx(seconds)
    wide = estimate(workspace(llm, tmp_path, **SETTINGS, llm_concurrency=100), [MONTH])
    assert wide.total().seconds == pytest.approx(seconds / 100)
    assert "of the last 20 requests" in found.notes[0]


def test_a_month_without_tasks_says_what_to_run_first(llm, tmp_path):
    place = workspace(llm, tmp_path)
    with pytest.raises(MissingInput, match="--until tasks first"):
        estimate(place, [MONTH])
    write_corpus(place, TASKS)
    found = estimate(place, ["2024-03", MONTH])
    assert (found.months, found.not_ready) == ((MONTH,), ("2024-03",))
    assert any("2024-03" in note for note in found.notes)


def test_an_estimate_over_the_budget_says_so(llm, tmp_path):
    place = with_tasks(llm, tmp_path, llm_budget_calls=5, llm_budget_money=1000.0)
    over = [note for note in estimate(place, [MONTH]).notes if "BUDGET" in note]
    assert [note.split(":")[0] for note in over] == ["CITELOOM_LLM_BUDGET_CALLS is 5"]


def test_money_of_a_judge_alone_is_money_too(llm, tmp_path):
    file = write_models(tmp_path / "settings", llm.url, "judge", price="1/0")
    found = estimate(with_tasks(llm, tmp_path, models=file, judges="judge", llm_price=""), [MONTH])
    assert found.priced
    assert {part.stage for part in found.parts if part.money} == {"g_scores"}
    assert any("excludes scripted" in note for note in found.notes)


@pytest.fixture
def command(llm, tmp_path):
    """`citeloom estimate` of a month with tasks, run in this process."""
    write_corpus(workspace(llm, tmp_path), TASKS)
    (tmp_path / "dump").symlink_to(SAMPLE_DUMP)  # its months, and not its questions
    settings = {
        "CITELOOM_DATA": str(tmp_path),
        "CITELOOM_DUMP_DIR": str(tmp_path / "dump"),
        "CITELOOM_LLM_URL": llm.url,
        "CITELOOM_LLM_MODEL": llm.model,
        "COLUMNS": "160",
    }
    return partial(invoke, "estimate", "--months", MONTH, "--systems", "zero_shot", env=settings)


def test_the_command_prints_a_table_or_json_and_asks_nobody(command, llm):
    done = command()
    assert done.exit_code == 0, done.output
    # Key elements are not read by zero_shot.
    named = [word for word in ("g_scores", "summaries", "key_elements") if word in done.stdout]
    assert named == ["g_scores", "summaries"]
    printed = json.loads(command("--json").stdout)
    assert printed["months"] == [MONTH]
    assert printed["total"]["to_pay"] == sum(part["to_pay"] for part in printed["parts"])
    assert {part["system"] for part in printed["parts"]} == {"zero_shot", None}
    assert llm.requests == []


def asking_place(llm, folder, **settings):
    """A month of questions that are to be answered and graded, and nothing else that is asked."""
    corpus = build_corpus(folder / "data")
    place = staged(corpus, folder, llm, answer_candidates=4, **settings)
    write_table(place.root, tables.RELATED_WORK_TASKS, MARCH, [])
    run_stage(QUESTIONS, place, MARCH)
    return place


def as_assumed(asked):
    """A model that does what an estimate supposes: every hop is taken, a search made, three fifths
    of the most claims in each text.
    """
    own = f"It says {asked.digest % 9973}."
    one = {"sentences": [{"text": own, "claims": [1]}]}
    given = {
        "Query": {"query": own},
        "Search": {"search": "yes", "question": "", "query": own},
        "Thought": {"reasoning": own, "enough": False, "query": own},
        "GroundedAnswer": {"answered": "yes"} | one,
        "RefinedAnswer": dict.fromkeys(
            ("relevant", "natural", "non_repetitive", "temporally_correct"), 90
        )
        | one,
        "SplitClaims": {"claims": [f"{own} {place}" for place in range(5)]},
        "AnswerClaims": {"claims": [f"{own} {place}" for place in range(6)]},
        "Text": own,
    }.get(form_of(asked))
    return given if given is None or isinstance(given, str) else json.dumps(given)


def test_calls_of_answers_and_grades_are_those_of_a_model_that_does_as_supposed(tmp_path):
    with ScriptedLlm(as_assumed, reading) as llm:
        place = asking_place(llm, tmp_path, answer_systems=",".join(SYSTEMS))
        found = estimate(place, [MARCH])
        assert llm.requests == []
        outcomes = [run_stage(stage, place, MARCH) for stage in ASKING]
    for outcome in outcomes:
        parts = [part for part in found.parts if part.stage == outcome.stage]
        planned = sum(part.calls for part in parts), sum(part.answered for part in parts)
        assert planned == (outcome.measured["llm_calls"], outcome.measured["llm_cached"])
    assert found.total().to_pay == llm.generations
    assert {part.system for part in found.parts if part.calls} == {
        None,
        *(name for name, system in SYSTEMS.items() if system.calls_model),
    }


def test_a_writer_that_is_added_is_all_that_is_to_be_paid(tmp_path):
    with ScriptedLlm(models=("scripted", "large")) as llm:
        models = write_models(tmp_path / "settings", llm.url, "large")
        place = workspace(llm, tmp_path, **SETTINGS, models=models)
        write_corpus(place, TASKS)
        for stage in LLM_STAGES[:2]:
            run_stage(stage, place, MONTH)
        given = SETTINGS | {"systems": "chatcite,zero_shot,chatcite@large", "judge_repeats": 1}
        more = workspace(llm, tmp_path, **given, models=models)
        found = estimate(more, [MONTH])
        asked = llm.generations
        outcomes = [run_stage(stage, more, MONTH) for stage in LLM_STAGES[:3]]
    paid = [outcome.measured["llm_calls"] - outcome.measured["llm_cached"] for outcome in outcomes]
    written = {
        (part.stage, part.system, part.model): part.to_pay
        for part in found.parts
        if part.to_pay and part.stage in ("key_elements", "summaries")
    }
    assert written == {
        ("key_elements", None, "large"): paid[0],
        ("summaries", "chatcite", "large"): paid[1],
    }
    assert found.total().to_pay == llm.generations - asked


def test_questions_that_are_out_of_date_or_not_there_are_named(llm, tmp_path):
    place = asking_place(llm, tmp_path)
    write_set(tmp_path, BEAM)
    notes = estimate(place, [MARCH]).notes
    assert any(note.startswith("questions of 2024-03: out of date") for note in notes)
    place.root.file(tables.QUESTIONS, MARCH).unlink()
    with pytest.raises(MissingInput, match=r"no questions and tasks yet.*--until tasks"):
        estimate(place, [MARCH])
