"""The figures that the papers print, as reports show them beside ours."""

from __future__ import annotations

import pytest

from pipeline.report.measures import TABLE_MEASURES, published


def test_the_arxivbot_reports_table_has_its_rows_and_halves() -> None:
    rows = published("arxivbot")
    assert [row["factual_old"] for row in rows] == ["25", "28", "81", "84", "95", "94"]
    assert [row["coverage_recent"] for row in rows] == ["0", "0", "72", "71", "88", "92"]


@pytest.mark.parametrize(
    ("table", "systems", "preference"), [("table_1", 6, 99.99), ("table_2", 4, 100.0)]
)
def test_the_chatcite_papers_tables_have_a_value_for_each_measure_and_all_votes(
    table: str, systems: int, preference: float
) -> None:
    rows = [row for row in published("chatcite") if row["table"] == table]
    assert len(rows) == systems
    metrics = {measure.metric for measure in TABLE_MEASURES}
    assert metrics - rows[0].keys() == {"rougeL"}, "the paper has one ROUGE-L"
    assert sum(float(row["g_vote"]) for row in rows) == pytest.approx(preference)
