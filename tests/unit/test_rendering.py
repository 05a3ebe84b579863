"""How the UI's tables, pictures and details of a month's report are drawn."""

import base64
import re

import pytest
from defusedxml.ElementTree import fromstring

from assets.details import report_details
from assets.rendering import cell, intervals, markdown_table, report_address
from pipeline import tables
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import write_month
from tests.workspaces import make_workspace

MONTH = "2024-03"
SVG = "{http://www.w3.org/2000/svg}"


def drawing(rows):
    """The root of the SVG in a picture of intervals."""
    picture = intervals("of rows", rows, title="a < b")
    encoded = picture.removeprefix("![of rows](data:image/svg+xml;base64,").removesuffix(")")
    return fromstring(base64.b64decode(encoded, validate=True))


def test_what_could_be_markup_is_escaped_in_a_cell():
    assert cell("a|b <script>\n*c* [d](e)") == "a\\|b &lt;script&gt; \\*c\\* \\[d\\]\\(e\\)"
    assert cell("\\|x\\*") == "\\\\\\|x\\\\\\*", (
        "TeX brings backslashes of its own: none may undo ours"
    )
    assert markdown_table(["x"], [["1"], [2]]) == "| x |\n| --- |\n| 1 |\n| 2 |"


def test_a_picture_has_labels_as_text_and_intervals_on_the_scale_of_their_values():
    root = drawing({"x, <script>&": (0.5, 0.25, 0.75), "recall": (1.0, None, None)})
    assert {"a < b", "x, <script>&", "recall"} <= {text.text for text in root.iter(f"{SVG}text")}
    first, second = (float(dot.attrib["cx"]) for dot in root.iter(f"{SVG}circle"))
    paths = " ".join(path.attrib["d"] for path in root.iter(f"{SVG}path"))
    ((start, end),) = re.findall(r"M([\d.]+) [\d.]+H([\d.]+)", paths)
    assert float(start) < first < float(end) < second < int(root.attrib["width"])
    assert first - float(start) == pytest.approx(float(end) - first)
    assert not list(drawing({}).iter(f"{SVG}circle"))


def test_a_report_shows_its_page_its_main_table_and_a_picture(tmp_path):
    place = make_workspace(tmp_path)
    write_month(place.root, MONTH, tasks=0)
    assert report_details(place, MONTH).keys() == {"page"}
    write_month(place.root, MONTH, judges=("judge-one",), model="a|model")
    shown = report_details(place, MONTH)
    lines = shown["systems"].md_str.splitlines()
    assert lines[0] == "2 tasks of March 2024; judge judge-one."
    assert {line.split(" | ")[0] for line in lines[4:]} == {"| ChatCite", "| zero-shot"}
    assert "a\\|model" in lines[4]
    assert shown["picture"].md_str.startswith("![systems](data:image/svg+xml;base64,")
    write_month(place.root, MONTH, judged=False)
    assert "picture" in report_details(place, MONTH), "of its citations"
    write_table(place.root, tables.SCORES, MONTH, [])
    assert report_details(place, MONTH).keys() == {"page", "systems"}


def test_where_reports_are_served_the_page_is_a_link(tmp_path):
    place = make_workspace(tmp_path, serve_url="https://papers.example/")
    address = f"https://papers.example/reports/{MONTH}/index.html"
    assert report_address(place, MONTH).value == address
