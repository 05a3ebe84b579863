"""Listwise rankings: read with tolerance, mended by rule, over windows that slide to the front."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.answering.ranking import PASSAGE_CHARS, read_ranking, windows
from tests.cases import cases
from tests.unit.answering.scripted_answers import (
    FakeRetriever,
    answer,
    faithful,
    form_answer,
    form_of,
    passage,
    shown_ids,
    steps,
)


@cases("unit/answering/cases.toml", "a_ranking_is_read_and_mended", ["text", "order", "missing"])
def test_a_ranking_is_read_and_mended(text, order, missing):
    assert read_ranking(text, 3) == (order, missing)


@given(st.text(), st.integers(1, 30))
def test_any_text_gives_each_passage_one_place(text, count):
    assert sorted(read_ranking(text, count)[0]) == list(range(1, count + 1))


@cases("unit/answering/cases.toml", "windows_slide_from_the_end_to_the_front", ["count", "spans"])
def test_windows_slide_from_the_end_to_the_front(count, spans):
    assert list(map(list, windows(count))) == spans


def test_the_last_of_forty_can_come_first(tmp_path):
    """Each window puts its best in front, where the next window begins to end."""

    def last_first(asked):
        if form_of(asked) != "Ranking":
            return faithful(asked)
        shown = asked.prompt.split("\n<passage>\n")
        return next(
            (f"[{place}]" for place, text in enumerate(shown[1:], 1) if "fact 40." in text), "[1]"
        )

    retriever = FakeRetriever(*(passage(number) for number in range(1, 41)))
    answered, _ = answer(
        tmp_path, "arxivbot", last_first, retriever=retriever, answer_candidates=40
    )
    assert shown_ids(answered) == [["p40", "p1", "p2"]]
    told = steps(answered, "rank")[0]["windows"]
    assert [(each["from"], each["to"]) for each in told] == [(21, 40), (11, 30), (1, 20)]


def test_a_ranking_reads_the_beginning_of_a_passage_and_fits_a_small_context(
    tmp_path,
):
    retriever = FakeRetriever(*(passage(number, "word " * 500) for number in range(1, 21)))
    with_room, llm = answer(tmp_path / "a", "arxivbot", faithful, retriever=retriever)
    (asked,) = [
        str(body["messages"]) for body in llm.requests if "Rank the 20" in str(body["messages"])
    ]
    assert asked.count("word") == pytest.approx(20 * PASSAGE_CHARS / 5, rel=0.02)
    assert steps(with_room, "rank")[0]["windows"][0]["cut"] is False
    small = {"llm_context": 2048, "answer_tokens": 64}
    without, _ = answer(tmp_path / "b", "arxivbot", faithful, retriever=retriever, **small)
    assert steps(without, "rank")[0]["windows"][0]["cut"] is True


def test_passages_that_are_all_wanted_are_not_ranked(tmp_path):
    retriever = FakeRetriever(passage(1), passage(2), passage(1))
    answered, _ = answer(
        tmp_path, "arxivbot", form_answer("Ranking", "[2] > [1]"), faithful, retriever=retriever
    )
    assert shown_ids(answered) == [["p1", "p2"]]
    assert steps(answered, "rank") == []
