"""Algorithm 1: how many calls, which drafts go on, what the trace keeps."""

import itertools
import re

import pytest

from pipeline.errors import SettingError
from pipeline.llm.client import open_client
from pipeline.llm.loop import run
from pipeline.related_work.chatcite import best_choices, chatcite, read_vote
from tests.cases import cases
from tests.planned_calls import beam_calls
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import beam, make_elements, make_task, prompts, workspace

SEARCH = beam(samples=3, votes=5, kept=2) | {"draft_tokens": 64}


def search_with(folder, references, search, *rules):
    with ScriptedLlm(*rules) as llm:
        place = workspace(llm, folder)
        # Less context than the settings allow, too.
        settings = place.settings.model_copy(update=search)

        async def write():
            async with open_client(place) as client:
                return await chatcite(
                    client, make_task(references), make_elements(references + 1), settings
                )

        return run(write()), llm, settings


def rounds(summary):
    return summary.trace["rounds"]


def is_vote(asked):
    return "The best choice is" in asked.prompt


def vote_for(*choices):
    """Votes in turn, by sample number."""
    return lambda asked: (
        f"So.\nThe best choice is {choices[asked.seed % len(choices)]}" if is_vote(asked) else None
    )


def test_fewer_drafts_than_are_kept_are_all_continued(tmp_path):
    search = SEARCH | beam(samples=1, votes=2, kept=3)
    summary, *_ = search_with(tmp_path, 4, search)
    assert [len(done["drafts"]) for done in rounds(summary)] == [1, 1, 1, 1]
    search = SEARCH | beam(samples=2, votes=1, kept=5)
    summary, _, settings = search_with(tmp_path, 4, search)
    assert [len(done["drafts"]) for done in rounds(summary)] == [2, 4, 8, 10]
    assert summary.spent.calls == beam_calls(4, settings) == 24 + 4


def test_the_first_step_continues_one_empty_draft_and_the_next_those_with_most_votes(tmp_path):
    summary, llm, _ = search_with(tmp_path, 2, SEARCH, vote_for(3, 3, 2, 3, 2))
    first, second = rounds(summary)
    assert [draft["parent"] for draft in first["drafts"]] == [0, 0, 0]
    assert (first["votes"], first["tallies"], first["kept"]) == ([3, 3, 2, 3, 2], [0, 2, 3], [3, 2])
    assert [draft["parent"] for draft in second["drafts"]] == [1, 1, 1, 2, 2, 2]
    asked = prompts(llm)
    assert sum("Begin the related-work section" in prompt for prompt in asked) == 1
    continued = {
        re.search(r"<related_work>\n(.*?)\n</related_work>", prompt, re.DOTALL)
        for prompt in asked
        if "Key elements of [Reference 2]" in prompt
    }
    survivors = {first["drafts"][choice - 1]["text"] for choice in first["kept"]}
    assert {match.group(1) for match in continued if match} == survivors
    assert summary.text == second["drafts"][second["kept"][0] - 1]["text"]


def test_of_equals_the_one_written_first_is_kept():
    assert best_choices([1, 2, 2, 0], 2) == (2, 3)
    assert best_choices([0, 0, 0], 2) == (1, 2)
    assert best_choices([1, 0, 1], 5) == (1, 3, 2)


def test_a_vote_that_cannot_be_read_is_an_abstention_and_counted(tmp_path):
    def rule(asked):
        answers = (
            "The best choice is 2",
            "I cannot say.",
            "The best choice is 9",
            "The best choice is {s}",
        )
        return answers[asked.seed % 4] if is_vote(asked) else None

    summary, *_ = search_with(tmp_path, 1, SEARCH | {"chatcite_votes": 4}, rule)
    (only,) = rounds(summary)
    assert only["votes"] == [2, None, None, None]
    assert only["abstentions"] == 3
    assert only["kept"][0] == 2


@cases("unit/related_work/cases.toml", "votes_are_read_with_tolerance", ("text", "choice"))
def test_votes_are_read_with_tolerance(text, choice):
    assert read_vote(text, 3) == choice


def test_drafts_with_the_same_text_are_not_continued_alike(tmp_path):
    def rule(asked):
        if "Begin the related-work section" in asked.prompt:
            return "Twice the same."
        return None

    summary, llm, settings = search_with(tmp_path, 2, SEARCH, rule)
    second = rounds(summary)[1]
    assert len({draft["text"] for draft in second["drafts"]}) == 6
    assert llm.generations == beam_calls(2, settings)


def test_a_small_context_cuts_and_says_so(tmp_path):
    def long_drafts(asked):
        return None if is_vote(asked) else "A long draft on [Reference 1]. " * 60

    summary, *_ = search_with(tmp_path, 2, SEARCH | {"llm_context": 900}, long_drafts)
    assert [done["cut"] for done in rounds(summary)] == [True, True]
    summary, *_ = search_with(tmp_path, 2, SEARCH)
    assert [done["cut"] for done in rounds(summary)] == [False, False]


def test_room_that_the_drafts_do_not_need_is_the_references(tmp_path):
    """The line on each reference is what the evaluator checks drafts against."""
    search, vote = SEARCH | beam() | {"llm_context": 2400}, vote_for(1)
    _, llm, _ = search_with(tmp_path, 40, search, lambda asked: vote(asked) or "Short.")
    last = [prompt for prompt in prompts(llm) if "[Reference 40] Reference title 40" in prompt][-1]
    assert "The best choice is" in last
    assert all(f"[Reference {n}] Reference title {n}." in last for n in range(1, 41))


def test_a_context_that_holds_no_prompt_is_a_wrong_setting(tmp_path):
    with pytest.raises(SettingError, match="context of 300 tokens: raise CITELOOM_LLM_CONTEXT"):
        search_with(tmp_path, 1, SEARCH | {"llm_context": 300})


def test_samples_share_one_prompt_and_the_target_comes_before_what_changes_in_every_prompt(
    tmp_path,
):
    _, llm, _ = search_with(tmp_path, 3, SEARCH | {"chatcite_votes": 4})
    # Of three steps the first continues one draft and the others two; a vote follows each.
    assert sorted(body.get("n", 1) for body in llm.requests) == [3] * 5 + [4] * 3
    for kind in ("Key elements of the target paper:", "Target paper summary:"):
        of_kind = [prompt for prompt in prompts(llm) if kind in prompt]
        shared = "".join(
            a
            for a, *rest in itertools.takewhile(
                lambda c: len(set(c)) == 1, zip(*of_kind, strict=False)
            )
        )
        assert "method 0" in shared
