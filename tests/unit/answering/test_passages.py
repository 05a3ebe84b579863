"""Answers without a model: facts from the tables, or the closest passages without a claim."""

import asyncio

import pytest

from pipeline.answering.front_matter import FrontMatter, FrontMatterTables
from pipeline.answering.model_calls import Tools
from pipeline.answering.passages import CLOSEST, passages
from pipeline.answering.question_words import names_in
from pipeline.answering.retriever import MonthSpan
from pipeline.answering.user_question import Turn, UserQuestion
from pipeline.corpus.parse.parsed_page import Author
from pipeline.llm.loop import run
from pipeline.settings import load_settings
from tests.cases import cases
from tests.unit.answering.corpus import MAY
from tests.unit.answering.scripted_answers import FakeRetriever, FakeTables, passage, shown_ids

ADA = FrontMatter(passage(9, "Front."), (Author("Ada Quill", ("Nib University",)),), "2024-03-07")
WRITTEN = '"Title 9" (arXiv:2403.00009) was written by Ada Quill (Nib University).'


def answer(text, retriever, tables=None, history=()):
    settings = load_settings(_env_file=None)
    return run(passages(UserQuestion(text, history), Tools(None, retriever, settings, tables)))


@pytest.mark.parametrize("fits", [True, False])
def test_the_first_passages_of_three_papers_are_shown_without_a_claim(fits):
    papers = (1, 2, 1, 3, 4, 2, 5, 3)
    ranking = [passage(place, arxiv_id=f"2403.0000{n}") for place, n in enumerate(papers)]
    answered = answer("How much fuel does it save?", FakeRetriever(*ranking, fits=fits))
    assert shown_ids(answered) == [["p0", "p1", "p2", "p3", "p5"]]
    assert (answered.text, answered.claims, answered.sentences) == (CLOSEST, (), ())
    assert (answered.abstained, answered.hops, answered.spent.calls) == (False, 1, 0)
    assert answered.queries == ("How much fuel does it save?",)


@cases("unit/answering/cases.toml", "a_name_that_no_passage_has_is_said", ["question", "absent"])
def test_a_name_that_no_passage_has_is_said_above_the_nearest_passages(question, absent):
    tables = FakeTables(names={"HullNet": ["2403.00001"]}, absent={"RWKV", "HullNet"})
    answered = answer(question, FakeRetriever(passage(1)), tables)
    above = [f"No paper here names {absent}"] if absent else []
    assert answered.text.splitlines() == [*above, CLOSEST]
    assert shown_ids(answered) == [["p1"]]


def test_an_id_limits_the_search_to_its_paper_if_there_is_one():
    here = FakeRetriever(passage(1), passage(2))
    assert shown_ids(answer("What is arXiv:2403.00002 on?", here)) == [["p2"]]
    elsewhere = answer("What is arXiv:2403.00007 on?", here)
    assert elsewhere.text == f"No paper here names 2403.00007\n{CLOSEST}"
    assert shown_ids(elsewhere) == [["p1", "p2"]]
    assert elsewhere.queries == ("What is on?",)


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ("Who are the authors of Title 9?", ()),
        ("Who wrote arXiv:2403.00009?", ()),
        ("Who wrote HullNet?", ()),
        ("Which university does Ada Quill belong to?", ()),
        ("and who wrote that paper?", [Turn("?", "Two tons.", ("2403.00009", "2403.00002"))]),
    ],
)
def test_questions_for_facts_are_answered_from_tables(question, history):
    tables = FakeTables(ADA, names={"HullNet": ["2403.00009"]})
    retriever = FakeRetriever(passage(9, "We write."))
    answered = answer(question, retriever, tables, tuple(history))
    assert answered.text == WRITTEN
    assert [claim.source for claim in answered.claims] == ["front_matter"]
    assert shown_ids(answered) == [["p9"]]


def test_a_question_for_facts_that_the_tables_lack_gets_the_closest_passages():
    answered = answer("What are the e-mail addresses?", FakeRetriever(passage(1)), FakeTables(ADA))
    assert (answered.text, shown_ids(answered)) == (CLOSEST, [["p1"]])


def test_a_name_is_a_word_with_a_capital_that_begins_no_sentence():
    assert names_in("Is PaLM 2 like Epinions? Does it use WMT. Then what?") == [
        "PaLM 2",
        "Epinions",
        "WMT",
    ]


def test_a_name_is_looked_for_among_the_passages_and_authors_of_all_papers(corpus):
    names = ["QuillNet", "Zorb", "The", "Frond"]

    def absent(span):
        return asyncio.run(FrontMatterTables(corpus, span).absent_names(names))

    assert absent(MonthSpan()) == ["Zorb"]
    assert "QuillNet" in absent(MonthSpan(first=MAY))
