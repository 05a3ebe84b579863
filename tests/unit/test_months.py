"""Months and what selects them."""

import pytest

from pipeline.errors import SettingError
from pipeline.identity.months import is_month, select_months

KNOWN = ["2024-05", "2024-03", "2024-04"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("all", ["2024-03", "2024-04", "2024-05"]),
        ("2024-04", ["2024-04"]),
        ("2024-04..2024-05", ["2024-04", "2024-05"]),
        ("2023-01..2024-03", ["2024-03"]),
        ("2024-05, 2024-03", ["2024-03", "2024-05"]),
    ],
)
def test_a_selection_names_months_oldest_first(selection, expected):
    assert select_months(selection, KNOWN) == expected


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        ("2024-13", "not a month"),
        ("march", "does not name months"),
        ("2024-05..2024-03", "runs backwards"),
        ("2020-01", "2024-03, 2024-04, 2024-05"),
        ("", "does not name months"),
        ("2024-03..", "does not name months"),
        ("2024-03,", "does not name months"),
    ],
)
def test_a_wrong_selection_is_refused_in_words(selection, said):
    with pytest.raises(SettingError, match=said):
        select_months(selection, KNOWN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1991-07", True), ("2024-00", False), ("1890-01", False), ("24-01", False)],
)
def test_months_begin_with_arxiv(text, expected):
    assert is_month(text) is expected
