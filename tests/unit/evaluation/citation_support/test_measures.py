"""The measures of a section's citations by hand-worked examples, and which are absent where nothing
can be computed.
"""

import pytest

from pipeline.evaluation.citation_support.measures import (
    citation_measures,
    exactness,
    is_heading,
    retention_by_round,
)
from tests.cases import cases
from tests.unit.evaluation.citation_support.building import reference, task
from tests.unit.evaluation.made_up import section

NUMBERS = (1, 2, 3, 4)
TASK = task(map(reference, NUMBERS))
THIRD = pytest.approx(1 / 3)


def support(sentence, number, verdict, quote="words of the paper", found=None):
    """A row of `citation_support`. verdict: or why there is none; found: None where only the quote
    of what is supported is.
    """
    row = {"sentence": sentence, "number": number, "quote": quote}
    if verdict not in ("supported", "partly", "not"):
        return row | {"verdict": None, "unjudged": verdict, "quote_found": None}
    found = verdict == "supported" if found is None else found
    return row | {"verdict": verdict, "unjudged": None, "quote_found": found}


def measured(text, rows=(), **trace):
    return citation_measures(TASK, section(text, NUMBERS, **trace), rows)


def test_a_section_judged_whole():
    text = (
        "Stones are old. Both [Reference 1] and [Reference 2] weigh them. "
        "Then came [Reference 3]. A last word cites [Reference 7]."
    )
    rows = [
        support(2, 1, "supported"),
        support(2, 2, "not"),
        support(3, 3, "partly"),
        support(4, 7, "out_of_range"),
    ]
    assert measured(text, rows) == {
        "citation_precision": THIRD,
        "citation_precision_partly": pytest.approx(1.5 / 3),
        "citation_precision_quoted": THIRD,
        "citation_recall": pytest.approx(1 / 4),
        "reference_coverage": pytest.approx(3 / 4),
        "citation_out_of_range": 1.0,
        "citation_exact": 1.0,
    }


def test_a_verdict_whose_quote_is_not_found_or_says_nothing_counts_as_judged_alone():
    rows = [
        support(1, 1, "supported", found=False),
        support(2, 2, "supported", "the model"),
        support(3, 3, "supported"),
    ]
    found = measured("It is [Reference 1]. It is [Reference 2]. It is [Reference 3].", rows)
    assert (found["citation_precision"], found["citation_precision_quoted"]) == (1.0, THIRD)


def test_where_nothing_was_judged_nothing_is_said_of_support():
    told = {"reference_coverage": 0.25, "citation_out_of_range": 0.0, "citation_exact": 1.0}
    assert measured("Stones are old. It is [Reference 1].") == told
    assert measured("It is [Reference 1].", [support(1, 1, "over_the_limit")]) == told


# Ten sentences cite, two do not; of the four judged one is supported: a quarter of ten, of twelve.
TEN = "Stones are old. They last. " + " ".join(
    f"It weighs {n} stones [Reference 1]." for n in range(10)
)
LIMITED = [
    support(3, 1, "supported"),
    *(support(place, 1, "not") for place in (4, 5, 6)),
    *(support(place, 1, "over_the_limit") for place in range(7, 13)),
]
# Four sentences cite a work, of which the one judged is supported; four cite what there is not.
EIGHT = " ".join(
    [f"It weighs {n} stones [Reference 1]." for n in range(4)] + ["It flies [Reference 9]."] * 4
)
BEYOND = [support(place, 9, "out_of_range") for place in (5, 6, 7, 8)]
LEFT = [support(1, 1, "supported"), *(support(place, 1, "over_the_limit") for place in (2, 3, 4))]
UNREAD = [support(place, 1, "no_text") for place in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("text", "rows", "recall"),
    [
        (TEN, LIMITED, pytest.approx(10 / 12 / 4)),
        (EIGHT, [*LEFT, *BEYOND], 0.5),
        (EIGHT, [*UNREAD, *BEYOND], None),
        ("It flies [Reference 9].", [support(1, 9, "out_of_range")], 0),
        ("## As [Reference 1]\n\nStones are old.", [support(1, 1, "supported")], 0.5),
        (
            "It is [Reference 1] [Reference 2].",
            [support(1, 1, "supported"), support(1, 2, "no_text")],
            1.0,
        ),
    ],
    ids=[
        "the limit",
        "out of range",
        "without text",
        "none in range",
        "a heading that cites",
        "half without text",
    ],
)
def test_recall_takes_the_judged_sentences_for_those_that_could_be_judged(text, rows, recall):
    assert measured(text, rows).get("citation_recall") == recall


def test_a_section_that_cites_nothing_supports_no_sentence_and_an_empty_one_has_no_share_of_them():
    nothing = {"reference_coverage": 0.0, "citation_out_of_range": 0.0}
    assert measured("Stones are old. They last.") == {"citation_recall": 0.0, **nothing}
    assert measured("") == nothing


@cases("unit/evaluation/cases.toml", "headings", ["text", "heading"])
def test_a_heading_is_no_sentence(text, heading):
    assert is_heading(text) is heading
    found = measured(f"{text}\n\nIt is [Reference 1].", [support(2, 1, "supported")])
    assert found["citation_recall"] == (1.0 if heading else 0.5)


def test_citations_that_were_respelt_or_are_bare_numbers_are_not_exact():
    row = section("It is [Reference 1], (ref. 2) and [3]. So is [Reference 4].", NUMBERS)
    assert row["text"].count("[Reference") == 3
    assert citation_measures(TASK, row, [])["citation_exact"] == pytest.approx(2 / 4)
    assert exactness("Nothing.", {"citations": {"respelt": 0, "bare": 0}}) is None
    assert exactness("[Reference 1]", {}) is None


def rounds(*steps):
    """The trace of a search: reference, (parent, text) of every draft, and the choices kept."""
    told = [
        {
            "reference": number,
            "drafts": [{"parent": parent, "text": text} for parent, text in drafts],
            "kept": kept,
        }
        for number, drafts, kept in steps
    ]
    return {"rounds": told}


# The second round's first choice descends from the first round's second draft; its rival is of no
# account.
FIRST = (1, [(0, "None."), (0, "[Reference 1]")], [2, 1])
NEXT = (2, [(1, "(ref. 1) and [Reference 2]"), (2, "[Reference 2]")], [1, 2])
LAST = [(2, "[Reference 3]"), (1, "[Reference 1] [Reference 3]")]


@pytest.mark.parametrize(
    ("trace", "shares"),
    [
        (rounds(FIRST, NEXT, (3, LAST, [2, 1])), [1.0, 0.5]),
        (rounds(FIRST, NEXT, (3, LAST, [1, 2])), [0.0, 0.0]),
        # In the order of the rounds, not of the numbers.
        (rounds((3, [(0, "[Reference 3]")], [1]), (1, [(1, "[Reference 3]")], [1])), [1.0]),
        (rounds((4, [(0, "[Reference 1]")], [1])), []),
        (rounds(), []),
        ({}, []),
    ],
    ids=["descent", "of the draft that lost both", "order", "one round", "no round", "no search"],
)
def test_retention_follows_the_drafts_that_the_section_came_from(trace, shares):
    assert retention_by_round(trace) == shares
    mean = sum(shares) / len(shares) if shares else None
    assert measured("[Reference 1]", **trace).get("retention") == mean
