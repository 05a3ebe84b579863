"""Names and figures of claims, and the passages that they stand in."""

from pipeline.answering.claim_extraction import CLAIM_CHARS, find_support, particulars
from tests.cases import cases
from tests.unit.answering.scripted_answers import passage

QUESTION = "How does QuillNet judge fairness?"
SOURCES = {
    "front": passage(
        1, "QuillNet\nAuthors: Noor Halabi (University of Brackwater)", section_path=()
    ),
    "results": passage(2, "QuillNet reaches 0.64 on 1,200 questions, three times."),
    "other": passage(3, "Nothing of the kind, in 2019."),
    "formula": passage(4, r"A passage has the key $\delta(p)$."),
    "nowhere": None,
}


@cases("unit/answering/cases.toml", "names_and_figures_are_words", ["text", "wanted"])
def test_names_and_figures_are_words_with_a_digit_or_a_capital_within_a_sentence(text, wanted):
    assert particulars(text) == set(wanted)


def test_the_last_word_of_a_claim_that_was_cut_is_none():
    start = "It is by Halabi of "
    cut = start + "x" * (CLAIM_CHARS - len(start) - 7) + " Brackw"
    assert len(cut) == CLAIM_CHARS
    assert particulars(cut) == {"halabi"}
    assert particulars(cut[:-1]) == {"halabi", "brack"}


@cases("unit/answering/cases.toml", "a_claim_rests_where_its_names", ["claim", "named", "home"])
def test_a_claim_rests_where_its_names_and_figures_stand(claim, named, home):
    shown = [source for source in SOURCES.values() if source]
    assert find_support(claim, SOURCES[named], QUESTION, shown) == SOURCES[home]


def test_a_short_figure_is_looked_for_with_the_name_that_the_question_has():
    beryl, sable = (
        passage(5, "The Beryl lantern burns for 4 hours."),
        passage(6, "The Sable lantern, for 21 hours."),
    )
    stones = passage(7, "A Beryl has 4 faces.")

    def support(claim, *others):
        question = "How long does the Beryl lantern burn?"
        return find_support(claim, sable, question, [sable, *others])

    claim = "The Beryl lantern burns for 4 hours."
    assert support(claim, beryl) == beryl
    assert support(claim, beryl, stones) == sable  # one of two
    assert support(claim) == sable  # it may say "four" of the only lantern there
    assert support("The Beryl burns for 21 hours.", beryl) == sable
