"""Answers that no model writes: quotations with their passages, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.answering.answer import ABSTAINED, Answer
from pipeline.answering.extractive import choose_quotes, extractive, search_query
from pipeline.answering.front_matter import FrontMatter
from pipeline.answering.model_calls import Tools
from pipeline.answering.user_question import Turn, UserQuestion
from pipeline.corpus.parse.parsed_page import Author
from pipeline.index.relevance import coverage
from pipeline.llm.loop import run
from pipeline.settings import load_settings
from tests.unit.answering.scripted_answers import FakeRetriever, FakeTables, passage, stages

QUESTION = UserQuestion("How much fuel does the new hull save?")
HULL = (
    "Boats are old. The new hull saves half of the fuel [@b1]. This holds on rivers and on the sea."
    " Paint is dear."
)


def shared_words(question: str, texts: Sequence[str]) -> list[float]:
    """Cosines of a sort: the share of the question's words."""
    return [coverage(question, text) for text in texts]


def answer(
    retriever: FakeRetriever, question: UserQuestion = QUESTION, tables: FakeTables | None = None
) -> Answer:
    settings = load_settings(llm_context=4096, _env_file=None)
    return run(extractive(question, Tools(None, retriever, settings, tables), shared_words))


def test_the_sentence_that_fits_is_quoted_with_its_passage() -> None:
    answered = answer(
        FakeRetriever(passage(1, HULL), passage(2, "Nets hold fish."), relevance="weak")
    )
    assert answered.text.startswith("“The new hull saves half of the fuel.”")
    first = answered.claims[0]
    assert (first.passage_id, first.anchor, first.source) == ("p1", "S1.p1", "passage")
    assert answered.spent.calls == 0
    assert stages(answered) == ["search", "quote"]


def test_a_sentence_that_leans_on_the_one_before_is_quoted_with_it() -> None:
    (quote, *_) = choose_quotes("rivers and the sea", [passage(1, HULL)], shared_words)
    assert quote.text == "The new hull saves half of the fuel. This holds on rivers and on the sea."


def test_nothing_is_answered_from_passages_that_do_not_fit_and_those_whose_fit_nobody_knows_are_read() -> (
    None
):
    answered = answer(FakeRetriever(passage(1, HULL), passage(2), relevance="none"))
    assert (answered.text, answered.abstained, answered.claims) == (ABSTAINED, True, ())
    assert answer(FakeRetriever(passage(1, HULL, kind="table"))).abstained
    assert not answer(FakeRetriever(passage(1, HULL))).abstained


def test_questions_for_facts_are_answered_from_tables() -> None:
    known = FrontMatter(
        passage(9, "Front."), (Author("Ada Quill", ("Nib University",)),), "2024-03-07"
    )
    retriever = FakeRetriever(passage(9, "We write."), relevance="strong")
    answered = answer(retriever, UserQuestion("Who are the authors of Title 9?"), FakeTables(known))
    assert (
        answered.text == '"Title 9" (arXiv:2403.00009) was written by Ada Quill (Nib University).'
    )
    assert [claim.source for claim in answered.claims] == ["front_matter"]
    assert stages(answered) == ["search", "facts"]


def test_at_most_three_quotations_and_two_of_a_passage() -> None:
    text = " ".join(f"The new hull number {number} saves much fuel." for number in range(5))
    answered = answer(
        FakeRetriever(
            *(passage(number, text.replace("number", f"no{number}")) for number in (1, 2, 3))
        )
    )
    assert len(answered.claims) == 3
    assert len({claim.passage_id for claim in answered.claims}) > 1


def test_a_follow_up_is_searched_for_with_the_question_before_it() -> None:
    history = (Turn("What is QuillNet?", "A model."),)
    assert (
        search_query(UserQuestion("How large is it?", history))
        == "How large is it? What is QuillNet?"
    )
    assert search_query(UserQuestion("How large is GloVe?", history)) == "How large is GloVe?"
    assert search_query(UserQuestion("How large is it?")) == "How large is it?"
