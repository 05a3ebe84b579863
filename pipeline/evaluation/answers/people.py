"""Grades of answers to questions: a verdict on each claim of an answer, and on each gold claim
beside it.

Annotators see the claims into which a judge split the answers. Of answers that no judge graded, or
in a study that is to need no model, they see whole sentences, and split these into claims
themselves by giving several verdicts. They see neither verdicts, quotes nor passages of a judge:
passages that were looked up are part of what is tested, so people go by the papers themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline import tables
from pipeline.answering.systems import writes_answers
from pipeline.arxiv.months import select_months
from pipeline.corpus.links import abstract_url
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.export import Export, Item
from pipeline.evaluation.annotation.study import (
    Study,
    Unit,
    assign_letters,
    check_name,
    select_items,
)
from pipeline.evaluation.answers.measures import Grade, read_grades
from pipeline.evaluation.marks import CLAIM_VERDICTS, GOLD_VERDICTS
from pipeline.evaluation.prose import parted
from pipeline.index.papers import rows_of_papers
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name
from pipeline.text import one_line, text_digest

Part = Literal["claim", "gold"]
VERDICTS: Mapping[Part, tuple[str, ...]] = {"claim": CLAIM_VERDICTS, "gold": GOLD_VERDICTS}
MEANINGS: Mapping[Part, Mapping[str, str]] = {
    "claim": {
        "correct": "the papers say all of it, in the same words or in others",
        "partly": "they say some of it and nothing against the rest, or it is a little off",
        "wrong": "they say otherwise",
        "not_checkable": "they say nothing of it",
    },
    "gold": {
        "held": "it says all of the fact, in the same words, in others, or in more detail",
        "partly": "it says some of the fact, or something less exact",
        "not": "it does not say it, or it says otherwise",
    },
}
"""The meaning of each verdict, in the words of the judge's prompt."""
SILENT = ("abstained", "claims_nothing")
"""Outcomes that leave nothing to annotate."""
NO_JUDGE = ""
"""The judge of answers that no model graded."""


@dataclass(frozen=True, slots=True)
class QuestionTexts:
    """A question with its gold claims, and system → its answer: a row of `answers`."""

    question_id: str
    question: str
    month: str
    papers: tuple[str, ...]
    gold: tuple[str, ...]
    answers: Mapping[str, Row]

    def digest(self, system: str) -> str:
        """SHA-256 of the question and a system's answer."""
        return text_digest(f"{self.question}\0{self.answers[system]['text']}")

    def sentence_grade(self, system: str) -> Grade:
        """A grade of an answer that no judge graded, without verdicts: each sentence is a claim."""
        answer = self.answers[system]
        sentences = dict.fromkeys(one_line(sentence["text"]) for sentence in answer["sentences"])
        claims = [text for text in sentences if any(map(str.isalnum, text))]
        outcome = "answered" if claims else "claims_nothing"
        if answer["abstained"]:
            claims, outcome = [], "abstained"
        return {
            "question_id": self.question_id,
            "system": system,
            "judge": NO_JUDGE,
            "outcome": outcome,
            "claims": [{"claim": text, "verdict": None} for text in claims],
            # An answer without claims holds no gold claim.
            "gold": [{"claim": text, "verdict": None if claims else "not"} for text in self.gold],
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
    titles = _titles(root, {paper for row in rows for paper in row["papers"]})
    return {
        row["question_id"]: QuestionTexts(
            row["question_id"],
            row["question"],
            month,
            tuple(titles[paper] for paper in row["papers"]),
            tuple(claim["claim"] for claim in row["claims"]),
            answers[row["question_id"]],
        )
        for row in rows
    }


def sentence_grades(texts: Iterable[QuestionTexts]) -> list[Grade]:
    """`QuestionTexts.sentence_grade` of every answer to these questions."""
    return [question.sentence_grade(system) for question in texts for system in question.answers]


def _titles(root: DataRoot, papers: Collection[str]) -> dict[str, str]:
    """Paper → its title, if the corpus has it, and its address."""
    titles = {paper: abstract_url(paper) for paper in papers}
    for row in rows_of_papers(root, tables.PAPERS, papers, ["arxiv_id", "title"]):
        if row["title"]:
            address = abstract_url(row["arxiv_id"])
            titles[row["arxiv_id"]] = ", ".join(filter(None, (row["title"], address)))
    return titles


def export_grades(
    root: DataRoot,
    name: str,
    months: str,
    systems: Sequence[str] | None,
    *,
    items: int,
    seed: int,
    sentences: bool = False,
) -> Export:
    """A study of questions to which every system has an answer, `items` at most. systems: None for
    all. sentences: show sentences also where a judge has split the answers.

    Raises SettingError for a name or system that cannot be taken, MissingInput where no question
    fits.
    """
    answered = root.months(tables.ANSWERS)
    selected = select_months(months, answered) if answered else []
    texts, grades = _read(root, selected, sentences=sentences)
    if not any(grades.values()):
        raise MissingInput(
            f"of --months {months}, there is no answer: set CITELOOM_QUESTIONS and run citeloom run"
            f" --months {months}"
        )
    selection = select_items(grades, systems, "questions", most=items, seed=seed)
    check_name(name, selection.systems)
    silent: Counter[str] = Counter()
    units: dict[str, Unit] = {}
    shown: list[Item] = []
    for question in selection.item_ids:
        of_question = {system: grades[question][system] for system in selection.systems}
        speaking = [
            system for system, grade in of_question.items() if grade["outcome"] not in SILENT
        ]
        silent.update(of_question.keys() - set(speaking))
        if not speaking:
            continue
        item = f"Q{len(shown) + 1:02}"
        answers = {
            f"{item}-{letter}": _units(
                item, f"{item}-{letter}", of_question[system], texts[question]
            )
            for letter, system in assign_letters(seed, question, speaking).items()
        }
        for of_answer in answers.values():
            units |= of_answer
        shown.append(_item(item, texts[question], answers))
    if not units:
        raise MissingInput("no answer has anything to grade: all abstained, or claim nothing")
    silent_notes = [
        f"{count} answers of {system} abstain or claim nothing: they need no grader"
        for system, count in sorted(silent.items())
    ]
    labels = {unit.label for unit in units.values()}
    workload = (
        f"each annotator has {len(units):,} lines on {len(labels)} answers to"
        f" {len(shown)} questions to grade"
    )
    return Export(
        study=Study(kind="grades", study=name, seed=seed, units=units),
        items=tuple(shown),
        systems=selection.systems,
        shown=("text", "allowed"),
        words={"meanings": MEANINGS},
        notes=(*selection.notes, *silent_notes, workload),
        lacking=selection.lacking,
    )


def _read(
    root: DataRoot, months: Sequence[str], *, sentences: bool
) -> tuple[dict[str, QuestionTexts], dict[str, dict[str, Grade]]]:
    """Question → its words, and question → system → a grade. All judges grade the same claims, so
    the first in the table is taken. Where none graded any of these months, sentences are graded.
    """
    of_judges = {month: [] if sentences else read_grades(root, month) for month in months}
    judged = any(of_judges.values())
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
        grades_of_month = of_judges[month] if judged else sentence_grades(new.values())
        for grade in grades_of_month:
            question_id, system = grade["question_id"], grade["system"]
            if question_id in new and system in new[question_id].answers:
                grades[question_id].setdefault(system, grade)
    return texts, grades


def _units(item: str, label: str, grade: Grade, texts: QuestionTexts) -> dict[str, Unit]:
    """Unit id → unit, of every claim and gold claim of an answer."""
    parts: tuple[tuple[Part, Sequence[Mapping[str, str]]], ...] = (
        ("claim", grade["claims"]),
        ("gold", grade["gold"]),
    )
    return {
        f"{label}-{part}-{number}": Unit(
            item=item,
            label=label,
            month=texts.month,
            item_id=grade["question_id"],
            system=grade["system"],
            text_sha256=texts.digest(grade["system"]),
            part=part,
            number=number,
            text=claim["claim"],
        )
        for part, claims in parts
        for number, claim in enumerate(claims, 1)
    }


def _item(name: str, texts: QuestionTexts, answers: Mapping[str, Mapping[str, Unit]]) -> Item:
    """answers: label → unit id → unit."""
    view, lines = [], {}
    for label, units in answers.items():
        answer = texts.answers[next(iter(units.values())).system]
        claims = {
            part: {unit_id: unit.text for unit_id, unit in units.items() if unit.part == part}
            for part in VERDICTS
        }
        view.append({"label": label, "paragraphs": parted(answer["text"]), "claims": claims})
        for unit_id, unit in units.items():
            allowed = unit.row_class.model_fields["verdict"].description
            lines[unit_id] = (unit.text or "", allowed or "")
    return Item(
        name, {"name": name, "text": texts.question, "papers": texts.papers, "answers": view}, lines
    )
