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
from tests.unit.evaluation.citation_support.building import reference, section, task

NUMBERS = (1, 2, 3, 4)
TASK = task([reference(number) for number in NUMBERS])


def support(sentence, number, verdict, quote="words of the paper", **more):
    unjudged = None if verdict else more.pop("unjudged", "no_text")
    found = more.pop("found", verdict == "supported")
    row = {"sentence": sentence, "number": number, "verdict": verdict, "unjudged": unjudged}
    return row | {"quote": quote if verdict else None, "quote_found": found if verdict else None}


def measured(text, rows, **trace):
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
        support(4, 7, None, unjudged="out_of_range"),
    ]
    assert measured(text, rows) == {
        "citation_precision": pytest.approx(1 / 3),
        "citation_precision_partly": pytest.approx(1.5 / 3),
        "citation_precision_quoted": pytest.approx(1 / 3),
        "citation_recall": pytest.approx(1 / 4),
        "reference_coverage": pytest.approx(3 / 4),
        "citation_out_of_range": 1.0,
        "citation_exact": 1.0,
    }


def test_a_verdict_whose_quote_is_not_found_or_says_nothing_counts_as_judged_alone():
    text = "It is [Reference 1]. It is [Reference 2]. It is [Reference 3]."
    rows = [
        support(1, 1, "supported", found=False),
        support(2, 2, "supported", quote="the model"),
        support(3, 3, "supported"),
    ]
    found = measured(text, rows)
    assert found["citation_precision"] == 1.0
    assert found["citation_precision_quoted"] == pytest.approx(1 / 3)


def test_where_nothing_was_judged_nothing_is_said_of_support():
    found = measured("Stones are old. It is [Reference 1].", [])
    assert found == {
        "reference_coverage": 0.25,
        "citation_out_of_range": 0.0,
        "citation_exact": 1.0,
    }
    unjudged = measured("It is [Reference 1].", [support(1, 1, None, unjudged="over_the_limit")])
    assert not any(name.startswith(("citation_precision", "citation_recall")) for name in unjudged)


def test_recall_takes_the_judged_sentences_for_those_that_the_limit_left_out():
    """Ten sentences cite, two do not; of the four judged one is supported: a quarter of ten, of
    twelve.
    """
    text = "Stones are old. They last. " + " ".join(
        f"It weighs {n} stones [Reference 1]." for n in range(10)
    )
    rows = [support(place, 1, None, unjudged="over_the_limit") for place in range(7, 13)]
    rows += [support(3, 1, "supported"), *(support(place, 1, "not") for place in (4, 5, 6))]
    assert measured(text, rows)["citation_recall"] == pytest.approx(10 / 12 / 4)


def test_citations_out_of_range_are_no_sample_of_what_the_limit_left_out():
    """Four sentences cite a work, of which the one judged is supported; four cite what there is
    not.
    """
    text = " ".join(
        [f"It weighs {n} stones [Reference 1]." for n in range(4)] + ["It flies [Reference 9]."] * 4
    )
    beyond = [support(place, 9, None, unjudged="out_of_range") for place in (5, 6, 7, 8)]
    left = [support(place, 1, None, unjudged="over_the_limit") for place in (2, 3, 4)]
    assert measured(text, [support(1, 1, "supported"), *left, *beyond])["citation_recall"] == 0.5
    unread = [support(place, 1, None, unjudged="no_text") for place in (1, 2, 3, 4)]
    assert "citation_recall" not in measured(text, [*unread, *beyond])
    assert (
        measured("It flies [Reference 9].", [support(1, 9, None, unjudged="out_of_range")])[
            "citation_recall"
        ]
        == 0
    )


def test_what_cannot_be_judged_in_a_sentence_takes_nothing_from_what_is_supported_there():
    rows = [support(1, 1, "supported"), support(1, 2, None)]
    assert measured("It is [Reference 1] [Reference 2].", rows)["citation_recall"] == 1.0


def test_a_section_that_cites_nothing_supports_no_sentence_and_an_empty_one_has_no_share_of_them():
    nothing = {"reference_coverage": 0.0, "citation_out_of_range": 0.0}
    assert measured("Stones are old. They last.", []) == {"citation_recall": 0.0, **nothing}
    assert measured("", []) == nothing


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("## Related Work", True),
        ("---", True),
        ("## Related Work Stones are old.", False),
        ("Stones are old", False),
        ("# 1", True),
    ],
)
def test_a_heading_is_no_sentence(text, heading):
    assert is_heading(text) is heading
    cited = [support(2, 1, "supported")]
    assert measured(f"{text}\n\nIt is [Reference 1].", cited)["citation_recall"] == (
        1.0 if heading else 0.5
    )


def test_citations_that_were_respelt_or_are_bare_numbers_are_not_exact():
    row = section("It is [Reference 1], (ref. 2) and [3]. So is [Reference 4].", NUMBERS)
    assert row["text"].count("[Reference") == 3
    assert citation_measures(TASK, row, [])["citation_exact"] == pytest.approx(2 / 4)
    assert exactness("Nothing.", {"citations": {"respelt": 0, "bare": 0}}) is None
    assert exactness("[Reference 1]", {}) is None


def rounds(*steps):
    """Rounds of a search: reference, (parent, text) of every draft, and the choices kept."""
    return [
        {
            "reference": number,
            "drafts": [
                {"choice": n, "parent": parent, "text": text}
                for n, (parent, text) in enumerate(drafts, 1)
            ],
            "kept": kept,
        }
        for number, drafts, kept in steps
    ]


def test_retention_follows_the_drafts_that_the_section_came_from():
    """The second round's first choice descends from the first round's second draft; its rival is of
    no account.
    """
    trace = {
        "rounds": rounds(
            (1, [(0, "None."), (0, "[Reference 1]")], [2, 1]),
            (2, [(1, "(ref. 1) and [Reference 2]"), (2, "[Reference 2]")], [1, 2]),
            (3, [(2, "[Reference 3]"), (1, "[Reference 1] [Reference 3]")], [2, 1]),
        )
    }
    assert retention_by_round(trace) == [1.0, 0.5]
    trace["rounds"][2]["kept"] = [1, 2]  # now the section comes from the draft that lost both
    assert retention_by_round(trace) == [0.0, 0.0]
    assert (
        citation_measures(TASK, section("[Reference 3]", NUMBERS, **trace), [])["retention"] == 0.0
    )


def test_references_are_counted_in_the_order_of_the_rounds():
    trace = {
        "rounds": rounds(
            (3, [(0, "[Reference 3]")], [1]), (1, [(1, "[Reference 3] [Reference 1]")], [1])
        )
    }
    assert retention_by_round(trace) == [1.0]


@pytest.mark.parametrize(
    "trace",
    [{}, {"rounds": []}, {"at_once": True, "rounds": rounds((4, [(0, "[Reference 1]")], [1]))}],
)
def test_a_system_without_steps_retains_nothing_that_could_be_measured(
    trace,
):
    assert retention_by_round(trace) == []
    assert "retention" not in citation_measures(
        TASK, section("[Reference 1]", NUMBERS, **trace), []
    )
