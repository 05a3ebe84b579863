"""What the UI shows of a month of the corpus besides numbers: pictures and tables."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
import pytest
from defusedxml.ElementTree import fromstring

from assets.catalogue import STAGE_ASSETS
from assets.partitions import offer_months
from assets.rendering import MOST_BARS, bars, cell, histogram, intervals, markdown_table
from assets.stage_asset import build_asset
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from tests.assets.conftest import make_place

MONTH = "2024-03"
FIRST = ("dump_members", "metadata", "papers", "passages")
IMAGE = re.compile(r"!\[([\w ]+)\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Mapping[str, Any]]]:
    """The metadata of the corpus's first four assets, by asset; under `rows`, the table papers."""
    place = make_place(tmp_path_factory.mktemp("shown") / "data", workers=1)
    found: dict[str, Mapping[str, Any]] = {}
    with place.entered(), dg.DagsterInstance.ephemeral() as instance:
        workspace = Workspace(load_settings())
        offer_months(instance, [MONTH])
        for stage_asset in STAGE_ASSETS:
            name = stage_asset.stage.name
            if name not in FIRST:
                continue
            made = dg.materialize(
                [build_asset(stage_asset, workspace.settings)],
                partition_key=MONTH,
                instance=instance,
                resources={"workspace": workspace},
            ).asset_materializations_for_node(name)
            found[name] = {key: value.value for key, value in made[0].metadata.items()}
        found["rows"] = {"papers": workspace.root.rows(tables.PAPERS, MONTH)}
        yield found


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of a Markdown table's rows, without head and rule, and as they were before they were escaped."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return [[re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\) ?\| ?", line)[1:-1]] for line in lines[2:]]


def picture_of(markdown: str) -> tuple[str, int]:
    """The SVG in a text, and how many pixels wide it is."""
    found = IMAGE.search(markdown)
    assert found is not None, markdown[:100]
    svg = base64.b64decode(found[2], validate=True).decode()
    return svg, int(fromstring(svg).attrib["width"])


@pytest.mark.parametrize(
    ("asset", "name"),
    [
        ("passages", "lengths"),
        ("passages", "kinds"),
        ("papers", "losses"),
        ("papers", "share_kept"),
        ("papers", "grades"),
    ],
)
def test_a_picture_is_small_and_wide_enough_to_read(
    told: Mapping[str, Mapping[str, Any]], asset: str, name: str
) -> None:
    svg, width = picture_of(told[asset][name])
    assert len(svg) <= 60_000
    assert width >= 600


def test_the_kinds_of_passages_add_up(told: Mapping[str, Mapping[str, Any]]) -> None:
    rows = rows_of(told["passages"]["kinds"])
    assert sum(int(row[1]) for row in rows) == told["passages"]["dagster/row_count"]
    assert {"front matter", "abstract", "paragraph", "table"} <= {row[0] for row in rows}
    assert all(row[5] == "0" for row in rows)


def test_the_losses_are_those_of_the_papers(told: Mapping[str, Mapping[str, Any]]) -> None:
    shown = [int(row[1].replace(",", "")) for row in rows_of(told["papers"]["losses"])]
    papers = told["rows"]["papers"]
    assert sum(shown) == sum(sum(paper["losses"].values()) for paper in papers) > 0
    assert shown == sorted(shown, reverse=True)


def test_every_paper_has_its_place_among_the_grades(told: Mapping[str, Mapping[str, Any]]) -> None:
    rows = rows_of(told["papers"]["grades"])
    assert sum(int(row[1]) for row in rows) == told["papers"]["dagster/row_count"]
    assert {row[0] for row in rows} <= set(tables.GRADES)


def test_the_ledger_is_told_by_reason_with_one_of_each(told: Mapping[str, Mapping[str, Any]]) -> None:
    assert rows_of(told["papers"]["ledger"]) == [["not_computer_science", "2", "2403.90006", "math.CO"]]
    assert "ledger" not in told["passages"], "nothing was left out of it"


def test_the_pages_of_each_zip_add_up(told: Mapping[str, Mapping[str, Any]]) -> None:
    rows = rows_of(told["dump_members"]["subsets"])
    assert sum(int(row[2]) for row in rows) == told["dump_members"]["dagster/row_count"]


def test_what_could_be_markup_is_escaped_in_a_cell() -> None:
    assert cell("a|b <script>\n*c* [d](e)") == "a\\|b &lt;script&gt; \\*c\\* \\[d\\]\\(e\\)"
    assert cell("\\|x\\*") == "\\\\\\|x\\\\\\*", "TeX brings backslashes of its own: none may undo ours"
    assert markdown_table(["x"], [["1"], [2]]) == "| x |\n| --- |\n| 1 |\n| 2 |"


def test_what_is_beyond_the_most_bars_is_one_bar() -> None:
    svg, _ = picture_of(bars("n", {f"kind {number}": 9 for number in range(MOST_BARS + 5)}, title="kinds"))
    assert svg.count("<rect") == 1 + MOST_BARS + 1
    assert ">other<" in svg
    assert ">45<" in svg


def test_every_value_is_in_a_bar_of_a_histogram() -> None:
    svg, _ = picture_of(histogram("h", [-1, 0, 1, 2.5, 4, 99], [0, 2, 4], title="values"))
    assert re.findall(r">([\d –]+)</text>", svg) == ["0 – 2", "3", "2 – 4", "3"]


def test_an_interval_and_its_value_lie_on_one_scale() -> None:
    svg, _ = picture_of(intervals("i", {"dense": {"nDCG": (0.5, 0.25, 0.75), "recall": (1.0, None, None)}}, title="t"))
    root = fromstring(svg)
    dots = [float(dot.attrib["cx"]) for dot in root.iter("{http://www.w3.org/2000/svg}circle")]
    (line,) = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)"', svg)
    assert float(line[0]) < dots[0] < float(line[1]) < dots[1]
    assert dots[0] - float(line[0]) == float(line[1]) - dots[0]


def test_a_label_is_data() -> None:
    svg, _ = picture_of(bars("n", {"<script>&": 1}, title="a < b"))
    texts = [text.text for text in fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["a < b", "<script>&", "1"]


def test_nothing_at_all_makes_a_picture_too() -> None:
    assert picture_of(bars("none", {}, title="none"))[1] == picture_of(histogram("none", [], range(3), title="none"))[1]


def test_the_same_counts_make_the_same_picture() -> None:
    assert histogram("h", [1, 2, 2], range(5), title="h") == histogram("h", [1, 2, 2], range(5), title="h")
