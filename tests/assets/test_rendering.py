"""What the UI shows of a month of the corpus and how its tables and figures are drawn."""

import base64
import re

import dagster as dg
import pytest
from defusedxml.ElementTree import fromstring

from assets.rendering import cell, intervals, markdown_table
from assets.stage_asset import month_asset
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from pipeline.stages import lookup_stage
from tests.assets.conftest import make_place

MONTH = "2024-03"
FIRST = ("dump_members", "metadata", "papers", "passages")
IMAGE = re.compile(r"!\[([\w ]+)\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The metadata of the corpus's first four assets, by asset; under `rows`, the table papers."""
    place = make_place(tmp_path_factory.mktemp("shown") / "data", workers=1)
    found = {}
    with place.entered(), dg.DagsterInstance.ephemeral() as instance:
        workspace = Workspace(load_settings())
        for name in FIRST:
            made = dg.materialize(
                [month_asset(lookup_stage(name))],
                partition_key=MONTH,
                instance=instance,
                resources={"workspace": workspace},
            ).asset_materializations_for_node(name)
            found[name] = {key: value.value for key, value in made[0].metadata.items()}
        found["rows"] = {"papers": workspace.root.rows(tables.PAPERS, MONTH)}
        yield found


def picture_of(markdown):
    """The SVG in a text, and how many pixels wide it is."""
    found = IMAGE.search(markdown)
    assert found is not None, markdown[:100]
    svg = base64.b64decode(found[2], validate=True).decode()
    return svg, int(fromstring(svg).attrib["width"])


def test_the_kinds_of_passages_add_up(told):
    kinds = {name: count for name, count in told["passages"].items() if name.startswith("kind/")}
    assert sum(kinds.values()) == told["passages"]["dagster/row_count"]
    assert {"kind/front_matter", "kind/abstract", "kind/paragraph", "kind/table"} <= kinds.keys()
    assert 20 <= told["passages"]["median_words"] <= 300
    assert "40 to 59 words" in picture_of(told["passages"]["picture"])[0]


def test_the_losses_are_those_of_the_papers(told):
    shown = [count for name, count in told["papers"].items() if name.startswith("lost/")]
    papers = told["rows"]["papers"]
    assert sum(shown) == sum(sum(paper["losses"].values()) for paper in papers) > 0
    assert 0 < told["papers"]["share_kept"] < 1


def test_every_paper_has_its_place_among_the_grades(told):
    grades = {name: count for name, count in told["papers"].items() if name.startswith("grade/")}
    assert sum(grades.values()) == told["papers"]["dagster/row_count"]
    assert {name.removeprefix("grade/") for name in grades} <= set(tables.GRADES)


def test_the_pages_of_each_subset_add_up(told):
    pages = [count for name, count in told["dump_members"].items() if name.startswith("pages/")]
    assert sum(pages) == told["dump_members"]["dagster/row_count"]


def test_what_could_be_markup_is_escaped_in_a_cell():
    assert cell("a|b <script>\n*c* [d](e)") == "a\\|b &lt;script&gt; \\*c\\* \\[d\\]\\(e\\)"
    assert cell("\\|x\\*") == "\\\\\\|x\\\\\\*", (
        "TeX brings backslashes of its own: none may undo ours"
    )
    assert markdown_table(["x"], [["1"], [2]]) == "| x |\n| --- |\n| 1 |\n| 2 |"


def test_an_interval_and_its_value_lie_on_one_scale():
    svg, _ = picture_of(
        intervals("i", {"nDCG": (0.5, 0.25, 0.75), "recall": (1.0, None, None)}, title="t")
    )
    root = fromstring(svg)
    dots = [float(dot.attrib["cx"]) for dot in root.iter("{http://www.w3.org/2000/svg}circle")]
    (line,) = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)"', svg)
    assert float(line[0]) < dots[0] < float(line[1]) < dots[1]
    assert dots[0] - float(line[0]) == float(line[1]) - dots[0]


def test_a_label_is_data_and_the_same_values_make_the_same_picture():
    rows = {"x, <script>&": (1.0, None, None)}
    svg, width = picture_of(intervals("n", rows, title="a < b"))
    texts = [text.text for text in fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert (texts[-2], width >= 600) == ("x, <script>&", True)
    assert "a < b" in texts
    assert intervals("n", rows, title="t") == intervals("n", rows, title="t")


def test_nothing_at_all_makes_a_picture_too():
    picture_of(intervals("none", {}, title="none"))
