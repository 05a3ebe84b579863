"""The pages of a month's questions: every answer with its sentences, claims, passages, grades and
steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline import tables
from pipeline.answering.answer import answer_of_row
from pipeline.answering.questions import (
    GoldClaim,
    PosedQuestion,
    Question,
    read_posed_questions,
)
from pipeline.answering.rendering import CLAIM_ORIGINS, StepRenderer, place_in_paper
from pipeline.corpus.links import passage_url
from pipeline.corpus.nouns import Answer, Claim, Passage
from pipeline.evaluation.answers.measures import age_of, answer_measures
from pipeline.evaluation.prose import parted
from pipeline.index.papers import rows_of_papers
from pipeline.llm.models import small_model_among
from pipeline.report.data import (
    AnswersData,
    LeftOut,
    ReportData,
    answering_order,
    rows_by,
)
from pipeline.report.figures import answering_colour
from pipeline.report.formatting import (
    MISSING,
    answering_system,
    passage_link,
    question_file,
)
from pipeline.report.grid import Cell, Grid
from pipeline.report.summary import Row, iterate
from pipeline.report.task_page import PassageExcerpt, excerpt
from pipeline.storage.data_root import DataRoot
from pipeline.system_names import ANSWERING_SYSTEMS, FORMER_ANSWERING_SYSTEMS
from pipeline.tables.writers import with_display_name, writer_name

Places = Mapping[str, tuple[str, str]]
"""Passage id → arXiv id and anchor."""

_QUESTIONS_AT_ONCE = 20
_GOLD_WORDS = {"held": "held", "partly": "partly held", "not": "not held"}


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage that a system read. where: its title and sections; gold: the numbers of the gold
    claims that it holds.
    """

    where: str
    excerpt: PassageExcerpt
    gold: Sequence[int]


@dataclass(frozen=True, slots=True)
class LinkedClaim:
    """A claim of an answer with its passage. used: whether a sentence names it."""

    claim: Claim
    source: str
    passage: ReadPassage | None
    used: bool


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim as the judge split it: a member of `answer_grades.claims`, with the passages that the
    judge was shown.
    """

    row: Row
    passages: Sequence[PassageExcerpt]


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A row of `answer_grades` with its shares."""

    row: Row
    factual: Cell
    coverage: Cell
    claims: Sequence[JudgedClaim]


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """One system's answer with its grades, the first judge's first.

    row: of `answers`. anchor: its place on the page. paragraphs: the text where no sentence rests
    on a claim; else sentences: (text, claims). hops: (query, passages read). steps: the trace in
    words, step by step. failures: (step, reason) of answers of the model that could not be read.
    """

    row: Row
    anchor: str
    colour: int
    model: str
    abstained: bool
    paragraphs: Sequence[str]
    sentences: Sequence[tuple[str, Sequence[LinkedClaim]]]
    claims: Sequence[LinkedClaim]
    hops: Sequence[tuple[str, Sequence[ReadPassage]]]
    steps: Sequence[Sequence[str]]
    grades: Sequence[JudgedAnswer]
    failures: Sequence[tuple[str, str]]

    @property
    def system(self) -> str:
        return str(self.row["system"])


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """The page of a question.

    papers: (arXiv id, address). gold: (claim, (address, anchor) of its passages). held: which
    answers hold the gold claims.
    """

    month: str
    question: Question
    date: str
    age: str
    papers: Sequence[tuple[str, str]]
    gold: Sequence[tuple[GoldClaim, Sequence[tuple[str, str]]]]
    held: Grid | None
    answers: Sequence[SystemAnswer]
    small_model: str

    @property
    def file(self) -> str:
        return question_file(self.question.id)

    @property
    def unreadable(self) -> list[LeftOut]:
        """Answers that could not be read, which systems went on without."""
        return [
            LeftOut(
                answer.system, self.question.id, f"unreadable answer: {step}", reason, self.file
            )
            for answer in self.answers
            for step, reason in answer.failures
        ]


def question_pages(data: ReportData) -> Iterator[QuestionPage]:
    """The page of each question of a month, by id, with the rows of 20 questions in memory."""
    (month,) = data.months
    answered = data.answers
    questions = sorted(
        read_posed_questions(iterate(data.root, tables.QUESTIONS, month.month)),
        key=lambda posed: posed.question.id,
    )
    if not questions:
        return
    places = _places(data.root, questions)
    for first in range(0, len(questions), _QUESTIONS_AT_ONCE):
        batch = questions[first : first + _QUESTIONS_AT_ONCE]
        ids = [posed.question.id for posed in batch]
        answers, grades = (
            rows_by(data.root, month.month, table, "question_id", ids)
            for table in (tables.ANSWERS, tables.ANSWER_GRADES)
        )
        for posed in batch:
            rows = sorted(answers[posed.question.id], key=writer_name)
            yield _question_page(
                month.month,
                posed,
                [with_display_name(row, answered.names) for row in rows],
                [with_display_name(row, answered.names) for row in grades[posed.question.id]],
                places,
                answered,
            )


def _places(root: DataRoot, questions: Sequence[PosedQuestion]) -> Places:
    """Where the passages of the questions' papers are."""
    papers = {paper for posed in questions for paper in posed.question.papers}
    rows = rows_of_papers(root, tables.PASSAGES, papers, ["passage_id", "arxiv_id", "anchor"])
    return {row["passage_id"]: (row["arxiv_id"], row["anchor"] or "") for row in rows}


def _question_page(
    month: str,
    posed: PosedQuestion,
    rows: Sequence[Row],
    graded: Sequence[Row],
    places: Places,
    data: AnswersData,
) -> QuestionPage:
    question = posed.question
    date = question.date or question.month
    systems = sorted(row["system"] for row in rows)
    arxivbot_first = sorted(rows, key=lambda row: answering_order(row["system"]), reverse=True)
    grades: dict[str, list[Row]] = {system: [] for system in systems}
    for row in sorted(graded, key=lambda row: data.judges.index(row["judge"])):
        grades.setdefault(row["system"], []).append(row)
    models = [row["model"] for row in rows] + [row["judge"] for row in graded]
    return QuestionPage(
        month=month,
        question=question,
        date=date,
        age=age_of(date, data.cutoff) or "",
        papers=[(paper, passage_url(paper, "")) for paper in question.papers],
        gold=[
            (claim, _links(posed.gold_passages[place], places))
            for place, claim in enumerate(question.claims)
        ],
        held=_held_grid(posed, [row["system"] for row in arxivbot_first], grades, data.judge),
        answers=[
            _answer(row, grades[row["system"]], posed, places, systems) for row in arxivbot_first
        ],
        small_model=small_model_among(models),
    )


def _links(passage_ids: Sequence[str], places: Places) -> list[tuple[str, str]]:
    known = [places[name] for name in passage_ids if name in places]
    return [(passage_link(arxiv_id, anchor), anchor) for arxiv_id, anchor in known]


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
        cells = []
        for system in systems:
            claims = gold.get(system, ())
            cells.append(_held_cell(claims[place]) if place < len(claims) else Cell(None))
        rows.append([f"Gold claim {place + 1}", *cells])
    columns = ["Claim", *(answering_system(name) for name in systems)]
    about = (
        f"By {judge}. The tag is the hop that first showed a passage which holds the claim."
        f" {MISSING}: no verdict could be read."
    )
    return Grid("held", "Which answers hold it", columns, rows, about=about)


def _held_cell(claim: Row) -> Cell:
    hop = claim["shown_in_hop"]
    return Cell(_GOLD_WORDS.get(claim["verdict"]), tag=f"shown in hop {hop}" if hop else "")


def _answer(
    row: Row, graded: Sequence[Row], posed: PosedQuestion, places: Places, systems: Sequence[str]
) -> SystemAnswer:
    """systems: all that answered the question."""
    answer, system = answer_of_row(dict(row)), row["system"]
    passages = answer.passages
    read = {name: _read_passage(passage, posed) for name, passage in passages.items()}
    used = {number for sentence in answer.sentences for number in sentence.claims}
    claims = {
        claim.number: LinkedClaim(
            claim,
            CLAIM_ORIGINS.get(claim.source, claim.source),
            read.get(claim.passage_id),
            claim.number in used,
        )
        for claim in answer.claims
    }
    grounded = bool(claims) and not answer.abstained
    queries = dict(enumerate(answer.queries, 1))
    steps = answer.trace.get("steps", ())
    known = system in ANSWERING_SYSTEMS or system in FORMER_ANSWERING_SYSTEMS
    return SystemAnswer(
        row=row,
        # An imported system may be called anything, so its name is no anchor.
        anchor=system if known else f"answer-{systems.index(system) + 1}",
        colour=answering_colour(system, systems),
        model=row["model"] or ("no model" if known else "written elsewhere"),
        abstained=answer.abstained,
        paragraphs=() if grounded else parted(answer.text),
        sentences=[
            (sentence.text, [claims[number] for number in sentence.claims])
            for sentence in (answer.sentences if grounded else ())
        ],
        claims=list(claims.values()),
        hops=[
            (queries.get(number, ""), [read[passage.passage_id] for passage in hop])
            for number, hop in enumerate(answer.shown, 1)
        ],
        steps=_steps(answer, passages),
        grades=[_judged_answer(grade, posed, places) for grade in graded],
        failures=[
            (str(step["stage"]), str(step["failure"])) for step in steps if step.get("failure")
        ],
    )


def _read_passage(passage: Passage, posed: PosedQuestion) -> ReadPassage:
    gold = [
        place + 1 for place, ids in sorted(posed.gold_passages.items()) if passage.passage_id in ids
    ]
    shown = excerpt(passage.text, passage.arxiv_id, passage.anchor)
    return ReadPassage(place_in_paper(passage), shown, gold)


def _steps(answer: Answer, passages: Mapping[str, Passage]) -> list[list[str]]:
    """The trace in words, step by step; a ranking with its order."""
    steps = []
    render_step = StepRenderer()
    for step in answer.trace.get("steps", ()):
        orders = [
            f"  order: {' > '.join(map(str, window.get('order', ())))}"
            for window in step.get("windows", ())
        ]
        steps.append(render_step(step, passages) + orders)
    return steps


def _judged_answer(row: Row, posed: PosedQuestion, places: Places) -> JudgedAnswer:
    measures = answer_measures(row)
    papers = posed.question.papers
    only_paper = papers[0] if len(papers) == 1 else None
    claims = []
    for claim in row["claims"]:
        passages = []
        for passage in claim["passages"] or ():
            name = passage["passage_id"]
            quoted = claim["quoted"] == "passage" and claim["passage_id"] == name
            arxiv_id, _ = places.get(name, (only_paper, ""))
            quote = claim["quote"] if quoted else ""
            passages.append(excerpt(passage["text"], arxiv_id, passage["anchor"], quote))
        claims.append(JudgedClaim(claim, passages))
    return JudgedAnswer(
        row,
        Cell(measures.get("factual"), "percent"),
        Cell(measures.get("coverage"), "percent"),
        claims,
    )
