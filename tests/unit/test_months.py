"""Months and what selects them."""

import pytest

from pipeline.errors import SettingError
from pipeline.identity.months import is_month, select_months
from tests.cases import cases_beside

KNOWN = ["2024-05", "2024-03", "2024-04"]


@cases_beside("selection", "expected")
def test_a_selection_names_months_oldest_first(selection, expected):
    assert select_months(selection, KNOWN) == expected


@cases_beside("selection", "said")
def test_a_wrong_selection_is_refused_in_words(selection, said):
    with pytest.raises(SettingError, match=said):
        select_months(selection, KNOWN)


@cases_beside("text", "expected")
def test_months_begin_with_arxiv(text, expected):
    assert is_month(text) is expected
