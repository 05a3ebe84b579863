"""What the pages and tables of a report show of its month."""

import pytest

from pipeline import tables
from pipeline.report.formatting import task_file
from tests.cases import cases
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import write_ledger, write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.unit.report.test_pages import (
    MONTH,
    TASK_PAGE,
    built,
    cells,
    folded,
    parsed_page,
    report_tables,
    text_of,
)
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

PAGES = {"task": TASK_PAGE, "written": task_file("2403.90001#S2", "-written")}


def report_of(folder, case):
    """The report of a case, and the page over all months."""
    settings = dict(case.get("settings", {}))
    if "models" in case:
        models = dict(case["models"])
        url = "http://127.0.0.1:9/v1"
        settings["models"] = write_models(folder / "set", url, *models.pop("names"), **models)
    work = make_workspace(folder, **settings)
    for month in ("2024-02", MONTH) if "earlier" in case else (MONTH,):
        write_month(work.root, month, **case["month"])
        if "answers" in case:
            write_answers(work.root, month, **case["answers"])
    for name, change in case.get("changes", {}).items():
        change = {column: None if value == "" else value for column, value in change.items()}
        rows = [row | change for row in work.root.rows(tables.TABLES[name], MONTH)]
        write_table(work.root, tables.TABLES[name], MONTH, rows)
    for stage, rows in case.get("ledgers", {}).items():
        write_ledger(work.root, stage, MONTH, rows)
    return built(work)


def selected(page, selector):
    """The texts of nodes of a page, or of an attribute of theirs, each once."""
    selector, _, attribute = selector.partition(" @")
    nodes = page.css(selector)
    texts = [node.attributes.get(attribute, "") if attribute else node.text() for node in nodes]
    return list(dict.fromkeys(map(folded, texts)))


@cases("unit/report/months.toml")
def test_a_report_shows_what_its_month_holds(tmp_path, case):
    work = report_of(tmp_path, case)
    for key, are_there in (("says", True), ("lacks", False)):
        for name, words in case.get(key, {}).items():
            text = text_of(work, PAGES.get(name, name))
            assert [each for each in words if (each in text) is not are_there] == [], name
    for name, expected in case.get("shows", {}).items():
        page = parsed_page(work, PAGES.get(name, name))
        assert {selector: selected(page, selector) for selector in expected} == expected, name
    grids = report_tables(work)
    for path, expected in case.get("cells", {}).items():
        values = expected if isinstance(expected, list) else [expected]
        assert cells(grids, path) == pytest.approx(values), path
    assert grids.keys().isdisjoint(case.get("no_tables", ()))
