"""Sections on answers: the arXivBot report's Table 1 beside ours, kinds of questions, retrieval,
differences, a second judge, and the questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, get_args

from pipeline.answering.questions import KINDS
from pipeline.evaluation.answers.measures import AGES, Grade, Outcome, answer_measures
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
from pipeline.report.costs import answers_cost
from pipeline.report.data import AnswersData, ReportData, answering_order
from pipeline.report.figures import BarFigure, answering_colour, bar
from pipeline.report.formatting import (
    ANSWERS_PAGE,
    FAILURES_PAGE,
    MISSING,
    OURS,
    PUBLISHED,
    answering_system,
    count,
    interval_notes,
    month_name,
    month_range,
    number_of,
    question_file,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    RowGroup,
    Section,
    first_rows,
    mean_cell,
    percent_cell,
    present,
    with_rows,
)
from pipeline.report.judgements import grades_section
from pipeline.report.measures import (
    MeasuredRow,
    measure_table,
    published_rows,
    select,
    with_short_titles,
)
from pipeline.tables.writers import by_system

_OLD, _RECENT = (QuestionGroup("age", name) for name in AGES)
_SHARES = ("factual", "coverage")
_FACTUAL, _COVERAGE = select(*_SHARES)
_MEANS = select(*_SHARES, "gold_shown_first_hop", "gold_shown", "coverage_of_shown", "claims")
# Of the arXivBot report: its corpus, its questions, and the dividing line of old and recent papers,
# GPT-4's knowledge cut-off.
_CORPUS_PAPERS = 27_447
_PUBLISHED_BASIS = (
    "50 questions over 15 papers of ar5iv's computer science, answers graded by three people; old"
    " and recent 25 each"
)
_PUBLISHED_CUTOFF = "2023-12"
_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_TABLE_SYSTEMS = ("direct", "wikichat", "arxivbot_report", "arxivbot")
_DEFINITIONS = (
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


def month_sections(data: ReportData) -> list[Section]:
    """The answers of a month; none where there is no question."""
    answers = data.answers
    if not answers.questions:
        return []
    graded = answers.grades or not data.people.empty
    return present(
        _paper_table_section(answers),
        _kinds(answers),
        _retrieval(answers, linked=True),
        _differences(answers),
        answers_cost(answers),
        _second_judge(answers),
        grades_section(data.people, answers.names) if graded else None,
        _question_list(answers),
    )


def overall_sections(data: ReportData) -> list[Section]:
    """The answers of all months; none where there is no question."""
    answers = data.answers
    if not answers.questions:
        return []
    text = (
        "The questions of all finished months together, by the first judge where there is one. A"
        " month's own page of answers adds cost, other judges, and every question with its answers."
    )
    parts = [leaderboard(answers), *_published_and_ours(answers)] if answers.systems else []
    return present(
        Section("questions-and-answers", "Answers to questions", (text,), parts),
        _paper_table_section(answers),
        _kinds(answers),
        _retrieval(answers, linked=False),
        _differences(answers),
        None if data.people.empty else grades_section(data.people, answers.names),
    )


def month_intro(data: AnswersData) -> Section:
    """The answers of a month on its page, with the way to their own."""
    key, title = "answers", "Answers to questions"
    if not data.questions:
        return Section(key, title, (f"No question was asked: {data.why_none}.",))
    questions = f"{number_of(len(data.questions), 'question')}, every answer with its evidence"
    links = [(questions, ANSWERS_PAGE)]
    if data.systems:
        return Section(key, title, (), (leaderboard(data),), links=links)
    links.append(("What failed", FAILURES_PAGE))
    return Section(key, title, ("No system answered.",), links=links)


def _basis(data: AnswersData) -> str:
    """The basis of our rows: questions, papers, months and judge."""
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


def coverage_of(data: AnswersData, system: str) -> Cell:
    """A system's mean coverage over all questions; empty where nothing was graded."""
    return _COVERAGE.cell(data.mean(system, "coverage"))


def _cells(result: SystemResult) -> dict[str, Any]:
    """Metric → value of a system over some questions."""
    cells: dict[str, Any] = {outcome: result.outcomes.get(outcome, 0) for outcome in _OUTCOMES}
    for measure in _MEANS:
        mean = result.measures.get(measure.metric)
        cells[measure.metric] = measure.cell(mean)
        cells[f"{measure.metric}_is_of"] = mean.count if mean else 0
    return cells | {"questions": result.questions}


def _rows(
    data: AnswersData, group: QuestionGroup = ALL, judge: str | None = None
) -> list[MeasuredRow]:
    """The systems that have results over a group of questions."""
    results = ((system, data.result(system, group, judge)) for system in data.systems)
    return [
        MeasuredRow(answering_system(system), _cells(result))
        for system, result in results
        if result
    ]


def leaderboard(data: AnswersData) -> Grid:
    """Every system with its shares over all questions, the highest coverage first."""
    rows = []
    for system in best_first(data):
        result = data.result(system)
        cells = _cells(result) if result else {}
        cells["questions"] = data.costs[system].items
        rows.append(MeasuredRow(answering_system(system), cells, data.model_of(system)))
    return measure_table(
        "answers_leaderboard",
        "Answers: leaderboard",
        select("factual", "coverage", "questions", "abstained"),
        rows,
        about=f"{_basis(data)}.",
        sortable=True,
    )


def best_first(data: AnswersData) -> list[str]:
    """The systems, the highest coverage of all questions first."""
    coverage = {system: float(coverage_of(data, system).value or 0) for system in data.systems}
    return sorted(data.systems, key=lambda system: (-coverage[system], system))


def _published_and_ours(data: AnswersData) -> list[BarFigure]:
    """Factual and coverage as published for old and recent questions, beside ours over all."""
    groups = []
    for measure in (_FACTUAL, _COVERAGE):
        halves = select(*(f"{measure.metric}_{age}" for age in AGES))
        published = [
            bar(
                f"{row.label} ({row.model}), {age}",
                percent_cell(row.cells[half.metric]),
                8,
                hollow=True,
            )
            for row in published_rows("arxivbot", "table_1", halves)
            for age, half in zip(AGES, halves, strict=True)
        ]
        ours = [
            bar(
                answering_system(system),
                measure.cell(mean),
                answering_colour(system, data.systems),
            )
            for system in data.systems
            if (mean := data.mean(system, measure.metric))
        ]
        groups += [(measure.title, published + ours)] if ours else []
    about = (
        "Outlined: Table 1 of the arXivBot report, old and recent questions. Filled: ours over all"
        " questions, with 95 % intervals. Compare rankings, not absolute scores: models, questions"
        " and papers differ."
    )
    return [BarFigure("Published and ours", groups, about)] if groups else []


def _paper_table_section(data: AnswersData) -> Section:
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
            f" papers. Its corpus has {count(_CORPUS_PAPERS)} papers."
        ),
        *judge_sentences(data.judges, "claim_grade"),
        _age_note(data),
        *(interval_notes(len(data.questions), "question", "questions") if data.judge else []),
    ]
    parts = [_paper_table(data), *with_rows(_outcomes(data))]
    title = "The arXivBot report's table and ours"
    return Section("answers", title, paragraphs, parts, _DEFINITIONS)


def _age_note(data: AnswersData) -> str:
    divides = f"The report divides at {month_name(_PUBLISHED_CUTOFF)}, GPT-4's."
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


def _paper_table(data: AnswersData) -> Grid:
    halves = {"old": _OLD, "recent": _RECENT, "all": ALL}
    shares = select(*(f"{share}_{half}" for half in halves for share in _SHARES))
    columns = [*shares, *select("questions")]
    ours = []
    for system in data.systems:
        cells: dict[str, Any] = {"questions": data.costs[system].items}
        for half, group in halves.items():
            for share in _SHARES:
                cells[f"{share}_{half}"] = mean_cell(data.mean(system, share, group), "percent")
        ours.append(MeasuredRow(answering_system(system), cells, data.model_of(system)))
    missing = [
        answering_system(system)
        for system in _TABLE_SYSTEMS
        if not by_system(data.systems, [system])
    ]
    notes = [f"Not run here (CITELOOM_ANSWER_SYSTEMS): {', '.join(missing)}."] if missing else []
    notes.append(
        "The model alone corresponds to the report's GPT-4 and GPT-4o, imported answers to its"
        " ChatGPT site. The report's recent half names WikiChat's model as GPT-4, its old half as"
        " GPT-4o."
    )
    groups = [
        RowGroup(published_rows("arxivbot", "table_1", columns), PUBLISHED, _PUBLISHED_BASIS),
        RowGroup(ours, OURS, _basis(data)),
    ]
    title = "Table 1: answers to questions"
    return measure_table("answers_table_1", title, columns, groups=groups, notes=notes)


def _outcomes(data: AnswersData) -> Grid:
    """Counts of the outcomes of questions, and of the questions of each mean."""
    columns = select(
        "questions",
        "answered",
        "abstained",
        "claims_nothing",
        "unreadable",
        "factual_is_of",
        "coverage_is_of",
        "claims",
    )
    groups = [
        RowGroup(_rows(data, group), title)
        for title, group in (("All", ALL), ("Old", _OLD), ("Recent", _RECENT))
    ]
    about = (
        "Abstained: the system says that the corpus does not hold the answer. Claims nothing: the"
        " answer makes no claim. Unreadable: the judge could not split the answer. The last"
        " columns: over how many questions the means are, and the mean number of claims."
    )
    title = "What the numbers rest on"
    return measure_table("answers_outcomes", title, columns, groups=groups, about=about)


def _kinds(data: AnswersData) -> Section | None:
    """The shares by kind of question; None where nothing was graded."""
    columns = with_short_titles(
        select("factual", "coverage", "gold_shown", "questions", "answered", "abstained")
    )
    groups = [
        RowGroup(_rows(data, QuestionGroup("kind", kind)), kind.capitalize()) for kind in KINDS
    ]
    about = f"Each kind has few questions: read the intervals first. {_basis(data)}."
    grid = measure_table("answers_kinds", "By kind", columns, groups=groups, about=about)
    return Section("kinds", "By kind of question", (), (grid,)) if grid.rows else None


def _retrieval(data: AnswersData, *, linked: bool) -> Section | None:
    """Measures of retrieval, apart from the model; None where no system searched.

    linked: whether questions have pages to link to.
    """
    gains = sorted(
        hop_gains(grade for grade in data.grades if grade["judge"] == data.judge),
        key=lambda gain: (answering_order(gain.system), gain.hop),
    )
    grids = with_rows(_gold_shown(data), _hops(data), _gains(gains))
    if linked and any(gain.hop > 1 for gain in gains):
        grids.append(_helped(data, gains))
    text = (
        "Gold claims shown needs no model: a claim of the standard answer counts as shown where a"
        " passage that holds its evidence was among those that the system read; claims without a"
        " known passage do not count. Coverage of what was shown is the model's part."
    )
    title = "Retrieval, apart from the model"
    return Section("retrieval-of-answers", title, (text,), grids) if grids else None


def _gold_shown(data: AnswersData) -> Grid:
    columns = select("gold_shown_first_hop", "gold_shown", "coverage_of_shown", "gold_shown_is_of")
    searched = [row for row in _rows(data) if row.cells["gold_shown_is_of"]]
    return measure_table("answers_shown", "Gold claims shown", columns, searched)


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


def _helped(data: AnswersData, gains: Sequence[HopGain]) -> Grid:
    """The questions that a hop after the first helped."""
    texts = {posed.question.id: posed.question.question for posed in data.questions}
    rows = []
    for gain in gains:
        if gain.hop > 1:
            for question in gain.helped:
                link = Cell(texts.get(question, question), page=question_file(question))
                rows.append([link, answering_system(gain.system), gain.hop])
    listed, notes = first_rows(rows, "the table answer_grades")
    about = "" if rows else "None: no answer has points for a claim that a later hop showed first."
    columns = ["Question", "System", "Hop"]
    title = "Questions that a further hop helped"
    return Grid("answers_helped", title, columns, listed, about=about, notes=notes, stacked=True)


def _differences(data: AnswersData) -> Section | None:
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


def _second_judge(data: AnswersData) -> Section | None:
    """The judges side by side, and their agreement; None for a single one."""
    if len(data.judges) < 2:
        return None
    columns = select("factual", "coverage", "answered")
    groups = [RowGroup(_rows(data, ALL, judge), judge) for judge in data.judges]
    about = (
        "No mean mixes verdicts of two judges. All judges graded the claims into which the first"
        " split the answers."
    )
    beside = measure_table("answers_judges", "Each judge", columns, groups=groups, about=about)
    return Section("judges", "A second judge", (), (beside, _agreement(data)))


def _agreement(data: AnswersData) -> Grid:
    """Agreement of the first two judges."""
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


def _question_list(data: AnswersData) -> Section:
    """The questions with their pages and main shares."""
    grades = {
        (grade["question_id"], grade["system"]): grade
        for grade in data.grades
        if grade["judge"] == data.judge
    }
    systems = data.systems[::-1]
    posed = sorted((posed.question for posed in data.questions), key=lambda question: question.id)
    listed, notes = first_rows(posed, "the tables; each has its page")
    rows = []
    for question in listed:
        link = Cell(question.question, page=question_file(question.id))
        row = [link, question.kind, len(question.papers), question.date or question.month]
        for system in systems:
            row += _shares_of_answer(grades.get((question.id, system)))
        rows.append(row)
    columns = ["Question", "Kind", "Papers", "Newest"]
    columns += [f"{answering_system(system)}, {share}" for system in systems for share in _SHARES]
    about = f"{MISSING}: no such share; an answer that abstained has no factual share."
    grid = Grid(
        "answers_questions", "Questions", columns, rows, about=about, notes=notes, stacked=True
    )
    return Section("questions", "Questions", (), (grid,))


def _shares_of_answer(grade: Grade | None) -> tuple[Cell, Cell]:
    measures = answer_measures(grade) if grade else {}
    tag = "abstained" if grade and grade["outcome"] == "abstained" else ""
    return Cell(measures.get("factual"), "percent", tag=tag), percent_cell(measures.get("coverage"))
