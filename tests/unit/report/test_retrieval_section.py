"""The section of a page on retrieval scores."""

from __future__ import annotations

from pipeline.report.corpus import retrieval_section
from pipeline.report.data import RetrievalScores
from pipeline.report.grid import Grid
from tests.unit.evaluation.made_up import retrieval_scores, same

NOTES = {
    "asking_papers": 4, "papers_in_all": 90,
    "not_measured": {"colbert": "no <b>vectors</b>", "R@50": "too few papers"},
}  # fmt: skip


def grid_of(scores: RetrievalScores) -> Grid:
    (grid,) = retrieval_section(scores).grids
    return grid


def text_of(scores: RetrievalScores) -> str:
    return " ".join(retrieval_section(scores).paragraphs)


def test_a_section_has_a_row_of_each_method_and_says_what_they_rest_on() -> None:
    scores = RetrievalScores(retrieval_scores(30, same), NOTES)
    grid = grid_of(scores)
    assert len(grid.rows) == 4
    assert [cell.plain() for cell in grid.rows[0][:2]] == ["lexical (BM25)", "0.60 (0.50 to 0.70)"]
    assert [row[0].value for row in grid.rows if row[1].best] == ["lexical (BM25)"]
    assert "fused, then ColBERT: not measured; no <b>vectors</b>." in grid.notes
    assert "recall@50: not measured; too few papers." in grid.notes
    text = text_of(scores)
    assert "30 sentences of 4 papers" in text
    assert "360 passages of 30 papers (of 90 of this month or cited)" in text
    assert "With 4 asking papers the intervals are too narrow" in text
    assert "-0.10 (-0.25 to +0.05)" in text


def test_there_is_no_interval_where_none_was_computed() -> None:
    rows = [{**row, "low": None, "high": None} for row in retrieval_scores(30, same)]
    grid = grid_of(RetrievalScores(rows, NOTES))
    assert grid.rows[0][1].plain() == "0.60"


def test_only_metrics_that_were_measured_have_columns() -> None:
    few = [
        row for row in retrieval_scores(30, same) if row["metric"] in ("R@1", "RR@50", "nDCG@10")
    ]
    scores = RetrievalScores(few, NOTES)
    grid = grid_of(scores)
    assert list(grid.columns) == ["Mean over sentences", "recall@1", "MRR", "nDCG@10"]
    assert "less BM25" not in text_of(scores), "the difference is of recall@10"


def test_a_month_without_scores_says_why() -> None:
    scores = RetrievalScores([], {"no_scores": "CITELOOM_RETRIEVAL_QUERIES is 0"})
    assert "was not measured: CITELOOM_RETRIEVAL_QUERIES is 0." in text_of(scores)
    assert retrieval_section(scores).parts == ()


def test_a_month_of_many_asking_papers_has_no_warning() -> None:
    notes = {**NOTES, "asking_papers": 20, "papers_in_all": 30}
    text = text_of(RetrievalScores(retrieval_scores(30, same), notes))
    assert "too narrow" not in text
    assert "of 90 of this" not in text
