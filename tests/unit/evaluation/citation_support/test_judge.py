"""What a judge is asked, what its prompts have in common, and how its answer is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.evaluation.citation_support.judge import (
    ANSWER_TOKENS,
    QUOTE_CHARS,
    Judged,
    JudgeRequest,
    judge,
    judge_request,
)
from pipeline.evaluation.passages import EvidencePassage
from pipeline.llm.client import REPAIR_TOKENS, open_client
from pipeline.llm.context import count_message_tokens
from pipeline.llm.loop import run
from tests.scripted_llm import Rule, ScriptedLlm
from tests.unit.evaluation.made_up import workspace

PASSAGES = (EvidencePassage("It weighs quartz.", 4), EvidencePassage("It is about stones.", 1))
SENTENCE = "Unlike [another work], [this work] weighs quartz."


def asked(
    sentence: str = SENTENCE, passages: tuple[EvidencePassage, ...] = PASSAGES, context: int = 4096
) -> JudgeRequest:
    return judge_request("Weighing stones", passages, sentence, context)


def answered(folder: Path, given: str) -> tuple[Judged, ScriptedLlm]:
    rule: Rule = lambda _: given  # noqa: E731
    with ScriptedLlm(rule) as llm:

        async def ask() -> Judged:
            work = workspace(folder, llm_url=llm.url, llm_model=llm.model)
            async with open_client(work) as client:
                return await judge(client, asked())

        return run(ask()), llm


def test_passages_stand_in_the_order_of_the_work_in_a_prompt_that_two_sentences_share_before_them() -> (
    None
):
    one, other = asked("[this work] is old."), asked()
    assert one.messages[0] == other.messages[0]
    user = other.messages[1].content
    places = [
        user.index(text)
        for text in ("Weighing stones", "about stones", "weighs quartz.", "Unlike [another")
    ]
    assert places == sorted(places)
    assert [passage.ordinal for passage in other.shown] == [4, 1]
    before = one.messages[1].content.split("<sentence>")[0]
    assert user.startswith(before)
    assert "It weighs quartz." in before


@pytest.mark.parametrize("context", [1300, 1600, 4096])
def test_a_prompt_leaves_room_for_an_answer_and_its_repair(context: int) -> None:
    long = EvidencePassage("word " * 5000 + "unseen", 2)
    made = asked("It says so. " * 300, (long, *PASSAGES), context)
    assert count_message_tokens(made.messages) + ANSWER_TOKENS + REPAIR_TOKENS <= context
    assert made.cut == 1
    assert [passage.text for passage in made.shown[1:]] == [passage.text for passage in PASSAGES]
    assert "unseen" not in made.shown[0].text, "what was cut is not said to have been shown"
    assert made.shown[0].text in made.messages[1].content


def test_where_many_passages_would_leave_nothing_of_each_the_best_are_shown() -> None:
    many = tuple(EvidencePassage(f"{place} " + "word " * 60, place) for place in range(200))
    made = asked(passages=many, context=1600)
    assert [passage.ordinal for passage in made.shown] == list(range(len(made.shown)))
    assert 1 < len(made.shown) < 50
    assert all(len(passage.text.split()) >= 10 for passage in made.shown)
    assert made.cut == len(many)


def test_a_context_without_room_names_its_setting() -> None:
    with pytest.raises(SettingError, match="CITELOOM_LLM_CONTEXT"):
        asked(context=1024)


def test_a_verdict_comes_with_the_place_of_its_quote(tmp_path: Path) -> None:
    found, llm = answered(tmp_path, json.dumps({"quote": "about\n STONES", "verdict": "partly"}))
    assert (found.verdict, found.quote, found.quoted, found.spent.calls) == (
        "partly",
        "about STONES",
        1,
        1,
    )
    form = llm.requests[0]["response_format"]["json_schema"]["schema"]
    assert list(form["properties"]) == ["quote", "verdict"]
    assert form["properties"]["quote"]["maxLength"] == QUOTE_CHARS


@pytest.mark.parametrize(
    "quote",
    ["Unlike [another work]", "It weighs quartz." + " And more." * QUOTE_CHARS],
    ids=["of sentence", "long"],
)
def test_a_quote_of_the_sentence_or_too_long_is_in_no_passage_and_no_reason_to_pay_for_another(
    tmp_path: Path, quote: str
) -> None:
    found, llm = answered(tmp_path, json.dumps({"quote": quote, "verdict": "supported"}))
    assert (found.verdict, found.quoted, llm.generations) == ("supported", None, 1)
