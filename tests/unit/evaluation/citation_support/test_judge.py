"""What a judge of a citation is asked, and what its prompts have in common."""

import pytest

from pipeline.errors import SettingError
from pipeline.evaluation.citation_support.judge import judge_request
from pipeline.evaluation.judged import FINDING_TOKENS
from pipeline.evaluation.passages import EvidencePassage
from pipeline.llm.client import REPAIR_TOKENS
from pipeline.llm.context import count_message_tokens

PASSAGES = (EvidencePassage("It weighs quartz.", 4), EvidencePassage("It is about stones.", 1))
SENTENCE = "Unlike [another work], [this work] weighs quartz."


def asked(sentence=SENTENCE, passages=PASSAGES, context=4096):
    return judge_request("Weighing stones", passages, sentence, context)


def test_passages_stand_in_the_order_of_the_work_in_a_prompt_that_two_sentences_share_before_them():
    one, other = asked("[this work] is old."), asked()
    assert one.messages[0] == other.messages[0]
    parts = (each.messages[1].content.split("<sentence>") for each in (one, other))
    (before, _), (same, sentence) = parts
    assert before == same
    assert SENTENCE in sentence
    texts = ("Weighing stones", "about stones", "weighs quartz.")
    places = [before.index(text) for text in texts]
    assert places == sorted(places)
    assert [passage.ordinal for passage in other.shown] == [4, 1]


@pytest.mark.parametrize("context", [1300, 4096])
def test_a_prompt_leaves_room_for_an_answer_and_its_repair(context):
    long = EvidencePassage("word " * 5000 + "unseen", 2)
    made = asked("It says so. " * 300, (long, *PASSAGES), context)
    assert count_message_tokens(made.messages) + FINDING_TOKENS + REPAIR_TOKENS <= context
    assert made.cut == 1
    assert [passage.text for passage in made.shown[1:]] == [passage.text for passage in PASSAGES]
    assert "unseen" not in made.shown[0].text, "what was cut is not said to have been shown"
    assert made.shown[0].text in made.messages[1].content


def test_where_many_passages_would_leave_nothing_of_each_the_best_are_shown():
    many = tuple(EvidencePassage(f"{place} " + "word " * 60, place) for place in range(200))
    made = asked(passages=many, context=1600)
    assert [passage.ordinal for passage in made.shown] == list(range(len(made.shown)))
    assert 1 < len(made.shown) < 50
    assert all(len(passage.text.split()) >= 10 for passage in made.shown)
    assert made.cut == len(many)
    with pytest.raises(SettingError, match="CITELOOM_LLM_CONTEXT"):
        asked(context=1024)
