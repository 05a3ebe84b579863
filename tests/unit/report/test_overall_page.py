"""The page over all months: its headline, the best systems, leaderboards, and differences between
models.
"""

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline import tables
from pipeline.report.frames import read_report
from pipeline.report.pages import overall_page
from pipeline.report.publish import write_overall_page
from pipeline.report.related_work import differences, paper_tables
from tests.unit.evaluation.made_up import write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.unit.report.test_pages import add_large_model, folded
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"


@pytest.fixture
def place(tmp_path):
    """Two months with related work and answers."""
    place = make_workspace(tmp_path, judges="judge-one", llm_model="some-model")
    for month in ("2024-02", MONTH):
        write_month(place.root, month, judges=("judge-one",), tasks=3)
        write_answers(place.root, month)
    return place


def page_of(place):
    months = place.root.months(tables.DUMP_MEMBERS)
    return overall_page(read_report(place, months, skip_damaged=True))


def written(place):
    """The page over all months as it is published."""
    write_overall_page(place)
    return LexborHTMLParser((place.root.path / "reports/index.html").read_text())


def test_the_corpus_comes_first_definitions_are_closed_and_leaderboards_can_be_sorted(place):
    keys = [section.key for section in page_of(place).sections]
    assert keys.index("corpus") < keys.index("months") < keys.index("leaderboard")
    parsed = written(place)
    leaderboards = parsed.css("table.sortable")
    assert len(leaderboards) == 2
    for table in leaderboards:
        heads = len(table.css("thead th"))
        assert all(len(row.css("[data-sort]")) == heads for row in table.css("tbody tr"))
    assert len(parsed.css("script")) == 1


def test_the_best_value_of_each_group_is_marked_not_the_papers_own_system(place):
    table_1 = paper_tables(read_report(place, [MONTH]).related).grids[0]
    published = {(row[0].value, row[1].value): row for row in table_1.groups[0].rows}
    assert published["zero-shot", "gpt-4-turbo-preview"][2].best
    assert not published["ChatCite", "gpt-3.5-turbo-1106"][2].best
    assert published["ChatCite", "gpt-3.5-turbo-1106"][6].best


def test_two_models_of_one_system_are_compared_over_their_common_tasks(tmp_path):
    place = make_workspace(tmp_path, judges="judge-one")
    write_month(place.root, MONTH, model="small", tasks=3, judged=False)
    add_large_model(place.root, tables.SUMMARIES)
    add_large_model(place.root, tables.SCORES, lambda row: row | {"value": row["value"] + 1})
    section = differences(read_report(place, [MONTH]).related)
    by_key = {grid.key: grid for grid in section.grids}
    groups = {group.title: group.rows for group in by_key["differences"].groups}
    (row,) = groups["Between models of one system"]
    assert [cell.value for cell in row[:2]] == ["ChatCite (large)", "ChatCite (small)"]
    assert (row[3].value, row[-1].value) == (1.0, 3)
    assert {"From ChatCite (large)", "From ChatCite (small)"} < groups.keys()


def test_the_page_is_written_again_only_where_it_changed(place):
    page = place.root.path / "reports/index.html"
    write_overall_page(place)
    before = page.stat().st_mtime_ns
    write_overall_page(place)
    assert page.stat().st_mtime_ns == before
    write_answers(place.root, MONTH, questions=2)
    write_overall_page(place)
    changed = page.read_text()
    assert page.stat().st_mtime_ns > before
    page.write_text("as written by an earlier version")
    write_overall_page(place)
    assert page.read_text() == changed


def test_an_old_month_without_tables_of_answers_breaks_nothing(place):
    for table in (tables.QUESTIONS, tables.ANSWERS, tables.ANSWER_GRADES, tables.ANSWER_SCORES):
        place.root.file(table, "2024-02").unlink()
    shown = written(place)
    assert "2024-02/index.html" in {link.attributes["href"] for link in shown.css("tbody a")}
    assert "4 questions on 2 papers" in folded(shown.text())


@pytest.mark.parametrize("table", [tables.PAPERS, tables.SCORES, tables.ANSWER_GRADES])
def test_a_broken_table_of_another_month_is_told_and_stops_nothing(place, table):
    place.root.file(table, "2024-02").write_bytes(b"torn")
    text = folded(written(place).text())
    assert "has tables that cannot be read" in text
    assert "4 questions on 2 papers" in text
