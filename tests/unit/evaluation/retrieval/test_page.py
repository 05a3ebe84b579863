"""The part of a month's page that shows retrieval scores."""

from __future__ import annotations

from dataclasses import replace

from selectolax.lexbor import LexborHTMLParser

from pipeline.evaluation.retrieval.picture import Measured, RetrievalView, retrieval_view, told
from pipeline.report.pages import month_page
from pipeline.report.views import MonthView
from tests.unit.evaluation.made_up import retrieval_scores, same

NOTES = {
    "form_in_use": "sections", "asking_papers": 4, "papers_in_all": 90,
    "not_measured": {"colbert": "no <b>vectors</b>", "R@50": "too few papers"},
}  # fmt: skip


def page_of(view: RetrievalView) -> LexborHTMLParser:
    return LexborHTMLParser(month_page(MonthView("2024-03", 9, 8, 100, [], retrieval=view)).decode())


def text_of(page: LexborHTMLParser) -> str:
    return " ".join(page.text().split())


def test_each_method_has_a_line_in_each_form_and_a_bar() -> None:
    page = page_of(retrieval_view(retrieval_scores(30, same), NOTES))
    rows = page.css('div[aria-label="Retrieval scores"] tbody tr')
    assert len(rows) == 3 * (1 + 4)
    assert rows[1].text(separator="|", strip=True).split("|")[:2] == ["lexical (BM25)", "0.60 (0.50 to 0.70)"]
    bars = page.css("h2#retrieval ~ figure .bar")
    assert len(bars) == 12
    assert all(len(bar.css("rect.interval")) == 1 for bar in bars)


def test_the_page_says_how_much_was_asked_and_of_what() -> None:
    text = text_of(page_of(retrieval_view(retrieval_scores(30, same), NOTES)))
    assert "30 sentences of 4 papers" in text
    assert "360 passages of 30 papers, of 90 there are up to this month" in text
    assert "With 4 papers asking, it is too narrow" in text
    assert "-0.10 (-0.25 to +0.05)" in text


def test_what_was_not_measured_is_said_and_escaped() -> None:
    page = page_of(retrieval_view(retrieval_scores(30, same), NOTES))
    assert "fused, then ColBERT: not measured; no <b>vectors</b>" in text_of(page)
    assert "recall@50: not measured; too few papers" in text_of(page)


def test_no_interval_is_drawn_where_there_is_none() -> None:
    rows = [{**row, "low": None, "high": None} for row in retrieval_scores(30, same)]
    page = page_of(retrieval_view(rows, NOTES))
    assert page.css("rect.interval") == []
    assert "0.60 (0" not in text_of(page)


def test_a_month_without_scores_says_why() -> None:
    page = page_of(retrieval_view([], {"no_scores": "CITELOOM_RETRIEVAL_QUERIES is 0"}))
    assert "was not measured: CITELOOM_RETRIEVAL_QUERIES is 0." in text_of(page)
    assert page.css_first("h2#retrieval ~ figure") is None


def test_a_month_of_many_asking_papers_is_not_called_a_hint() -> None:
    view = retrieval_view(retrieval_scores(30, same), {**NOTES, "asking_papers": 20})
    assert "too narrow" not in text_of(page_of(view))
    assert "of 90 there are" not in text_of(page_of(replace(view, papers_in_all=30)))


def test_a_difference_has_its_sign() -> None:
    assert told(Measured(0.1, -0.02, 0.2), signed=True) == "+0.10 (-0.02 to +0.20)"
    assert told(Measured(0.5, None, None)) == "0.50"
