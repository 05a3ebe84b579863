"""The pages of a month's questions, one after another in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.answering.question_rows import PosedQuestion, paper_months
from pipeline.evaluation.answers.measures import age_of, answer_measures
from pipeline.evaluation.report.answers.found import CONTROLS, AnswersFound, name_of, order_of
from pipeline.evaluation.report.answers.names import question_file
from pipeline.evaluation.report.answers.shown import Places, Question, answer_view
from pipeline.evaluation.report.answers.views import GoldPlace, GoldView, QuestionView
from pipeline.evaluation.report.corpus import MOST_LINES
from pipeline.evaluation.report.filters import count
from pipeline.evaluation.report.grid import NOTHING, Grid, Rows, Section, Value
from pipeline.evaluation.report.grouped import Grouped, grouped_by_writer
from pipeline.evaluation.report.views import LeftOut
from pipeline.index.links import passage_url
from pipeline.llm.models import is_small_model
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.tables import with_shown_name

_GOLD_WORDS = {"held": "held", "partly": "partly held", "not": "not held"}
_PLACE_COLUMNS = ["passage_id", "arxiv_id", "anchor"]


@dataclass(slots=True)
class Asked:
    """What is counted while the questions go by, so that no trace is read twice."""

    recovered: list[LeftOut] = field(default_factory=list)
    """Answers of models that could not be read and were done without."""
    pages: dict[str, str] = field(default_factory=dict)
    """Question id → page."""

    def add(self, view: QuestionView) -> None:
        """Take one question."""
        self.pages[view.question_id] = view.page
        self.recovered += [
            LeftOut(answer.system, view.question_id, stage, why, view.page)
            for answer in view.answers
            for stage, why in answer.failures
        ]


def question_views(root: DataRoot, month: str, found: AnswersFound, asked: Asked) -> Iterator[QuestionView]:
    """Each question of a month, by id; `asked` takes what other pages need of it."""
    if not found.posed:
        return
    answers = grouped_by_writer(root, month, tables.ANSWERS, key="question_id")
    grades = Grouped(root, month, tables.ANSWER_GRADES, key="question_id")
    places = _places(root, found.posed)
    for posed in sorted(found.posed, key=lambda each: each.question.id):
        rows = [with_shown_name(row, found.shown) for writer in answers for row in writer.of(posed.question.id)]
        graded = [with_shown_name(row, found.shown) for row in grades.of(posed.question.id)]
        view = _question_view(month, posed, rows, graded, places, found)
        asked.add(view)
        yield view


def _places(root: DataRoot, posed: Sequence[PosedQuestion]) -> Places:
    """Where each passage of the questions' papers stands: passage id → (arXiv id, anchor)."""
    papers = pa.array(sorted({paper for each in posed for paper in each.question.papers}))
    found: dict[str, tuple[str, str]] = {}
    for month in paper_months(root, (each.question for each in posed)):
        if read_provenance(root.file(tables.PASSAGES, month)) is not None:
            table = root.read(tables.PASSAGES, month, _PLACE_COLUMNS)
            mine = table.filter(pc.is_in(table["arxiv_id"], value_set=papers))
            ids, arxiv_ids, anchors = (mine[name].to_pylist() for name in _PLACE_COLUMNS)
            found |= dict(zip(ids, zip(arxiv_ids, (each or "" for each in anchors), strict=True), strict=True))
    return found


def _question_view(
    month: str,
    posed: PosedQuestion,
    rows: Sequence[Mapping[str, Any]],
    graded: Sequence[Mapping[str, Any]],
    places: Places,
    found: AnswersFound,
) -> QuestionView:
    question = posed.question
    asked = Question(posed, places, found.judges, sorted(row["system"] for row in rows))
    by_system: dict[str, list[Mapping[str, Any]]] = {}
    for row in graded:
        if row["system"] not in CONTROLS:
            by_system.setdefault(row["system"], []).append(row)
    ordered = sorted(rows, key=lambda row: order_of(row["system"]), reverse=True)  # arXivBot first
    date = question.date or question.month
    models = [each["model"] for each in rows] + [each["judge"] for each in graded]
    return QuestionView(
        month=month,
        page=question_file(question.id),
        question_id=question.id,
        question=question.question,
        kind=question.kind,
        date=date,
        age=age_of(date, found.cutoff) or "",
        reviewed=question.reviewed,
        papers=[(paper, passage_url(paper, "")) for paper in question.papers],
        gold=_gold_views(posed, places),
        held=_held_grid(posed, [row["system"] for row in ordered], by_system, found.judge),
        answers=[answer_view(row, by_system.get(row["system"], ()), asked) for row in ordered],
        small_model=min(filter(is_small_model, models), default=""),
        judge_notes=found.judge_checks.sentences(sorted({row["judge"] for row in graded}), "claim_grade"),
    )


def _gold_views(posed: PosedQuestion, places: Places) -> list[GoldView]:
    return [
        GoldView(place + 1, each.claim, each.paper, each.evidence, _gold_places(posed.gold_passages[place], places))
        for place, each in enumerate(posed.question.claims)
    ]


def _gold_places(passages: Sequence[str], places: Places) -> list[GoldPlace]:
    return [GoldPlace(passage_url(*places[each]), places[each][1]) for each in passages if each in places]


def _held_grid(
    posed: PosedQuestion, systems: Sequence[str], graded: Mapping[str, Sequence[Mapping[str, Any]]], judge: str
) -> Grid | None:
    """Gold claims by system: whether the answer holds each, and which hop showed it first; by the first judge."""
    mine = {system: row["gold"] for system in systems for row in graded.get(system, ()) if row["judge"] == judge}
    if not mine:
        return None
    rows = [
        [Value(f"Gold claim {place + 1}"), *(_held(mine.get(system), place) for system in systems)]
        for place in range(len(posed.question.claims))
    ]
    about = (
        f"By {judge}. The tag is the hop that first showed a passage which holds the claim. {NOTHING}: no verdict "
        "could be read."
    )
    return Grid("held", "Which answers hold it", ("Claim", *map(name_of, systems)), [Rows(rows)], about)


def _held(gold: Sequence[Mapping[str, Any]] | None, place: int) -> Value:
    if gold is None or place >= len(gold):
        return Value(None)
    hop = gold[place]["shown_in_hop"]
    return Value(_GOLD_WORDS.get(gold[place]["verdict"]), tag=f"shown in hop {hop}" if hop else "")


def list_section(found: AnswersFound) -> Section:
    """The questions with their pages and main shares."""
    told = {
        (grade.question_id, grade.system): (grade.outcome, answer_measures(grade))
        for grade in found.grades
        if grade.judge == found.judge
    }
    posed = sorted(found.posed, key=lambda each: each.question.id)
    rows = [_list_row(each, found, told) for each in posed[:MOST_LINES]]
    head = ["Question", "Kind", "Papers", "Newest"]
    head += [f"{name_of(system)}, {what}" for system in reversed(found.systems) for what in ("factual", "coverage")]
    left = len(posed) - MOST_LINES
    notes = [f"The other {count(left)} are in the tables; each has its page."] if left > 0 else []
    about = f"{NOTHING}: there is no such share; an answer that abstained has no factual one."
    grid = Grid("answers_questions", "Questions", head, [Rows(rows)], about, notes, stacked=True)
    return Section("questions", "Questions", (), (grid,))


def _list_row(
    posed: PosedQuestion, found: AnswersFound, told: Mapping[tuple[str, str], tuple[str, Mapping[str, float]]]
) -> list[Value]:
    question = posed.question
    row = [
        Value(question.question, page=question_file(question.id)),
        Value(question.kind),
        Value(len(question.papers), "count"),
        Value(question.date or question.month),
    ]
    for system in reversed(found.systems):
        outcome, measures = told.get((question.id, system), ("", {}))
        tag = "abstained" if outcome == "abstained" else ""
        row += [Value(measures.get("factual"), "percent", tag=tag), Value(measures.get("coverage"), "percent")]
    return row
