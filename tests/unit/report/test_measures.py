"""The figures that the papers print, as reports show them beside ours, and whose ours are."""

import pytest

from pipeline.llm.models import is_small_model
from pipeline.report.measures import published_rows, select


def test_the_arxivbot_reports_table_has_its_rows_and_halves():
    rows = published_rows("arxivbot", "table_1", select("factual_old", "coverage_recent"))
    assert [row.cells["factual_old"] for row in rows] == [0.25, 0.28, 0.81, 0.84, 0.95, 0.94]
    assert [row.cells["coverage_recent"] for row in rows] == [0, 0, 0.72, 0.71, 0.88, 0.92]
    assert rows[4].model == "GPT-4o, GPT-4", "as printed in its halves"


@pytest.mark.parametrize(
    ("table", "systems", "preference"), [("table_1", 6, 99.99), ("table_2", 4, 100.0)]
)
def test_the_chatcite_papers_tables_have_one_rouge_l_and_all_votes(table, systems, preference):
    rows = published_rows("chatcite", table, select("rougeLsum", "rougeL", "g_vote", "tasks"))
    assert len(rows) == systems
    assert all(row.cells.keys() == {"rougeLsum", "g_vote", "tasks"} for row in rows)
    assert sum(row.cells["g_vote"] for row in rows) == pytest.approx(preference)


def test_the_bundled_model_is_known_by_its_name():
    names = ["SmolLM2-135M-Instruct-Q4_K_M.gguf", "gpt-4-turbo-preview", None]
    assert [is_small_model(name) for name in names] == [True, False, False]
