"""Tables of a report: how a number is told, and as what in JSON."""

import json

import pytest

from pipeline.report.grid import Cell, Grid, RowGroup
from tests.cases import cases

CASES = "unit/report/cases.toml"


@cases(CASES, "cells", ["told", "value", "form", "low", "high"])
def test_a_value_is_told_with_its_interval(told, value, form, low, high):
    assert Cell(value, form, low, high).plain() == told


def test_a_value_that_is_absent_below_zero_or_tagged_is_told():
    assert Cell(None, "two").plain() == "–"
    assert Cell(-0.001, "two").plain() == "0.00"
    assert Cell(3.5, "one", tag="best").plain() == "3.5 [best]"


def test_in_json_what_there_is_not_is_null_and_a_number_with_an_interval_an_object():
    grid = Grid(
        "k", "Title", ("System", "R-1"), groups=[RowGroup([["chatcite", None]], "Here", "2 tasks")]
    )
    told = json.loads(json.dumps(grid.as_json()))
    assert told["rows"] == [{"group": "Here", "System": "chatcite", "R-1": None}]
    assert told["groups"] == [{"title": "Here", "about": "2 tasks"}]
    assert Cell(25.3, "two", 24.0, 26.0).as_json() == {"value": 25.3, "low": 24.0, "high": 26.0}
    assert Cell(0.0, "two", 0.0, 0.0).as_json() == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        Grid("k", "Title", ("a", "b"), [["x"]])
