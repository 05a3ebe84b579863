"""How the UI's tables, pictures and details of a month's report are drawn."""

from assets.details import report_details
from assets.rendering import cell, markdown_table, report_address
from pipeline import tables
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import write_month
from tests.workspaces import make_workspace

MONTH = "2024-03"


def test_what_could_be_markup_is_escaped_in_a_cell():
    assert cell("a|b <script>\n*c* [d](e)") == "a\\|b &lt;script&gt; \\*c\\* \\[d\\]\\(e\\)"
    assert cell("\\|x\\*") == "\\\\\\|x\\\\\\*", (
        "TeX brings backslashes of its own: none may undo ours"
    )
    assert markdown_table(["x"], [["1"], [2]]) == "| x |\n| --- |\n| 1 |\n| 2 |"


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
