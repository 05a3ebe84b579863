"""Numbers of a report: how they are shown in tables, in JSON and on the axis of a figure."""

import pytest

from pipeline.report.figures import box
from pipeline.report.grid import Cell, Grid
from pipeline.report.pages import share_kept
from tests.cases import cases
from tests.unit.evaluation.made_up import paper

CASES = "unit/report/cases.toml"


@cases(CASES, "cells", ["told", "value", "form", "low", "high"])
def test_a_value_is_told_with_its_interval(told, value, form, low, high):
    assert Cell(value, form, low, high).plain() == told


def test_a_value_that_is_absent_below_zero_or_tagged_is_told():
    assert Cell(None, "two").plain() == "–"
    assert Cell(-0.001, "two").plain() == "0.00"
    assert Cell(3.5, "one", tag="best").plain() == "3.5 [best]"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        Grid("k", "Title", ("a", "b"), [["x"]])


def test_a_box_has_its_quartiles_on_the_axis_and_marks_beyond_it_at_its_end():
    found = box("ChatCite", 1, [1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 5.0)
    places = (found.least, found.lower, found.median, found.upper, found.most)
    assert places == pytest.approx((0.0, 0.25, 0.5, 0.75, 1.0))
    single = box("ChatCite", 1, [3.0], 1.0, 5.0)
    assert single.least == single.median == single.most == 0.5
    assert box("x", 1, [0.0, 9.0], 1.0, 5.0).points == [0.0, 1.0]


def test_a_paper_without_visible_text_has_no_share_kept():
    empty = {**paper("2403.90002"), "chars_seen": 0, "chars_kept": 0}
    assert share_kept(paper("2403.90001")).value == pytest.approx(30_914 / 31_200)
    assert share_kept(empty).value is None
