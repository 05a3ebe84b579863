"""The words that grades do not hold: of questions, of answers, and which papers they are about. From a
month's tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipeline import tables
from pipeline.answering.answer_rows import all_answers
from pipeline.evaluation.answers.sheets import Shown
from pipeline.index.links import abstract_url
from pipeline.storage.data_root import DataRoot
from pipeline.wikipedia.root import month_in


def shown_in(root: DataRoot, month: str) -> dict[str, Shown]:
    """Question id → its words and those of every answer to it, of a month; none where nothing was asked.

    Raises as `DataRoot.iterate` does.
    """
    if not root.file(tables.QUESTIONS, month).exists():
        return {}
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for row in all_answers(root, month, ["question_id", "system", "text"]):
        answers[row["question_id"]][row["system"]] = row["text"]
    rows = root.rows(tables.QUESTIONS, month, ["question_id", "question", "papers"])
    titles = _titles(root, {paper for row in rows for paper in row["papers"]})
    return {
        row["question_id"]: Shown(
            row["question"], answers[row["question_id"]], month, tuple(_told(paper, titles) for paper in row["papers"])
        )
        for row in rows
    }


def _titles(root: DataRoot, papers: Iterable[str]) -> dict[str, str]:
    """Paper → title, of those that are in the corpus."""
    wanted = set(papers)
    months = sorted({month for paper in wanted if (month := month_in(root, paper))})
    return {
        row["arxiv_id"]: row["title"]
        for month in months
        if root.file(tables.PAPERS, month).exists()
        for row in root.iterate(tables.PAPERS, month, ["arxiv_id", "title"])
        if row["arxiv_id"] in wanted and row["title"]
    }


def _told(paper: str, titles: dict[str, str]) -> str:
    return f"{titles[paper]}, {abstract_url(paper)}" if paper in titles else abstract_url(paper)
