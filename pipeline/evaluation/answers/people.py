"""Grades of answers to questions: a verdict on each claim of an answer, and on each gold claim
beside it.

Annotators see the claims into which a judge split the answers. Of answers that no judge graded, or
in a study that is to need no model, they see whole sentences, and split these into claims
themselves by giving several verdicts. They see neither verdicts, quotes nor passages of a judge:
passages that were looked up are part of what is tested, so people go by the papers themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline import tables
from pipeline.answering.systems import writes_answers
from pipeline.corpus.links import abstract_url
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import (
    Part,
    Selection,
    StudyItem,
    StudyText,
    select_items,
)
from pipeline.evaluation.answers.measures import Grade, read_grades
from pipeline.evaluation.marks import CLAIM_VERDICTS, GOLD_VERDICTS
from pipeline.identity.months import select_months
from pipeline.index.papers import rows_of_papers
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name
from pipeline.text import one_line, text_digest

VERDICTS: Mapping[Part, tuple[str, ...]] = {"claim": CLAIM_VERDICTS, "gold": GOLD_VERDICTS}
SILENT = ("abstained", "claims_nothing")
"""Outcomes that leave nothing to annotate."""
NO_JUDGE = ""
"""The judge of answers that no model graded."""


@dataclass(frozen=True, slots=True)
class GradableAnswer:
    """A row of `answers` with its month and the row of its question."""

    month: str
    question: Row
    answer: Row

    @property
    def digest(self) -> str:
        """SHA-256 of the question and the answer."""
        return text_digest(f"{self.question['question']}\0{self.answer['text']}")

    def sentence_grade(self) -> Grade:
        """A grade by no judge, without verdicts: each sentence is a claim."""
        sentences = dict.fromkeys(one_line(row["text"]) for row in self.answer["sentences"])
        claims = [text for text in sentences if any(map(str.isalnum, text))]
        outcome = "answered" if claims else "claims_nothing"
        if self.answer["abstained"]:
            claims, outcome = [], "abstained"
        # An answer without claims holds no gold claim.
        verdict = None if claims else "not"
        return {
            "question_id": self.question["question_id"],
            "system": writer_name(self.answer),
            "judge": NO_JUDGE,
            "outcome": outcome,
            "claims": [{"claim": text, "verdict": None} for text in claims],
            "gold": [
                {"claim": claim["claim"], "verdict": verdict} for claim in self.question["claims"]
            ],
        }


def gradable_answers(root: DataRoot, month: str) -> dict[tuple[str, str], GradableAnswer]:
    """(Question id, system) → its answer, of a month. Raises as `DataRoot.iterate` does."""
    files = root.file(tables.QUESTIONS, month), root.file(tables.ANSWERS, month)
    if not all(file.exists() for file in files):
        return {}
    columns = ["question_id", "question", "papers", "claims"]
    rows = root.rows(tables.QUESTIONS, month, columns)
    questions = {row["question_id"]: row for row in rows}
    columns = ["question_id", "system", "model", "text", "sentences", "abstained"]
    return {
        (row["question_id"], writer_name(row)): GradableAnswer(
            month, questions[row["question_id"]], row
        )
        for row in root.iterate(tables.ANSWERS, month, columns)
        if writes_answers(row["system"]) and row["question_id"] in questions
    }


def answers_to_grade(
    root: DataRoot,
    months: str,
    systems: Sequence[str] | None,
    *,
    most: int,
    seed: int,
    sentences: bool = False,
) -> tuple[Selection, list[StudyItem]]:
    """Questions to which every system has an answer, `most` at most, with the answers that claim
    anything. systems: None for all. sentences: show sentences also where a judge has split the
    answers.

    All judges grade the same claims, so the first in the table is taken. In a month without a
    judge, sentences are shown. Raises SettingError for a question that two months ask,
    MissingInput where there is nothing to grade, and as `select_items` does.
    """
    answered = root.months(tables.ANSWERS)
    texts: dict[tuple[str, str], GradableAnswer] = {}
    grades: dict[str, dict[str, Grade]] = defaultdict(dict)
    for month in select_months(months, answered) if answered else []:
        new = gradable_answers(root, month)
        for twice in sorted(grades.keys() & {question for question, _ in new}):
            raise SettingError(f"question {twice} is asked in {month} and before: narrow --months")
        texts |= new
        of_judges = [] if sentences else read_grades(root, month)
        for grade in of_judges or [answer.sentence_grade() for answer in new.values()]:
            question, system = grade["question_id"], grade["system"]
            if (question, system) in new:
                grades[question].setdefault(system, grade)
    selection = select_items(grades, systems, most=most, seed=seed)
    items = [
        _item(root, [(texts[question, name], grades[question][name]) for name in selection.systems])
        for question in selection.item_ids
    ]
    if not any(item.texts for item in items):
        raise MissingInput("no answer has anything to grade: all abstained, or claim nothing")
    return selection, [item for item in items if item.texts]


def _item(root: DataRoot, answers: Sequence[tuple[GradableAnswer, Grade]]) -> StudyItem:
    """The item of one question."""
    first = answers[0][0]
    papers = {paper: abstract_url(paper) for paper in first.question["papers"]}
    for row in rows_of_papers(root, tables.PAPERS, papers, ["arxiv_id", "title"]):
        papers[row["arxiv_id"]] = f"{row['title']}, {papers[row['arxiv_id']]}"
    return StudyItem(
        first.question["question_id"],
        first.month,
        first.question["question"],
        [("Papers", [*papers.values()])],
        {
            grade["system"]: StudyText(
                answer.answer["text"],
                answer.digest,
                {
                    "claim": [claim["claim"] for claim in grade["claims"]],
                    "gold": [claim["claim"] for claim in grade["gold"]],
                },
            )
            for answer, grade in answers
            if grade["outcome"] not in SILENT
        },
    )
