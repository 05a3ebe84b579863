"""The measures of a section's citations by hand-worked examples, and which are absent where nothing
can be computed.
"""

import pytest

from pipeline.evaluation.citation_support.measures import citation_measures, exactness
from tests.cases import cases
from tests.unit.evaluation.citation_support.building import reference, task
from tests.unit.evaluation.made_up import section

NUMBERS = (1, 2, 3, 4)


def support(sentence, number, verdict, quote="words of the paper", found=None):
    """A row of `citation_support`. verdict: or why there is none; found: None where only the quote
    of what is supported is.
    """
    is_judged = verdict in ("supported", "partly", "not")
    return {
        "sentence": sentence,
        "number": number,
        "quote": quote,
        "verdict": verdict if is_judged else None,
        "unjudged": None if is_judged else verdict,
        "quote_found": verdict == "supported" if found is None else found,
    }


def measured(text, rows=(), **trace):
    return citation_measures(
        task(map(reference, NUMBERS)),
        section(text, NUMBERS, **trace),
        [support(*row) for row in rows],
    )


@cases("unit/evaluation/citation_support/measures.toml")
def test_measures_are_those_worked_out_by_hand(case):
    given = {name: case.pop(name) for name in ("text", "rows", "rounds") if name in case}
    found = measured(**given)
    expected = case.get("measures", case)
    shown = found if "measures" in case else {name: found.get(name, "") for name in case}
    assert shown == pytest.approx(expected)


@cases("unit/evaluation/cases.toml", "headings", ["text", "heading"])
def test_a_heading_is_no_sentence(text, heading):
    found = measured(f"{text}\n\nIt is [Reference 1].", [(2, 1, "supported")])
    assert found["citation_recall"] == (1.0 if heading else 0.5)


def test_where_spellings_were_not_counted_nothing_is_said_of_exactness():
    assert exactness("[Reference 1]", {}) is None
