"""The arXivBot report's Table 1 with ours beside it, by age and by kind of question, and what the numbers rest on."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.answering.questions import KINDS
from pipeline.evaluation.answers.measures import AGES
from pipeline.evaluation.answers.results import (
    ALL,
    CORPUS_PAPERS,
    CUTOFF,
    DATA,
    GRADERS,
    SYSTEMS,
    TABLE_1,
    Group,
    Printed,
    SystemResult,
)
from pipeline.evaluation.report.answers.found import AnswersFound, cell, name_of, series_of
from pipeline.evaluation.report.comparison import FEW, OURS, PUBLISHED
from pipeline.evaluation.report.figures import Bar, BarFigure
from pipeline.evaluation.report.filters import count, month_name, number_of
from pipeline.evaluation.report.grid import Grid, Rows, Section, Value
from pipeline.tables import by_system

_OLD, _RECENT = (Group("age", name) for name in AGES)
_HEAD = (
    "System", "Model", "Factual, old", "Coverage, old", "Factual, recent", "Coverage, recent", "Factual, all",
    "Coverage, all", "Questions",
)  # fmt: skip
_BOTH = ("factual", "coverage")
_ELSEWHERE = "elsewhere"
"""In place of the model of answers that were imported."""


def table_section(found: AnswersFound) -> Section:
    """Table 1 and what it rests on, with a figure of ours."""
    return Section(
        "answers",
        "The arXivBot report's table, and ours",
        tuple(_said(found)),
        tuple(part for part in (_table_1(found), _figure(found), _outcomes(found)) if part is not None),
    )


def _said(found: AnswersFound) -> list[str]:
    """What the two shares are, and in what theirs and ours differ."""
    return [
        "Factual: of the claims that an answer makes, the share that is correct; a claim that is partly so earns half "
        "a point, one that nothing bears out none. Coverage: of the claims of the standard answer, the share that the "
        "answer holds. An answer that abstains has no factual share, and covers nothing.",
        f"To compare the shape, not the height. In the report {_spelt(GRADERS)} people graded; here a judging model "
        f"does, {found.judge or 'once it is asked'}, whose quotes stand on each question's page. Its questions are not "
        "published: ours are others, on other papers. Its corpus has "
        f"{count(CORPUS_PAPERS)} papers, ours {number_of(found.papers, 'paper')} up to the month of a question. "
        "Half a point is our reading of its partial points, and its table has no intervals.",
        *found.judge_checks.sentences(found.judges, "claim_grade"),
        _age_note(found),
        interval_note(len(found.posed)),
    ]


def _spelt(number: int) -> str:
    return {2: "two", 3: "three"}.get(number, str(number))


def _age_note(found: AnswersFound) -> str:
    if not found.cutoff:
        return (
            f"Old and recent are not told apart here: CITELOOM_LLM_CUTOFF, the model's knowledge cut-off, is not set. "
            f"The report divides at {month_name(CUTOFF)}, GPT-4's."
        )
    return (
        f"Old are questions whose newest paper first appeared up to {found.cutoff}, recent those after it: the "
        f"knowledge cut-off in CITELOOM_LLM_CUTOFF, taken for every system. The report divides at {month_name(CUTOFF)}."
    )


def interval_note(questions: int) -> str:
    """What the small numbers under a mean are, and how far they go with so many questions."""
    said = (
        "Under each mean of ours stands its 95 % interval: between these ends it lies in 95 % of 10,000 draws of the "
        "questions with replacement. There is none for a single question, or where all have one value."
    )
    few = f" With {number_of(questions, 'question')} it is too narrow: take differences for no more than a hint."
    return said + few if 1 < questions < FEW else said


def basis(found: AnswersFound) -> str:
    """What our rows rest on."""
    papers = {paper for each in found.posed for paper in each.question.papers}
    months = [month for month in found.months if month] or [""]
    when = month_name(months[0]) if months[0] == months[-1] else f"{month_name(months[0])} to {month_name(months[-1])}"
    told = f"{number_of(len(found.posed), 'question')} on {number_of(len(papers), 'paper')}, {when}"
    judge = f"judge {found.judge_checks.label(found.judge, 'claim_grade')}" if found.judge else "nothing was graded"
    small = f"; no measure of the methods, as {found.small_model} answered or graded" if found.small_model else ""
    return f"{told}; {judge}{small}"


def model_of(found: AnswersFound, system: str) -> str:
    """The model, or models, that a system answered with."""
    return ", ".join(sorted(found.written[system].models)) or _ELSEWHERE


def _table_1(found: AnswersFound) -> Grid:
    ours = [_our_row(found, system) for system in found.systems]
    groups = [Rows([_printed_row(row) for row in TABLE_1], PUBLISHED, f"{DATA}; old and recent 25 each")]
    groups += [Rows(ours, OURS, basis(found))] if ours else []
    lacking = [name_of(system) for system in SYSTEMS if not by_system(found.systems, [system])]
    notes = [f"Not run here: {', '.join(lacking)}; CITELOOM_ANSWER_SYSTEMS says which are."] if lacking else []
    notes.append(
        "The model alone stands beside the report's GPT-4 and GPT-4o, imported answers beside its ChatGPT site. Its "
        "recent half names WikiChat's model as GPT-4, the old one as GPT-4o."
    )
    return Grid(
        "answers_table_1", "Table 1: answers to questions", _HEAD, groups, notes=notes, strong=(name_of("arxivbot"),)
    )


def _printed_row(row: Printed) -> list[Value]:
    old, recent = row.models
    shares = (row.old_factual, row.old_coverage, row.recent_factual, row.recent_coverage, None, None)
    cells = [Value(None if each is None else each / 100, "percent") for each in shares]
    return [Value(row.name), Value(old if old == recent else f"{old}, {recent}"), *cells, Value(50, "count")]


def _our_row(found: AnswersFound, system: str) -> list[Value]:
    groups = [found.result(system, group) for group in (_OLD, _RECENT, ALL)]
    cells = [cell(result, measure) for result in groups for measure in _BOTH]
    asked = Value(found.written[system].done, "count")
    return [Value(name_of(system)), Value(model_of(found, system)), *cells, asked]


def _figure(found: AnswersFound) -> BarFigure | None:
    """Factual and coverage over all questions, system by system."""
    groups = [(name.capitalize(), _bars(found, name)) for name in _BOTH]
    if not any(bars for _, bars in groups):
        return None
    about = "Ours over all questions, on an axis from 0 to 100 %; whiskers: 95 % interval."
    return BarFigure("Factual and coverage", [(name, bars) for name, bars in groups if bars], about)


def _bars(found: AnswersFound, measure: str) -> list[Bar]:
    bars = []
    for system in found.systems:
        value = cell(found.result(system), measure)
        if isinstance(value.value, int | float):
            series = series_of(system, found.systems)
            bars.append(Bar(name_of(system), value.shown, value.value, series, value.low, value.high))
    return bars


def _outcomes(found: AnswersFound) -> Grid | None:
    """What became of the questions, and how many each mean rests on."""
    groups = [("All", ALL), ("Old", _OLD), ("Recent", _RECENT)]
    rows = [Rows(_outcome_rows(found, group), name) for name, group in groups]
    head = (
        "System", "Questions", "Answered", "Abstained", "Claims nothing", "Unreadable", "Factual is of",
        "Coverage is of", "Claims each",
    )  # fmt: skip
    about = (
        "Abstained: the system says that the corpus does not hold the answer. Claims nothing: it spoke without "
        "claiming anything. Unreadable: the judge could not take the answer apart. The last columns: over how many "
        "questions the means are, and the mean of an answer's claims."
    )
    there = [each for each in rows if each.rows]
    return Grid("answers_outcomes", "What the numbers rest on", head, there, about) if there else None


def _outcome_rows(found: AnswersFound, group: Group) -> list[list[Value]]:
    results = [(system, found.result(system, group)) for system in found.systems]
    return [[Value(name_of(system)), *_outcome_cells(result)] for system, result in results if result]


def _outcome_cells(result: SystemResult) -> list[Value]:
    came = [result.outcomes.get(name, 0) for name in ("answered", "abstained", "claims_nothing", "unreadable")]
    rests = [result.measures[name].questions if name in result.measures else 0 for name in _BOTH]
    claims = cell(result, "claims", "one")
    return [*(Value(number, "count") for number in (result.questions, *came, *rests)), claims]


def kinds_section(found: AnswersFound) -> Section | None:
    """The same by kind of question; None where nothing was graded."""
    groups = [Rows(_kind_rows(found, kind), kind.capitalize()) for kind in KINDS]
    there = [each for each in groups if each.rows]
    if not there:
        return None
    head = ("System", "Factual", "Coverage", "Gold passages shown", "Questions", "Answered", "Abstained")
    about = f"Few questions of each kind: read the intervals first. {basis(found)}."
    return Section("kinds", "By kind of question", (), (Grid("answers_kinds", "By kind", head, there, about),))


def _kind_rows(found: AnswersFound, kind: str) -> list[list[Value]]:
    rows = []
    for system in found.systems:
        result = found.result(system, Group("kind", kind))
        if result is not None:
            shares = [cell(result, measure) for measure in (*_BOTH, "gold_shown")]
            counts = (result.questions, result.outcomes.get("answered", 0), result.outcomes.get("abstained", 0))
            rows.append([Value(name_of(system)), *shares, *(Value(number, "count") for number in counts)])
    return rows


def short_grid(found: AnswersFound) -> Grid:
    """What a month's own page shows: each system in a line."""
    head: Sequence[str] = ("System", "Model", "Factual", "Coverage", "Questions", "Abstained")
    rows = []
    for system in found.systems:
        result = found.result(system)
        abstained = Value(result.outcomes.get("abstained", 0) if result else None, "count")
        shares = [cell(result, measure) for measure in _BOTH]
        asked = Value(found.written[system].done, "count")
        rows.append([Value(name_of(system)), Value(model_of(found, system)), *shares, asked, abstained])
    return Grid(
        "answers_short", "Answers by system", head, [Rows(rows)], f"{basis(found)}.", strong=(name_of("arxivbot"),)
    )
