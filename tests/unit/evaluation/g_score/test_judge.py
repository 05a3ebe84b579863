"""One conversation with a judge: orders, labels, what is cut, and which answers are taken."""

import json
from collections import Counter
from itertools import islice, pairwise, permutations

import pytest

from pipeline.evaluation.g_score.judge import CRITERIA, answer_schema, g_score_request
from pipeline.evaluation.g_score.sample import TaskSections, shown_orders
from pipeline.llm.context import count_message_tokens
from pipeline.stage_names import RELATED_WORK_SYSTEMS

TASK = "2403.90001#S2"
SECTIONS = {"a": "Both [Reference 1] and we learn weights.", "b": "There is [Reference 1]."}
LONG = "A sentence about $\\alpha_{i}$ and [Reference 1]. " * 2000


def asked(order, context=8192, target="# A target", gold="As [1] did.", sections=SECTIONS):
    texts = TaskSections(TASK, target, "[Reference 1] Cited Work", gold, sections)
    return g_score_request(texts, order, context)


def orders(systems, repeats=None):
    return list(islice(shown_orders(TASK, RELATED_WORK_SYSTEMS[:systems]), repeats))


def test_each_system_is_shown_first_in_about_half_of_the_tasks():
    first = [next(shown_orders(f"2403.{number:05d}#S2", "ab"))[0] for number in range(1000)]
    assert 400 < first.count("a") < 600


def test_the_first_order_depends_on_the_task_alone_and_is_the_one_that_answers_were_kept_under():
    systems = ["chatcite", "few_shot", "litllm", "zero_shot"]
    kept = ("zero_shot", "chatcite", "litllm", "few_shot")
    assert next(shown_orders(TASK, systems)) == next(shown_orders(TASK, reversed(systems))) == kept
    assert list(shown_orders(TASK, [])) == []


def test_every_order_comes_once_and_none_is_missing():
    for systems in range(1, 6):
        every = permutations(sorted(RELATED_WORK_SYSTEMS[:systems]))
        assert sorted(orders(systems)) == [*every]


@pytest.mark.parametrize("systems", range(2, 9))
def test_each_system_stands_in_every_place_and_behind_every_other_equally_often(systems):
    found = orders(systems, systems if systems % 2 == 0 else 2 * systems)
    places = Counter((place, name) for order in found for place, name in enumerate(order))
    followers = Counter(pair for order in found for pair in pairwise(order))
    assert (len(places), {*places.values()}) == (systems**2, {len(found) // systems})
    assert (len(followers), len({*followers.values()})) == (systems * (systems - 1), 1)
    # After every second repeat each mean place is the middle.
    found = orders(systems, 6 if systems > 2 else 2)
    for repeats in range(2, len(found) + 1, 2):
        sums = Counter[str]()
        for order in found[:repeats]:
            sums.update({name: place for place, name in enumerate(order)})
        assert set(sums.values()) == {repeats * (systems - 1) / 2}


ONES = dict.fromkeys(CRITERIA, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"A": {**ONES, "consistency": 0}},
        {"A": {**ONES, "consistency": 6}},
        {"best": "C"},
        {"best": None},
        {"B": None},
        {"C": ONES},
    ],
)
def test_an_answer_that_does_not_fit_is_refused(change):
    with pytest.raises(ValueError, match="Judgement"):
        answer_schema("AB").model_validate({"A": ONES, "B": ONES, "best": "A", **change})


def test_one_section_is_asked_for_by_the_same_criteria_as_several_without_a_vote():
    alone = asked("b")
    sent = json.dumps([message.content for message in alone.messages])
    assert [*answer_schema(alone.labels).model_fields] == [*alone.labels] == ["A"]
    assert SECTIONS["b"] in sent
    assert not [word for word in ("learn weights", "vote", "best") if word in sent]
    together, criteria = (
        [line for line in made.messages[0].content.splitlines() if line.startswith("- ")]
        for made in (asked("ab"), alone)
    )
    assert together == criteria
    assert len(criteria) == len(CRITERIA)


@pytest.mark.parametrize("context", [2048, 4096, 8192])
def test_a_conversation_its_answer_and_a_repair_fit_into_the_context(context):
    made = asked("abc", context, LONG, LONG, {"a": LONG, "b": LONG, "c": "short"})
    assert count_message_tokens(made.messages) + 2 * (64 + 3 * 128) <= context
    assert set(made.cut) >= {"a", "b", "gold"}
    assert "c" not in made.cut
