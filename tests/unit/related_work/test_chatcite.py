"""Algorithm 1: how many calls, which drafts go on, what the trace keeps."""

import re

import pytest

from pipeline.errors import SettingError
from pipeline.llm.client import open_client
from pipeline.llm.loop import run
from pipeline.related_work.chatcite import best_choices, chatcite, read_vote
from tests.cases import cases_beside
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import beam, make_elements, make_task, prompts, workspace

SEARCH = beam(samples=3, votes=5, kept=2) | {"draft_tokens": 64}


def search_with(folder, references, search, *rules):
    """What the search writes, and the endpoint that it asked."""
    with ScriptedLlm(*rules) as llm:
        place = workspace(llm, folder)
        # Less context than the settings allow, too.
        settings = place.settings.model_copy(update=search)
        task, elements = make_task(references), make_elements(references + 1)

        async def write():
            async with open_client(place) as client:
                return await chatcite(client, task, elements, settings)

        return run(write()), llm


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
    summary, _ = search_with(tmp_path, 4, SEARCH | beam(samples=2, votes=1, kept=5))
    assert [len(done["drafts"]) for done in rounds(summary)] == [2, 4, 8, 10]


def test_the_first_step_continues_one_empty_draft_and_the_next_those_with_most_votes(tmp_path):
    summary, llm = search_with(tmp_path, 2, SEARCH, vote_for(3, 3, 2, 3, 2))
    first, second = rounds(summary)
    parents = [[draft["parent"] for draft in done["drafts"]] for done in (first, second)]
    assert parents == [[0, 0, 0], [1, 1, 1, 2, 2, 2]]
    assert (first["votes"], first["tallies"], first["kept"]) == ([3, 3, 2, 3, 2], [0, 2, 3], [3, 2])
    asked = prompts(llm)
    assert sum("Begin the related-work section" in prompt for prompt in asked) == 1
    continued = [prompt for prompt in asked if "Key elements of [Reference 2]" in prompt]
    shown = re.findall(r"<related_work>\n(.*?)\n</related_work>", "\n".join(continued), re.DOTALL)
    assert set(shown) == {first["drafts"][choice - 1]["text"] for choice in first["kept"]}
    assert summary.text == second["drafts"][second["kept"][0] - 1]["text"]


def test_of_equals_the_one_written_first_is_kept():
    assert best_choices([1, 2, 2, 0], 2) == (2, 3)
    assert best_choices([0, 0, 0], 2) == (1, 2)
    assert best_choices([1, 0, 1], 5) == (1, 3, 2)


def test_a_vote_that_cannot_be_read_is_an_abstention_and_counted(tmp_path):
    rule = vote_for(2, "none", 9, "{s}")
    summary, _ = search_with(tmp_path, 1, SEARCH | {"chatcite_votes": 4}, rule)
    (only,) = rounds(summary)
    assert only["votes"] == [2, None, None, None]
    assert (only["abstentions"], only["kept"][0]) == (3, 2)


@cases_beside("text", "choice")
def test_votes_are_read_with_tolerance(text, choice):
    assert read_vote(text, 3) == choice


def test_drafts_with_the_same_text_are_not_continued_alike(tmp_path):
    def rule(asked):
        return "Twice the same." if "Begin the related-work section" in asked.prompt else None

    summary, llm = search_with(tmp_path, 2, SEARCH, rule)
    assert len({draft["text"] for draft in rounds(summary)[1]["drafts"]}) == 6
    assert llm.generations == 19


@pytest.mark.parametrize(("context", "is_cut"), [({"llm_context": 900}, True), ({}, False)])
def test_a_small_context_cuts_and_says_so(tmp_path, context, is_cut):
    def long_drafts(asked):
        return None if is_vote(asked) else "A long draft on [Reference 1]. " * 60

    summary, _ = search_with(tmp_path, 2, SEARCH | context, long_drafts)
    assert [done["cut"] for done in rounds(summary)] == [is_cut] * 2


def test_room_that_the_drafts_do_not_need_is_the_references(tmp_path):
    """The line on each reference is what the evaluator checks drafts against."""
    search, vote = SEARCH | beam() | {"llm_context": 2400}, vote_for(1)
    _, llm = search_with(tmp_path, 40, search, lambda asked: vote(asked) or "Short.")
    last = [prompt for prompt in prompts(llm) if "[Reference 40] Reference title 40" in prompt][-1]
    assert "The best choice is" in last
    assert all(f"[Reference {n}] Reference title {n}." in last for n in range(1, 41))


def test_a_context_that_holds_no_prompt_is_a_wrong_setting(tmp_path):
    with pytest.raises(SettingError, match="context of 300 tokens: raise CITELOOM_LLM_CONTEXT"):
        search_with(tmp_path, 1, SEARCH | {"llm_context": 300})


def test_samples_share_one_prompt_and_the_target_comes_before_what_changes_in_every_prompt(
    tmp_path,
):
    _, llm = search_with(tmp_path, 3, SEARCH | {"chatcite_votes": 4})
    # Of three steps the first continues one draft and the others two; a vote follows each.
    assert sorted(body.get("n", 1) for body in llm.requests) == [3] * 5 + [4] * 3
    for kind in ("Key elements of the target paper:", "Target paper summary:"):
        of_kind = [prompt for prompt in prompts(llm) if kind in prompt]
        (shared,) = {prompt.partition("method 0")[:2] for prompt in of_kind}
        assert shared[1]
