"""Grades of answers to questions: a verdict on each claim of an answer, and on each gold claim
beside it.

Annotators see the claims into which a judge split the answers. Of answers that no judge graded, or
in a study that is to need no model, they see whole sentences, and split these into claims
themselves by giving several verdicts. They see neither verdicts, quotes nor passages of a judge:
passages that were looked up are part of what is tested, so people go by the papers themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline import tables
from pipeline.answering.systems import writes_answers
from pipeline.arxiv.months import select_months
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
class QuestionTexts:
    """A row of `questions`, its month, and system → its answer: a row of `answers`."""

    question: Row
    month: str
    answers: Mapping[str, Row]

    def digest(self, system: str) -> str:
        """SHA-256 of the question and a system's answer."""
        return text_digest(f"{self.question['question']}\0{self.answers[system]['text']}")

    def sentence_grade(self, system: str) -> Grade:
        """A grade of an answer that no judge graded, without verdicts: each sentence is a claim."""
        answer = self.answers[system]
        sentences = dict.fromkeys(one_line(sentence["text"]) for sentence in answer["sentences"])
        claims = [text for text in sentences if any(map(str.isalnum, text))]
        outcome = "answered" if claims else "claims_nothing"
        if answer["abstained"]:
            claims, outcome = [], "abstained"
        # An answer without claims holds no gold claim.
        verdict = None if claims else "not"
        gold = [claim["claim"] for claim in self.question["claims"]]
        return {
            "question_id": self.question["question_id"],
            "system": system,
            "judge": NO_JUDGE,
            "outcome": outcome,
            "claims": [{"claim": text, "verdict": None} for text in claims],
            "gold": [{"claim": text, "verdict": verdict} for text in gold],
        }


def question_texts(root: DataRoot, month: str) -> dict[str, QuestionTexts]:
    """Question id → its words and its answers, of a month. Raises as `DataRoot.iterate` does."""
    if not root.file(tables.QUESTIONS, month).exists():
        return {}
    answers: dict[str, dict[str, Row]] = defaultdict(dict)
    if root.file(tables.ANSWERS, month).exists():
        columns = ["question_id", "system", "model", "text", "sentences", "abstained"]
        for row in root.iterate(tables.ANSWERS, month, columns):
            if writes_answers(row["system"]):
                answers[row["question_id"]][writer_name(row)] = row
    rows = root.rows(tables.QUESTIONS, month, ["question_id", "question", "papers", "claims"])
    return {
        row["question_id"]: QuestionTexts(row, month, answers[row["question_id"]]) for row in rows
    }


def sentence_grades(texts: Iterable[QuestionTexts]) -> list[Grade]:
    """`QuestionTexts.sentence_grade` of every answer to these questions."""
    return [question.sentence_grade(system) for question in texts for system in question.answers]


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

    Raises SettingError for a question that two months ask, MissingInput where there is nothing to
    grade, and as `select_items` does.
    """
    answered = root.months(tables.ANSWERS)
    texts, grades = _read(
        root, select_months(months, answered) if answered else [], sentences=sentences
    )
    selection = select_items(grades, systems, most=most, seed=seed)
    items = [
        _item(root, texts[question], [grades[question][system] for system in selection.systems])
        for question in selection.item_ids
    ]
    if not any(item.texts for item in items):
        raise MissingInput("no answer has anything to grade: all abstained, or claim nothing")
    return selection, [item for item in items if item.texts]


def _read(
    root: DataRoot, months: Sequence[str], *, sentences: bool
) -> tuple[dict[str, QuestionTexts], dict[str, dict[str, Grade]]]:
    """Question → its words, and question → system → a grade. All judges grade the same claims, so
    the first in the table is taken. In a month without a judge, sentences are graded.
    """
    texts: dict[str, QuestionTexts] = {}
    grades: dict[str, dict[str, Grade]] = {}
    for month in months:
        new = question_texts(root, month)
        for twice in sorted(texts.keys() & new.keys()):
            raise SettingError(
                f"question {twice} is asked in {texts[twice].month} and in {month}: run citeloom"
                " run --months all, or name the months of one"
            )
        texts |= new
        grades |= {question: {} for question in new}
        of_judges = [] if sentences else read_grades(root, month)
        for grade in of_judges or sentence_grades(new.values()):
            question_id, system = grade["question_id"], grade["system"]
            if question_id in new and system in new[question_id].answers:
                grades[question_id].setdefault(system, grade)
    return texts, grades


def _item(root: DataRoot, texts: QuestionTexts, grades: Iterable[Grade]) -> StudyItem:
    question = texts.question
    papers = {paper: abstract_url(paper) for paper in question["papers"]}
    for row in rows_of_papers(root, tables.PAPERS, papers, ["arxiv_id", "title"]):
        papers[row["arxiv_id"]] = f"{row['title']}, {papers[row['arxiv_id']]}"
    return StudyItem(
        question["question_id"],
        texts.month,
        question["question"],
        [("Papers", [*papers.values()])],
        {
            grade["system"]: StudyText(
                texts.answers[grade["system"]]["text"],
                texts.digest(grade["system"]),
                {
                    "claim": [claim["claim"] for claim in grade["claims"]],
                    "gold": [claim["claim"] for claim in grade["gold"]],
                },
            )
            for grade in grades
            if grade["outcome"] not in SILENT
        },
    )
