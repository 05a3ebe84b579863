"""One answer as a question's page shows it: sentences on claims on passages, what was searched for,
grades, the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.answering.answer import Answer, Claim, answer_of_row
from pipeline.answering.question_rows import PosedQuestion
from pipeline.answering.rendering import step_lines
from pipeline.answering.retrieval import RetrievedPassage
from pipeline.evaluation.answers.grades import grade_of
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.cited import parted
from pipeline.evaluation.report.answers.found import series_of
from pipeline.evaluation.report.answers.views import (
    AnswerView,
    ClaimGradeView,
    ClaimView,
    GoldGradeView,
    GradeView,
    HopView,
    ReadView,
    SaidView,
)
from pipeline.evaluation.report.grid import Value
from pipeline.evaluation.report.sentences import passage_view
from pipeline.evaluation.report.views import PassageView

Row = Mapping[str, Any]
Places = Mapping[str, tuple[str, str]]
"""Passage id → arXiv id and anchor."""

_SOURCES = {"passage": "", "model": "said by the model, borne out by this passage", "front_matter": "from the tables"}
_QUOTED = {"passage": "in a passage", "gold": "in a gold claim"}


@dataclass(frozen=True, slots=True)
class Question:
    """What an answer's page needs of its question. judges: in the order in which they are told; systems: all that
    answered it."""

    posed: PosedQuestion
    places: Places
    judges: Sequence[str]
    systems: Sequence[str]

    def anchor(self, system: str) -> str:
        """A place on the page for a system, safe whatever an imported file calls it."""
        return system if system in tables.ANSWERING_SYSTEMS else f"answer-{self.systems.index(system) + 1}"

    def gold_of(self, passage_id: str) -> list[int]:
        """Numbers of the gold claims that a passage holds."""
        return [place + 1 for place, ids in sorted(self.posed.gold_passages.items()) if passage_id in ids]


def answer_view(row: Row, graded: Sequence[Row], question: Question) -> AnswerView:
    """One system's answer with its grades, the first judge's first."""
    answered = answer_of_row(dict(row))
    read = {found.passage_id: _read_view(found, question) for hop in answered.shown for found in hop}
    claims = _claim_views(answered, read)
    grounded = bool(claims) and not answered.abstained
    steps = answered.trace.get("steps", ())
    return AnswerView(
        system=row["system"],
        anchor=question.anchor(row["system"]),
        series=series_of(row["system"], question.systems),
        model=row["model"] or "",
        abstained=answered.abstained,
        paragraphs=() if grounded else parted(answered.text),
        sentences=_said(answered, claims) if grounded else (),
        claims=claims,
        hops=_hop_views(answered, read),
        steps=list(_told(answered, steps)),
        calls=row["calls"] or 0,
        prompt_tokens=row["prompt_tokens"] or 0,
        completion_tokens=row["completion_tokens"] or 0,
        grades=[_grade_view(each, question) for each in sorted(graded, key=lambda each: _turn(each, question))],
        failures=[(str(step["stage"]), str(step["failure"])) for step in steps if step.get("failure")],
    )


def _turn(row: Row, question: Question) -> int:
    return question.judges.index(row["judge"])


def _said(answered: Answer, claims: Sequence[ClaimView]) -> list[SaidView]:
    by_number = {claim.number: claim for claim in claims}
    return [
        SaidView(place, each.text, [by_number[number] for number in each.claims])
        for place, each in enumerate(answered.sentences, 1)
    ]


def _hop_views(answered: Answer, read: Mapping[str, ReadView]) -> list[HopView]:
    queries = dict(enumerate(answered.queries, 1))
    return [
        HopView(number, queries.get(number, ""), [read[found.passage_id] for found in hop])
        for number, hop in enumerate(answered.shown, 1)
    ]


def _read_view(found: RetrievedPassage, question: Question) -> ReadView:
    where = " › ".join((found.title, *(found.section_path or (found.kind.replace("_", " "),))))
    return ReadView(where, passage_view(found.text, found.arxiv_id, found.anchor), question.gold_of(found.passage_id))


def _claim_views(answered: Answer, read: Mapping[str, ReadView]) -> list[ClaimView]:
    used = {number for each in answered.sentences for number in each.claims}
    return [_claim_view(claim, read, used) for claim in answered.claims]


def _claim_view(claim: Claim, read: Mapping[str, ReadView], used: set[int]) -> ClaimView:
    source = _SOURCES.get(claim.source, claim.source)
    return ClaimView(claim.number, claim.text, source, claim.hop, read.get(claim.passage_id), claim.number in used)


def _told(answered: Answer, steps: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The trace in words, step by step; a ranking with its order."""
    passages = {found.passage_id: found for hop in answered.shown for found in hop}
    for step in steps:
        lines = step_lines(step, passages)
        for window in step.get("windows", ()):
            lines.append(f"  order: {' > '.join(map(str, window.get('order', ())))}")
        yield lines


def _grade_view(row: Row, question: Question) -> GradeView:
    measures = answer_measures(grade_of(dict(row)))
    return GradeView(
        judge=row["judge"],
        outcome=row["outcome"],
        factual=Value(measures.get("factual"), "percent"),
        coverage=Value(measures.get("coverage"), "percent"),
        claims=[_claim_grade(each, question) for each in row["claims"]],
        gold=[_gold_grade(number, each) for number, each in enumerate(row["gold"], 1)],
        failures=row["split_failures"] or (),
    )


def _claim_grade(each: Row, question: Question) -> ClaimGradeView:
    return ClaimGradeView(
        claim=each["claim"],
        verdict=each["verdict"] or "",
        quote=each["quote"] or "",
        where=_QUOTED.get(each["quoted"] or "", ""),
        failure=each["failure"] or "",
        cut=bool(each["cut"]),
        passages=[_evidence(shown, each, question) for shown in each["passages"] or ()],
    )


def _evidence(shown: Row, each: Row, question: Question) -> PassageView:
    """A passage that the judge was shown, with its quote where it stands in this one."""
    quote = each["quote"] if each["quoted"] == "passage" and each["passage_id"] == shown["passage_id"] else ""
    papers = question.posed.question.papers
    arxiv_id, _ = question.places.get(shown["passage_id"], (papers[0] if len(papers) == 1 else None, ""))
    return passage_view(shown["text"], arxiv_id, shown["anchor"], quote)


def _gold_grade(number: int, each: Row) -> GoldGradeView:
    return GoldGradeView(
        number, each["claim"], each["verdict"] or "", each["quote"] or "", bool(each["quoted"]), each["failure"] or ""
    )
