"""What the UI shows of a month's report: where it lies, its main table, a picture."""

from pathlib import Path

import pytest

from assets.details import report_details
from assets.rendering import report_address
from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.errors import SettingError
from pipeline.report.stages import REPORT
from pipeline.settings import load_settings
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import workspace, write_month
from tests.workspaces import make_workspace

MONTH = "2024-03"


def test_a_report_shows_its_main_table_a_picture_and_where_it_lies(tmp_path):
    place = workspace(tmp_path)
    write_month(place.root, MONTH, judges=("judge-one",), model="a|model")
    run_stage(REPORT, place, MONTH)
    shown = report_details(place, MONTH)
    assert Path(shown["page"].path).is_file()
    told = shown["systems"].md_str.splitlines()
    assert told[0] == "2 tasks of March 2024; judge judge-one."
    assert {line.split(" | ")[0] for line in told[4:]} == {"| ChatCite", "| zero-shot"}
    assert "a\\|model" in told[4]
    assert shown["picture"].md_str.startswith("![systems](data:image/svg+xml;base64,")


def test_where_reports_are_served_the_page_is_a_link(tmp_path):
    place = make_workspace(tmp_path, serve_url="https://papers.example/")
    assert (
        report_address(place, MONTH).value == f"https://papers.example/reports/{MONTH}/index.html"
    )
    with pytest.raises(SettingError):
        load_settings(_env_file=None, serve_url="javascript:alert(1)")


def test_a_month_without_related_work_shows_its_page_alone(tmp_path):
    place = workspace(tmp_path)
    write_month(place.root, MONTH, tasks=0)
    run_stage(REPORT, place, MONTH)
    assert report_details(place, MONTH).keys() == {"page"}


def test_a_month_that_nobody_judged_has_a_picture_of_its_citations(tmp_path):
    place = workspace(tmp_path)
    write_month(place.root, MONTH, judged=False)
    assert "picture" in report_details(place, MONTH)
    write_table(place.root, tables.SCORES, MONTH, [])
    assert report_details(place, MONTH).keys() == {"page", "systems"}
