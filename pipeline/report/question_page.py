"""The pages of a month's questions: every answer with its sentences, claims, passages, grades and
steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline import tables
from pipeline.answering.answer import Answer, answer_of_row
from pipeline.answering.questions import PosedQuestion
from pipeline.answering.rendering import step_lines
from pipeline.corpus.links import passage_url
from pipeline.corpus.passage import Passage
from pipeline.evaluation.answers.measures import age_of, answer_measures
from pipeline.evaluation.judge_figures import judge_sentences
from pipeline.evaluation.prose import parted
from pipeline.index.papers import rows_of_papers
from pipeline.llm.models import is_small_model
from pipeline.report.answers_data import AnswersData, answering_order
from pipeline.report.corpus import LeftOut
from pipeline.report.costs import USAGE
from pipeline.report.figures import answering_colour
from pipeline.report.formatting import MISSING, answering_system, passage_link, question_file
from pipeline.report.grid import Cell, Grid
from pipeline.report.month_data import rows_by
from pipeline.report.task_page import excerpt
from pipeline.storage.data_root import DataRoot
from pipeline.system_names import ANSWERING_SYSTEMS
from pipeline.tables.writers import with_shown_name, writer_name

Row = Mapping[str, Any]
Places = Mapping[str, tuple[str, str]]
"""Passage id → arXiv id and anchor."""

_QUESTIONS_AT_ONCE = 20
_SOURCES = {
    "passage": "",
    "model": "said by the model, supported by this passage",
    "front_matter": "from the tables",
}
_GOLD_WORDS = {"held": "held", "partly": "partly held", "not": "not held"}


@dataclass(slots=True)
class QuestionTally:
    """What the other pages of the month need of the questions, so that no trace is read twice."""

    recovered: list[LeftOut] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    """Question id → page."""

    def add(self, page: Row) -> None:
        """Add a question."""
        question_id = page["question"].id
        self.pages[question_id] = page["file"]
        self.recovered += [
            LeftOut(answer["system"], question_id, step, reason, page["file"])
            for answer in page["answers"]
            for step, reason in answer["failures"]
        ]


def question_pages(
    root: DataRoot, month: str, data: AnswersData, tally: QuestionTally
) -> Iterator[Row]:
    """What the page of each question of a month shows, by id, with the rows of 20 questions in
    memory.
    """
    if not data.questions:
        return
    places = _places(root, data.questions)
    questions = sorted(data.questions, key=lambda posed: posed.question.id)
    for first in range(0, len(questions), _QUESTIONS_AT_ONCE):
        batch = questions[first : first + _QUESTIONS_AT_ONCE]
        ids = [posed.question.id for posed in batch]
        answers, grades = (
            rows_by(root, month, table, "question_id", ids)
            for table in (tables.ANSWERS, tables.ANSWER_GRADES)
        )
        for posed in batch:
            question_id = posed.question.id
            rows = [
                with_shown_name(row, data.names)
                for row in sorted(answers[question_id], key=writer_name)
            ]
            graded = [with_shown_name(row, data.names) for row in grades[question_id]]
            page = _question_page(posed, rows, graded, places, data) | {"month": month}
            tally.add(page)
            yield page


def _places(root: DataRoot, questions: Sequence[PosedQuestion]) -> Places:
    """Where the passages of the questions' papers are."""
    papers = {paper for posed in questions for paper in posed.question.papers}
    rows = rows_of_papers(root, tables.PASSAGES, papers, ["passage_id", "arxiv_id", "anchor"])
    return {row["passage_id"]: (row["arxiv_id"], row["anchor"] or "") for row in rows}


def _question_page(
    posed: PosedQuestion,
    rows: Sequence[Row],
    graded: Sequence[Row],
    places: Places,
    data: AnswersData,
) -> dict[str, Any]:
    question = posed.question
    systems = sorted(row["system"] for row in rows)
    arxivbot_first = sorted(rows, key=lambda row: answering_order(row["system"]), reverse=True)
    by_system: dict[str, list[Row]] = {}
    for row in sorted(graded, key=lambda row: data.judges.index(row["judge"])):
        by_system.setdefault(row["system"], []).append(row)
    date = question.date or question.month
    models = [row["model"] for row in rows] + [row["judge"] for row in graded]
    return {
        "file": question_file(question.id),
        "question": question,
        "date": date,
        "age": age_of(date, data.cutoff) or "",
        # (arXiv id, address) of each paper
        "papers": [
            (paper, passage_link(paper, "") and passage_url(paper, "")) for paper in question.papers
        ],
        # (claim, (address, anchor) of its passages)
        "gold": [
            (
                claim,
                [
                    (passage_link(*places[name]), places[name][1])
                    for name in posed.gold_passages[place]
                    if name in places
                ],
            )
            for place, claim in enumerate(question.claims)
        ],
        "held": _held_grid(posed, [row["system"] for row in arxivbot_first], by_system, data.judge),
        "answers": [
            _answer(row, by_system.get(row["system"], ()), posed, places, systems)
            for row in arxivbot_first
        ],
        "small_model": min((model for model in models if is_small_model(model)), default=""),
        "judge_notes": judge_sentences(sorted({row["judge"] for row in graded}), "claim_grade"),
    }


def _held_grid(
    posed: PosedQuestion, systems: Sequence[str], graded: Mapping[str, Sequence[Row]], judge: str
) -> Grid | None:
    """Gold claims by system: whether the answer holds each, and which hop showed it first; by the
    first judge.
    """
    gold = {
        system: row["gold"]
        for system in systems
        for row in graded.get(system, ())
        if row["judge"] == judge
    }
    if not gold:
        return None
    rows = []
    for place in range(len(posed.question.claims)):
        cells = [Cell(None)] * len(systems)
        for column, system in enumerate(systems):
            if place < len(gold.get(system, ())):
                claim = gold[system][place]
                hop = claim["shown_in_hop"]
                cells[column] = Cell(
                    _GOLD_WORDS.get(claim["verdict"]), tag=f"shown in hop {hop}" if hop else ""
                )
        rows.append([f"Gold claim {place + 1}", *cells])
    columns = ["Claim", *(answering_system(name) for name in systems)]
    about = (
        f"By {judge}. The tag is the hop that first showed a passage which holds the claim."
        f" {MISSING}: no verdict could be read."
    )
    return Grid("held", "Which answers hold it", columns, rows, about=about)


def _answer(
    row: Row, graded: Sequence[Row], posed: PosedQuestion, places: Places, systems: Sequence[str]
) -> dict[str, Any]:
    """One system's answer with its grades, the first judge's first. systems: all that answered."""
    answer, system = answer_of_row(dict(row)), row["system"]
    passages = {passage.passage_id: passage for hop in answer.shown for passage in hop}
    read = {name: _read_passage(passage, posed) for name, passage in passages.items()}
    used = {number for sentence in answer.sentences for number in sentence.claims}
    claims = {
        claim.number: {
            "claim": claim,
            "source": _SOURCES.get(claim.source, claim.source),
            "passage": read.get(claim.passage_id),
            "used": claim.number in used,
        }
        for claim in answer.claims
    }
    grounded = bool(claims) and not answer.abstained
    queries = dict(enumerate(answer.queries, 1))
    steps = answer.trace.get("steps", ())
    known = system in ANSWERING_SYSTEMS
    return {
        "system": system,
        # Its place on the page. An imported system may be called anything, so its name is no
        # anchor.
        "anchor": system if known else f"answer-{systems.index(system) + 1}",
        "colour": answering_colour(system, systems),
        "model": row["model"] or ("no model" if known else "written elsewhere"),
        **{name: row[name] or 0 for name in USAGE},
        "abstained": answer.abstained,
        # The text where no sentence rests on a claim, else (text, claims) of each sentence.
        "paragraphs": () if grounded else parted(answer.text),
        "sentences": [
            (sentence.text, [claims[number] for number in sentence.claims])
            for sentence in (answer.sentences if grounded else ())
        ],
        "claims": list(claims.values()),
        # (query, passages read)
        "hops": [
            (queries.get(number, ""), [read[passage.passage_id] for passage in hop])
            for number, hop in enumerate(answer.shown, 1)
        ],
        "steps": _steps(answer, passages),
        "grades": [_grade(grade, posed, places) for grade in graded],
        "failures": [
            (str(step["stage"]), str(step["failure"])) for step in steps if step.get("failure")
        ],
    }


def _read_passage(passage: Passage, posed: PosedQuestion) -> Row:
    """A passage that a system read, with its title and sections, and the numbers of the gold claims
    that it holds.
    """
    where = " › ".join(
        (passage.title, *(passage.section_path or (passage.kind.replace("_", " "),)))
    )
    gold = [
        place + 1 for place, ids in sorted(posed.gold_passages.items()) if passage.passage_id in ids
    ]
    return {
        "where": where,
        "excerpt": excerpt(passage.text, passage.arxiv_id, passage.anchor),
        "gold": gold,
    }


def _steps(answer: Answer, passages: Mapping[str, Passage]) -> list[list[str]]:
    """The trace in words, step by step; a ranking with its order."""
    steps = []
    for step in answer.trace.get("steps", ()):
        orders = [
            f"  order: {' > '.join(map(str, window.get('order', ())))}"
            for window in step.get("windows", ())
        ]
        steps.append(step_lines(step, passages) + orders)
    return steps


def _grade(row: Row, posed: PosedQuestion, places: Places) -> Row:
    """A row of `answer_grades` with its shares, and each claim's passages as the judge was shown
    them.
    """
    measures = answer_measures(row)
    shares = {name: Cell(measures.get(name), "percent") for name in ("factual", "coverage")}
    papers = posed.question.papers
    claims = []
    for claim in row["claims"]:
        passages = []
        for passage in claim["passages"] or ():
            name = passage["passage_id"]
            quote = (
                claim["quote"]
                if claim["quoted"] == "passage" and claim["passage_id"] == name
                else ""
            )
            arxiv_id, _ = places.get(name, (papers[0] if len(papers) == 1 else None, ""))
            passages.append(excerpt(passage["text"], arxiv_id, passage["anchor"], quote))
        claims.append(claim | {"passages": passages})
    return {**row, **shares, "claims": claims}
