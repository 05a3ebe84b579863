"""Figures of a report: where their marks stand."""

import pytest

from pipeline.report.figures import answering_colour, box, system_colour
from pipeline.stage_names import RELATED_WORK_SYSTEMS


def test_a_box_has_its_quartiles_on_the_axis_and_marks_beyond_it_at_its_end():
    found = box("ChatCite", 1, [1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 5.0)
    places = (found.least, found.lower, found.median, found.upper, found.most)
    assert places == pytest.approx((0.0, 0.25, 0.5, 0.75, 1.0))
    assert (
        found.text
        == "least 1.00, a quarter below 2.00, median 3.00, three quarters below 4.00, most 5.00 (n"
        " = 5)"
    )
    single = box("ChatCite", 1, [3.0], 1.0, 5.0)
    assert single.least == single.median == single.most == 0.5
    assert box("x", 1, [0.0, 9.0], 1.0, 5.0).points == [0.0, 1.0]


def test_every_system_of_the_paper_has_a_colour_of_its_own():
    colours = [system_colour(system) for system in RELATED_WORK_SYSTEMS]
    assert colours == [*range(1, 9), 8, 8]
    assert system_colour("a stranger") == 8


def test_an_answering_system_has_one_colour_and_those_made_elsewhere_others():
    systems = ["direct", "b site", "a site", "arxivbot", "wikichat"]
    assert [answering_colour(system, systems) for system in systems] == [2, 6, 5, 1, 3]
    assert answering_colour("z", [f"s{number}" for number in range(20)] + ["z"]) == 8
