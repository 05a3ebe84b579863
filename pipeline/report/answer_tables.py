"""Tables and figures of answers: the arXivBot report's Table 1 beside ours, retrieval, differences,
and checks of the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from pipeline.answering.questions import KINDS
from pipeline.evaluation.answers import results as published
from pipeline.evaluation.answers.measures import AGES, Outcome, answer_measures
from pipeline.evaluation.answers.results import (
    ALL,
    HopGain,
    QuestionGroup,
    SystemResult,
    answers_agreement,
    difference,
    hop_gains,
)
from pipeline.evaluation.judge_figures import judge_label, judge_sentences
from pipeline.report.answers_data import AnswersData, answering_order
from pipeline.report.figures import BarFigure, answering_colour, bar
from pipeline.report.formatting import (
    MISSING,
    answering_system,
    count,
    month_name,
    month_range,
    number_of,
    question_file,
)
from pipeline.report.grid import (
    Cell,
    Form,
    Grid,
    Row,
    RowGroup,
    Section,
    mean_cell,
    percent_cell,
    with_rows,
)
from pipeline.report.related_work_tables import OURS, PUBLISHED, interval_notes
from pipeline.tables.writers import by_system

_OLD, _RECENT = (QuestionGroup("age", name) for name in AGES)
_SHARES = ("factual", "coverage")
_TABLE_1 = [
    "System",
    "Model",
    "Factual, old",
    "Coverage, old",
    "Factual, recent",
    "Coverage, recent",
    "Factual, all",
    "Coverage, all",
    "Questions",
]
_OUTCOMES: tuple[Outcome, ...] = ("answered", "abstained", "claims_nothing", "unreadable")


def table_section(data: AnswersData) -> Section:
    """Table 1 beside ours, and what the numbers rest on."""
    judge = f"the judge is {data.judge}" if data.judge else "no answer was graded"
    paragraphs = [
        (
            "Compare rankings, not absolute scores: models, papers and questions differ. The best"
            " value of each group is bold."
        ),
        (
            f"In the report three people graded; here {judge}. A judge's quotes are on each"
            " question's page. The report's questions are not published; ours are others, on other"
            f" papers. Its corpus has {count(published.CORPUS_PAPERS)} papers."
        ),
        *judge_sentences(data.judges, "claim_grade"),
        _age_note(data),
        *interval_notes(len(data.questions), "question", "questions", bool(data.judge)),
    ]
    definitions = (
        (
            "Factual: of the claims that an answer makes, the share that is correct; a partly"
            " correct claim earns half a point, an unsupported one none. An answer that abstains"
            " has no factual share."
        ),
        (
            "Coverage: of the claims of the standard answer, the share that the answer holds. An"
            " answer that abstains covers nothing."
        ),
        "Half a point is our reading of the report's partial points; its table has no intervals.",
    )
    parts = (_table_1(data), *with_rows(_outcomes(data)))
    return Section(
        "answers", "The arXivBot report's table and ours", paragraphs, parts, definitions
    )


def _age_note(data: AnswersData) -> str:
    divides = f"The report divides at {month_name(published.CUTOFF)}, GPT-4's."
    if not data.cutoff:
        return (
            "Old and recent questions are not separated here because CITELOOM_LLM_CUTOFF, the"
            f" model's knowledge cut-off, is not set. {divides}"
        )
    return (
        f"Old questions are those whose newest paper first appeared up to {data.cutoff}, recent"
        " ones those after it: the knowledge cut-off in CITELOOM_LLM_CUTOFF, used for every"
        f" system. {divides}"
    )


def basis(data: AnswersData) -> str:
    """What our rows rest on: questions, papers, months and judge."""
    papers = {paper for posed in data.questions for paper in posed.question.papers}
    judge = (
        f"judge {judge_label(data.judge, 'claim_grade')}" if data.judge else "nothing was graded"
    )
    small = (
        f"; not a measure of the methods, as {data.small_model} answered or graded"
        if data.small_model
        else ""
    )
    questions = f"{number_of(len(data.questions), 'question')} on {number_of(len(papers), 'paper')}"
    return f"{questions}, {month_range(data.months)}; {judge}{small}"


def measure_cell(result: SystemResult | None, measure: str, form: Form = "percent") -> Cell:
    """A mean with its interval; empty where it could not be computed."""
    return mean_cell(result.measures.get(measure) if result else None, form)


def _table_1(data: AnswersData) -> Grid:
    rows: list[Row] = []
    for row in published.TABLE_1:
        old, recent = row.models
        shares = (row.old_factual, row.old_coverage, row.recent_factual, row.recent_coverage)
        model = old if old == recent else f"{old}, {recent}"
        rows.append(
            [row.name, model, *(percent_cell(percent / 100) for percent in shares), None, None, 50]
        )
    groups = [RowGroup(rows, PUBLISHED, f"{published.DATA}; old and recent 25 each")]
    ours = [
        [
            answering_system(system),
            data.model_of(system),
            *(
                measure_cell(data.result(system, group), name)
                for group in (_OLD, _RECENT, ALL)
                for name in _SHARES
            ),
            data.written[system].items,
        ]
        for system in data.systems
    ]
    groups += [RowGroup(ours, OURS, basis(data))] if ours else []
    missing = [
        answering_system(system)
        for system in published.SYSTEMS
        if not by_system(data.systems, [system])
    ]
    notes = [f"Not run here (CITELOOM_ANSWER_SYSTEMS): {', '.join(missing)}."] if missing else []
    notes.append(
        "The model alone corresponds to the report's GPT-4 and GPT-4o, imported answers to its"
        " ChatGPT site. The report's recent half names WikiChat's model as GPT-4, its old half as"
        " GPT-4o."
    )
    best_of = _TABLE_1[2:-1]
    return Grid(
        "answers_table_1",
        "Table 1: answers to questions",
        _TABLE_1,
        groups=groups,
        notes=notes,
        best_of=best_of,
    )


def published_figures(data: AnswersData) -> list[BarFigure]:
    """Factual and coverage as published for old and recent questions, beside ours over all."""
    groups = []
    for measure in _SHARES:
        bars = [
            bar(f"{row.name} ({row.models[0]}), {age}", percent_cell(share / 100), 8, hollow=True)
            for row in published.TABLE_1
            for age, share in (
                ("old", getattr(row, f"old_{measure}")),
                ("recent", getattr(row, f"recent_{measure}")),
            )
        ]
        cells = [(system, measure_cell(data.result(system), measure)) for system in data.systems]
        ours = [
            bar(answering_system(system), cell, answering_colour(system, data.systems))
            for system, cell in cells
            if cell.value is not None
        ]
        groups += [(measure.capitalize(), bars + ours)] if ours else []
    about = (
        "Outlined: Table 1 of the arXivBot report, old and recent questions. Filled: ours over all"
        " questions, with 95 % intervals. Compare rankings, not absolute scores: models, questions"
        " and papers differ."
    )
    return [BarFigure("Published and ours", groups, about)] if groups else []


def leaderboard(data: AnswersData) -> Grid:
    """Every system with its shares over all questions, the highest coverage first."""

    def coverage(system: str) -> float:
        return float(measure_cell(data.result(system), "coverage").value or 0)

    columns = ["System", "Model", "Factual", "Coverage", "Questions", "Abstained"]
    rows: list[Row] = []
    for system in sorted(data.systems, key=lambda system: (-coverage(system), system)):
        result = data.result(system)
        shares = [measure_cell(result, name) for name in _SHARES]
        abstained = result.outcomes.get("abstained", 0) if result else None
        rows.append(
            [
                answering_system(system),
                data.model_of(system),
                *shares,
                data.written[system].items,
                abstained,
            ]
        )
    return Grid(
        "answers_leaderboard",
        "Answers: leaderboard",
        columns,
        rows,
        about=f"{basis(data)}.",
        best_of=("Factual", "Coverage"),
        sortable=True,
    )


def _outcomes(data: AnswersData) -> Grid:
    """What became of the questions, and over how many each mean is."""
    groups = [
        RowGroup(_outcome_rows(data, group), name)
        for name, group in (("All", ALL), ("Old", _OLD), ("Recent", _RECENT))
    ]
    columns = [
        "System",
        "Questions",
        "Answered",
        "Abstained",
        "Claims nothing",
        "Unreadable",
        "Factual is of",
        "Coverage is of",
        "Claims per answer",
    ]
    about = (
        "Abstained: the system says that the corpus does not hold the answer. Claims nothing: the"
        " answer makes no claim. Unreadable: the judge could not split the answer. The last"
        " columns: over how many questions the means are, and the mean number of claims."
    )
    groups = [group for group in groups if group.rows]
    return Grid("answers_outcomes", "What the numbers rest on", columns, groups=groups, about=about)


def _outcome_rows(data: AnswersData, group: QuestionGroup) -> list[Row]:
    rows: list[Row] = []
    for system in data.systems:
        result = data.result(system, group)
        if result is not None:
            outcomes = [result.outcomes.get(name, 0) for name in _OUTCOMES]
            rests = [
                result.measures[name].count if name in result.measures else 0 for name in _SHARES
            ]
            claims = measure_cell(result, "claims", "one")
            rows.append([answering_system(system), result.questions, *outcomes, *rests, claims])
    return rows


def kinds_section(data: AnswersData) -> Section | None:
    """The shares by kind of question; None where nothing was graded."""
    groups = []
    for kind in KINDS:
        rows = []
        for system in data.systems:
            result = data.result(system, QuestionGroup("kind", kind))
            if result is not None:
                shares = [measure_cell(result, name) for name in (*_SHARES, "gold_shown")]
                answered, abstained = (result.outcomes.get(name, 0) for name in _OUTCOMES[:2])
                rows.append(
                    [answering_system(system), *shares, result.questions, answered, abstained]
                )
        groups += [RowGroup(rows, kind.capitalize())] if rows else []
    columns = [
        "System",
        "Factual",
        "Coverage",
        "Gold passages shown",
        "Questions",
        "Answered",
        "Abstained",
    ]
    about = f"Each kind has few questions: read the intervals first. {basis(data)}."
    grid = Grid(
        "answers_kinds",
        "By kind",
        columns,
        groups=groups,
        about=about,
        best_of=("Factual", "Coverage"),
    )
    return Section("kinds", "By kind of question", (), (grid,)) if groups else None


def retrieval_section(data: AnswersData, most: int | None = None) -> Section | None:
    """What retrieval showed, apart from what a model made of it; None where no system searched.

    most: how many questions to list that a further hop helped; None where questions have no pages
    to link to.
    """
    gains = sorted(
        hop_gains(grade for grade in data.grades if grade["judge"] == data.judge),
        key=lambda gain: (answering_order(gain.system), gain.hop),
    )
    grids = with_rows(_gold_shown(data), _hops(data), _gains(gains))
    if most is not None and any(gain.hop > 1 for gain in gains):
        grids.append(_helped(data, gains, most))
    text = (
        "Gold claims shown needs no model: a claim of the standard answer counts as shown where a"
        " passage that holds its evidence was among those that the system read; claims without a"
        " known passage do not count. Coverage of what was shown is the model's part."
    )
    return (
        Section("retrieval-of-answers", "Retrieval, apart from the model", (text,), grids)
        if grids
        else None
    )


def _gold_shown(data: AnswersData) -> Grid:
    rows = []
    for system in data.systems:
        result = data.result(system)
        if result is not None and "gold_shown" in result.measures:
            measures = ("gold_shown_first_hop", "gold_shown", "coverage_of_shown")
            shares = [measure_cell(result, measure) for measure in measures]
            rows.append([answering_system(system), *shares, result.measures["gold_shown"].count])
    columns = [
        "System",
        "Shown by the first hop",
        "Shown by the last hop",
        "Coverage of what was shown",
        "Questions",
    ]
    best_of = columns[1:-1]
    return Grid("answers_shown", "Gold claims shown", columns, rows, best_of=best_of)


def _hops(data: AnswersData) -> Grid:
    rows = []
    for system in data.systems:
        hops = data.hops[system]
        if any(hops.keys() - {0}):
            more = sum(questions for number, questions in hops.items() if number > 2)
            mean = sum(number * questions for number, questions in hops.items()) / hops.total()
            rows.append([answering_system(system), hops[0], hops[1], hops[2], more, mean])
    columns = ["System", "No search", "One hop", "Two hops", "Three and more", "Hops per question"]
    about = (
        "Questions by number of searches; a system searches again only where its model asks for it."
    )
    return Grid("answers_hops", "Hops used", columns, rows, about=about)


def _gains(gains: Sequence[HopGain]) -> Grid:
    rows = [
        [
            answering_system(gain.system),
            gain.hop,
            gain.questions,
            gain.known,
            gain.shown,
            percent_cell(gain.shown / gain.known if gain.known else None),
            Cell(gain.held, "one"),
            len(gain.helped),
        ]
        for gain in gains
    ]
    columns = [
        "System",
        "Hop",
        "Questions",
        "Their gold claims",
        "First shown",
        "Share",
        "Points",
        "Questions helped",
    ]
    about = (
        "First shown: gold claims that this hop was the first to show. Points: what the answers"
        " earn for these, one for each claim held, a half for partly. The table does not show"
        " whether the model would have known them otherwise."
    )
    return Grid("answers_gains", "Gain of each hop", columns, rows, about=about)


def _helped(data: AnswersData, gains: Sequence[HopGain], most: int) -> Grid:
    """The questions that a hop after the first helped."""
    texts = {posed.question.id: posed.question.question for posed in data.questions}
    rows = [
        [
            Cell(texts.get(question, question), page=question_file(question)),
            answering_system(gain.system),
            gain.hop,
        ]
        for gain in gains
        for question in gain.helped
        if gain.hop > 1
    ]
    left = len(rows) - most
    notes = [f"The other {count(left)} are in the table answer_grades."] if left > 0 else []
    about = "" if rows else "None: no answer has points for a claim that a later hop showed first."
    columns = ["Question", "System", "Hop"]
    title = "Questions that a further hop helped"
    return Grid(
        "answers_helped", title, columns, rows[:most], about=about, notes=notes, stacked=True
    )


def differences_section(data: AnswersData) -> Section | None:
    """Paired differences between systems, and between models of a system; None for fewer than two
    systems.
    """
    rows = []
    for first, second in combinations(reversed(data.systems), 2):
        intervals = [
            difference(data.grades, data.judge, first, second, measure) for measure in _SHARES
        ]
        if any(intervals):
            cells = [mean_cell(interval, "one", 100) for interval in intervals]
            rows.append([answering_system(first), answering_system(second), *cells])
    about = (
        "In percentage points, over the questions for which both systems have the measure; for"
        " factual that excludes questions from which either abstained. Where an interval includes"
        " 0, the questions do not separate the two."
    )
    columns = ["System", "Less", "Factual", "Coverage"]
    grid = Grid("answers_differences", "Differences between systems", columns, rows, about=about)
    return Section("differences", "Paired differences of answers", (), (grid,)) if rows else None


def judges_section(data: AnswersData) -> Section | None:
    """The judges side by side, and their agreement; None for a single one."""
    if len(data.judges) < 2:
        return None
    groups = []
    for judge in data.judges:
        results = [(system, data.result(system, judge=judge)) for system in data.systems]
        rows = [
            [
                answering_system(system),
                *(measure_cell(result, name) for name in _SHARES),
                result.outcomes.get("answered", 0),
            ]
            for system, result in results
            if result is not None
        ]
        groups += [RowGroup(rows, judge)] if rows else []
    columns = ["System", "Factual", "Coverage", "Answered"]
    about = (
        "No mean mixes verdicts of two judges. All judges graded the claims into which the first"
        " split the answers."
    )
    beside = Grid(
        "answers_judges",
        "Each judge",
        columns,
        groups=groups,
        about=about,
        best_of=("Factual", "Coverage"),
    )
    return Section("judges", "A second judge", (), (beside, _agreement_grid(data)))


def _agreement_grid(data: AnswersData) -> Grid:
    first, second = data.judges[:2]
    ours, theirs = (
        [grade for grade in data.grades if grade["judge"] == judge] for judge in (first, second)
    )
    rows = []
    for measure in _SHARES:
        agreed = answers_agreement(ours, theirs, measure)
        if agreed is not None:
            rows.append(
                [
                    measure.capitalize(),
                    agreed.sections,
                    agreed.spearman,
                    percent_cell(agreed.same_order),
                    agreed.compared,
                    Cell(100 * agreed.mean_difference, "one"),
                ]
            )
    columns = ["Measure", "Answers", "Spearman", "Same order", "Pairs", "Mean difference"]
    about = (
        f"{first} and {second}, answer by answer. Same order: of two answers to one question that"
        " neither judge grades equally, the share that both put in one order. Mean difference: the"
        " second less the first, in percentage points."
    )
    return Grid("answers_agreement", "Agreement of judges on answers", columns, rows, about=about)


def questions_section(data: AnswersData, most: int) -> Section:
    """The questions with their pages and main shares."""
    graded = {
        (grade["question_id"], grade["system"]): (grade["outcome"], answer_measures(grade))
        for grade in data.grades
        if grade["judge"] == data.judge
    }
    questions = sorted(
        (posed.question for posed in data.questions), key=lambda question: question.id
    )
    rows: list[Row] = []
    for question in questions[:most]:
        row: list[Any] = [
            Cell(question.question, page=question_file(question.id)),
            question.kind,
            len(question.papers),
            question.date or question.month,
        ]
        for system in reversed(data.systems):
            outcome, measures = graded.get((question.id, system), ("", {}))
            tag = "abstained" if outcome == "abstained" else ""
            row += [
                Cell(measures.get("factual"), "percent", tag=tag),
                Cell(measures.get("coverage"), "percent"),
            ]
        rows.append(row)
    columns = ["Question", "Kind", "Papers", "Newest"]
    columns += [
        f"{answering_system(system)}, {measure}"
        for system in reversed(data.systems)
        for measure in _SHARES
    ]
    left = len(questions) - most
    notes = [f"The other {count(left)} are in the tables; each has its page."] if left > 0 else []
    about = f"{MISSING}: no such share; an answer that abstained has no factual share."
    grid = Grid(
        "answers_questions", "Questions", columns, rows, about=about, notes=notes, stacked=True
    )
    return Section("questions", "Questions", (), (grid,))
