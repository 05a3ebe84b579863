"""Answers that no model writes: quotations with their passages, or nothing."""

import pytest

from pipeline.answering.answer import ABSTAINED
from pipeline.answering.extractive import (
    Subject,
    choose_quotes,
    distinct_quotes,
    extractive,
    search_query,
)
from pipeline.answering.front_matter import FrontMatter
from pipeline.answering.model_calls import Tools
from pipeline.answering.question_words import names_in
from pipeline.answering.quotations import Quotation, quotations_of
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


def shared_words(question, texts):
    """Cosines of a sort: the share of the question's words."""
    return [coverage(question, text) for text in texts]


def answer(retriever, question=QUESTION, tables=None):
    settings = load_settings(llm_context=4096, _env_file=None)
    return run(extractive(question, Tools(None, retriever, settings, tables), shared_words))


def test_the_sentence_that_fits_is_quoted_with_its_passage():
    answered = answer(
        FakeRetriever(passage(1, HULL), passage(2, "Nets hold fish."), relevance="weak")
    )
    assert answered.text.startswith("“Boats are old. The new hull saves half of the fuel.”")
    first = answered.claims[0]
    assert (first.passage_id, first.anchor, first.source) == ("p1", "S1.p1", "passage")
    assert answered.spent.calls == 0
    assert stages(answered) == ["search", "quote"]


def test_a_sentence_that_leans_on_the_one_before_is_quoted_with_it():
    (quote, *_) = choose_quotes("rivers and the sea", [passage(1, HULL)], shared_words)
    assert quote.text == "The new hull saves half of the fuel. This holds on rivers and on the sea."


def test_without_a_passage_that_fits_the_nearest_passages_are_named_and_none_is_quoted():
    answered = answer(FakeRetriever(passage(1, HULL), relevance="none"))
    assert (answered.text, answered.abstained, answered.claims) == (ABSTAINED, True, ())
    assert list(answered.passages) == ["p1"]
    assert answer(FakeRetriever(passage(1, HULL, kind="table"))).abstained


def test_questions_for_facts_are_answered_from_tables():
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


def test_at_most_three_quotations_and_two_of_a_passage():
    text = " ".join(f"The new hull number {number} saves much fuel." for number in range(5))
    answered = answer(
        FakeRetriever(
            *(passage(number, text.replace("number", f"no{number}")) for number in (1, 2, 3))
        )
    )
    assert len(answered.claims) == 3
    assert len({claim.passage_id for claim in answered.claims}) > 1


def test_a_follow_up_is_searched_for_with_the_question_before_it():
    history = (Turn("What is QuillNet?", "A model."),)
    nothing, known = Subject((), ()), Subject(("2403.00001",), ())
    large = UserQuestion("How large is it?", history)
    assert search_query(large, nothing) == "How large is it? What is QuillNet?"
    assert search_query(large, known) == "How large is it? QuillNet"
    other = UserQuestion("How large is GloVe?", history)
    assert search_query(other, nothing) == "How large is GloVe?"
    assert search_query(UserQuestion("How large is it?"), nothing) == "How large is it?"


def test_a_follow_up_is_about_the_paper_of_the_last_answer():
    front = FrontMatter(passage(9, "Front."), (Author("Ada Quill"),))
    history = (
        Turn("What does it weigh?", "Two tons.", ("2403.00009", "2403.00002")),
        Turn("And what is dark?", ABSTAINED),
    )
    question = UserQuestion("and who wrote that paper?", history)
    answered = answer(FakeRetriever(relevance="none"), question, FakeTables(front))
    assert answered.text == '"Title 9" (arXiv:2403.00009) was written by Ada Quill.'


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What is HullNet?", "“We build HullNet, a set of boats.”"),
        ("What is the main idea of arXiv:2403.00001?", "“We propose to measure fuel.”"),
        ("What does doi:10.48550/arXiv.2403.00001 propose?", "“We propose to measure fuel.”"),
        ("What is https://arxiv.org/abs/2403.00001v2 about?", "“We propose to measure fuel.”"),
        ("How old is HullNet?", ABSTAINED),
    ],
)
def test_what_a_paper_is_about_is_quoted_from_where_its_abstract_introduces_it(question, first):
    text = (
        "Boats are very old things. We propose to measure fuel. We build HullNet, a set of boats."
    )
    tables = FakeTables(names={"HullNet": ["2403.00001"]})
    retriever = FakeRetriever(
        passage(2, "HullNet has hulls of all kinds."), passage(1, text, kind="abstract")
    )
    assert answer(retriever, UserQuestion(question), tables).text.startswith(first)


def test_the_sentence_that_defines_a_name_comes_before_what_the_paper_presents():
    text = "HullNet is a set of boats. This paper presents HullNet and its fuel."
    tables = FakeTables(names={"HullNet": ["2403.00001"]})
    abstract = FakeRetriever(passage(1, text, kind="abstract"))
    answered = answer(abstract, UserQuestion("What is HullNet?"), tables)
    assert answered.text.startswith("“HullNet is a set of boats.”")


def test_what_an_abbreviation_stands_for_is_the_sentence_that_spells_it_out():
    text = "The RH is fast on the sea. We steer by a recurrent hull (RH) of wood."
    answered = answer(FakeRetriever(passage(1, text)), UserQuestion("What does RH stand for?"))
    assert answered.text.startswith("“We steer by a recurrent hull (RH) of wood.”")
    assert answer(FakeRetriever(passage(1, HULL)), UserQuestion("What does RH mean?")).abstained


def test_a_follow_up_asks_the_same_of_another_paper():
    ada, ben = (Author("Ada Quill"),), (Author("Ben Nib"),)
    tables = FakeTables(
        FrontMatter(passage(8, "Front."), ada),
        FrontMatter(passage(9, "Front."), ben),
        names={"HullNet": ["2403.00009"]},
    )
    asked = Turn("Who wrote SailNet?", "Ada Quill.", ("2403.00008",))
    named = UserQuestion("and HullNet?", (asked,))
    assert "was written by Ben Nib" in answer(FakeRetriever(), named, tables).text
    before = Turn("Who wrote HullNet?", "Ben Nib.", ("2403.00009",))
    other = UserQuestion("And the other one?", (before, asked))
    assert "was written by Ben Nib" in answer(FakeRetriever(), other, tables).text


def test_the_affiliation_of_an_author_is_that_on_the_papers():
    tables = FakeTables(FrontMatter(passage(9, "Front."), (Author("Ada Quill", ("Nib Lab",)),)))
    question = UserQuestion("Which university does Ada Quill belong to?")
    assert "Ada Quill (Nib Lab)" in answer(FakeRetriever(), question, tables).text


TABLE = """Table 3: Fuel of the boats.

| Boat | # of nets | fuel (l) |
| --- | --- | --- |
| Old | 7 | 120 |
| New \\| long | many | 60 |
"""


def quoted(question, text, **changed):
    made = passage(1, text, title="Boats", **changed)
    return [quote.display_text() for quote in choose_quotes(question, [made], shared_words)]


def test_a_number_is_quoted_from_a_cell_with_its_row_and_column():
    (first, *_) = quoted("How many nets has the old boat?", TABLE, kind="table")
    assert first.startswith("“7” (row “Old”, column “# of nets”,")


def test_a_column_below_two_header_rows_has_both_labels():
    text = (
        "Table 2: Fuel.\n| | Sea | |\n| --- | --- | --- |\n| Hull | Speed | Fuel |\n| New | 9 | 20 |"
        "\n| Sail | Speed | Fuel |\n| Big | 8 | 30 |"
    )
    shown = quoted("How much fuel at sea has the big sail?", text, kind="table")
    assert shown[0] == "“30” (row “Big”, column “Sea Fuel”, Table 2: Fuel)"


def test_a_row_has_the_words_that_tell_it_from_others_as_its_label():
    text = (
        "Table 2: Fuel.\n| Sea | Hull | fuel |\n| --- | --- | --- |\n| North | old | 20 |"
        "\n| | new | 10 |\n| South | old | 40 |\n| | new | 30 |"
    )
    quotes = quotations_of(passage(1, text, kind="table"))
    assert [(quote.text, *quote.labels) for quote in quotes] == [
        ("20", "North, old", "fuel"),
        ("10", "North, new", "fuel"),
        ("40", "South, old", "fuel"),
        ("30", "South, new", "fuel"),
    ]


def test_a_cell_that_only_repeats_the_question_is_not_quoted():
    text = "Table 2: Fuel.\n| Sea | hull |\n| --- | --- |\n| North | oak |\n| South | steel |"
    shown = quoted("Which sea has a hull of steel: north?", text, kind="table")
    assert not any(quote.startswith("“steel”") for quote in shown)
    quotes = list(quotations_of(passage(1, text, kind="table")))
    assert [quote.says_only({"hull", "steel"}) for quote in quotes] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "How good is the new hull on the sea?",
        "The new hull on the sea has two parts:",
        "Table 9 presents the new hull on the sea.",
        "In Figure 3, we show the new hull on the sea.",
        "In this section, we test the new hull on the sea.",
        "New hull",
        "New hull.",
        "Fuel of the new hull on the sea",
        "- A new hull on the sea",
        "1. New hull.",
        "We thank Ada for the new hull on the sea.",
        "We gratefully acknowledge the support of Ada for the new hull.",
        "The work on the new hull was partially supported by NSF under grant 7.",
    ],
)
def test_what_says_nothing_by_itself_is_not_quoted(text):
    assert list(quotations_of(passage(1, text))) == []
    after_another = passage(1, f"{text}\n\nThe new hull saves half of the fuel.")
    assert "The new hull saves half of the fuel." in {
        quote.text for quote in quotations_of(after_another)
    }


@pytest.mark.parametrize(
    "place",
    [
        {"section_path": ("Acknowledgements",)},
        {"section_path": ("Appendix", "Ethics Statement")},
        {"kind": "caption"},
        {"kind": "front_matter"},
    ],
)
def test_acknowledgements_statements_on_ethics_captions_and_front_matter_are_not_quoted(
    place,
):
    assert list(quotations_of(passage(1, HULL, **place))) == []


def test_a_sentence_within_another_quotation_is_not_quoted_again():
    long = Quotation("We find that the new hull saves half of the fuel.", passage(1))
    within = Quotation("the new hull saves half of the fuel.", passage(2))
    other = Quotation("Paint is dear on rivers.", passage(3))
    assert distinct_quotes([long, within, other]) == [long, other]
    assert distinct_quotes([within, long, other]) == [within, other]


@pytest.mark.parametrize("citation", ["[@b1]", "[?lost]", "[@b1; @b2]"])
@pytest.mark.parametrize(
    "text",
    [
        "The new hull saves half of the fuel, as tested in {}.",
        "{} argue that the new hull saves half of the fuel.",
        "Boats are old. {} argue that the new hull saves half of the fuel.",
    ],
)
def test_a_sentence_that_lacks_its_citation_is_not_quoted_beside_others(text, citation):
    with_hole = passage(1, text.format(citation))
    whole = passage(2, f"Quill et al. {citation} say that the new hull saves fuel {citation}.")
    broken = list(quotations_of(with_hole))[-1]
    quotes = [broken, *quotations_of(whole)]
    assert [quote.text for quote in distinct_quotes(quotes)] == [
        "Quill et al. say that the new hull saves fuel."
    ]
    assert distinct_quotes([broken]) == [broken]


def test_a_sentence_before_one_that_lacks_its_subject_is_quoted_alone():
    text = "The new hull saves half of the fuel. [@b1] argue that this is much."
    (quote, *_) = choose_quotes(QUESTION.question, [passage(1, text)], shared_words)
    assert quote.text == "The new hull saves half of the fuel."


def test_a_name_is_a_word_with_a_capital_that_begins_no_sentence():
    assert names_in("Is PaLM 2 like Epinions? Does it use WMT. Then what?") == [
        "PaLM 2",
        "Epinions",
        "WMT",
    ]


def test_a_long_range_of_numbers_takes_no_long_time():
    text = f"Table {'1–1' * 200} is of the new hull. The new hull saves half of the fuel."
    quotes = choose_quotes(QUESTION.question, [passage(1, text)], shared_words)
    assert [quote.text for quote in quotes] == ["The new hull saves half of the fuel."]


def test_a_question_with_a_name_that_no_passage_has_is_not_answered():
    hull = FakeRetriever(passage(1, HULL))
    assert answer(hull, UserQuestion("How much fuel does the new hull of RWKV save?")).abstained


def test_a_sentence_with_the_number_that_is_asked_for_comes_first():
    text = (
        "The new hull saves fuel on the sea. Paint is dear. The new hull saves 20 litres of fuel."
    )
    (first, *_) = quoted("How much fuel does the new hull save?", text)
    assert first.endswith("The new hull saves 20 litres of fuel.”")


@pytest.mark.parametrize(
    ("question", "text", "first"),
    [
        ("What is a new hull?", "A new hull is a hull of oak.", "A new hull is a hull of oak."),
        ("What is the RH?", "We use a recurrent hull (RH) of oak.", "We use a recurrent hull (RH)"),
        ("What are new hulls?", "We call these new hulls by their oak.", "We call these new hulls"),
        ("What is the new hull of oak?", "A new hull is a hull of wood.", "The new hull, of oak,"),
    ],
)
def test_the_sentence_that_defines_a_term_comes_first(question, text, first):
    passages = (
        passage(1, "The new hull, of oak, or RH, or new hulls: it is fast."),
        passage(2, text),
    )
    assert answer(FakeRetriever(*passages), UserQuestion(question)).text.startswith(f"“{first}")


def test_a_table_within_a_paragraph_or_a_caption_is_quoted_too():
    for kind in ("paragraph", "caption"):
        (first, *_) = quoted("How many nets has the old boat?", TABLE, kind=kind)
        assert first.startswith("“7” (row “Old”, column “# of nets”,")


def test_a_heading_within_a_paragraph_tells_of_limitations():
    passages = [
        passage(1, "The hull of boats saves fuel in some seas.", title="Boats"),
        passage(2, "Limitations of hulls. Boats of oak sink in some seas.", title="Boats"),
    ]
    quotes = choose_quotes("What limitations have boats?", passages, shared_words)
    assert quotes[0].passage == passages[1]


def test_authors_before_et_al_are_no_words_of_the_query():
    question = UserQuestion("Which hull do Quill et al. (2024) use?")
    assert search_query(question, Subject(("2403.00001",), ())) == "Which hull do they use?"
    assert search_query(question, Subject((), ())) == question.question
