"""Sections on answers: the arXivBot report's Table 1 beside ours, kinds of questions, retrieval,
differences, a second judge, and the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pipeline.answering.questions import KINDS, Question
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
    Best,
    Cell,
    Column,
    Grid,
    RowGroup,
    Section,
    first_rows,
    mean_cell,
    percent_cell,
    present,
    table,
    with_rows,
)
from pipeline.report.judgements import grades_section
from pipeline.report.measures import published
from pipeline.tables.writers import by_system

_OLD, _RECENT = (QuestionGroup("age", name) for name in AGES)
_SHARES = ("factual", "coverage")
# Of the arXivBot report: its corpus, its questions, and the dividing line of old and recent papers,
# GPT-4's knowledge cut-off.
_CORPUS_PAPERS = 27_447
_PUBLISHED_BASIS = (
    "50 questions over 15 papers of ar5iv's computer science, answers graded by three people; old"
    " and recent 25 each"
)
_PUBLISHED_CUTOFF = "2023-12"
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


def share_cell(result: SystemResult | None, measure: str) -> Cell:
    """A mean with its interval; empty where it could not be computed."""
    return mean_cell(result.measures.get(measure) if result else None, "percent")


def _share(measure: str, title: str, best: Best = "highest") -> Column[SystemResult]:
    return Column(title, lambda result: share_cell(result, measure), best=best)


def _outcome(outcome: Outcome, title: str) -> Column[SystemResult]:
    """How many answers came to an outcome."""
    return Column(title, lambda result: result.outcomes.get(outcome, 0))


_SYSTEM: Column[SystemResult] = Column("System", lambda result: answering_system(result.system))
_QUESTIONS: Column[SystemResult] = Column("Questions", lambda result: result.questions)
_FACTUAL, _COVERAGE = (_share(measure, measure.capitalize()) for measure in _SHARES)
_ANSWERED, _ABSTAINED = _outcome("answered", "Answered"), _outcome("abstained", "Abstained")


def _results(
    data: AnswersData, group: QuestionGroup = ALL, judge: str | None = None
) -> list[SystemResult]:
    """The results of the systems that have any."""
    results = (data.result(system, group, judge) for system in data.systems)
    return [result for result in results if result is not None]


def leaderboard(data: AnswersData) -> Grid:
    """Every system with its shares over all questions, the highest coverage first."""

    def abstained(system: str) -> int | None:
        result = data.result(system)
        return result.outcomes.get("abstained", 0) if result else None

    columns = [
        Column("System", answering_system),
        Column("Model", data.model_of),
        Column(
            "Factual", lambda system: share_cell(data.result(system), "factual"), best="highest"
        ),
        Column(
            "Coverage", lambda system: share_cell(data.result(system), "coverage"), best="highest"
        ),
        Column("Questions", lambda system: data.written[system].items),
        Column("Abstained", abstained),
    ]
    return table(
        "answers_leaderboard",
        "Answers: leaderboard",
        columns,
        best_first(data),
        about=f"{_basis(data)}.",
        sortable=True,
    )


def best_first(data: AnswersData) -> list[str]:
    """The systems, the highest coverage of all questions first."""

    def coverage(system: str) -> float:
        return float(share_cell(data.result(system), "coverage").value or 0)

    return sorted(data.systems, key=lambda system: (-coverage(system), system))


def _published_and_ours(data: AnswersData) -> list[BarFigure]:
    """Factual and coverage as published for old and recent questions, beside ours over all."""
    groups = []
    for measure in _SHARES:
        theirs = [
            bar(
                f"{row['system']} ({row['model_old']}), {age}",
                percent_cell(float(row[f"{measure}_{age}"]) / 100),
                8,
                hollow=True,
            )
            for row in published("arxivbot")
            for age in ("old", "recent")
        ]
        cells = [(system, share_cell(data.result(system), measure)) for system in data.systems]
        ours = [
            bar(answering_system(system), cell, answering_colour(system, data.systems))
            for system, cell in cells
            if cell.value is not None
        ]
        groups += [(measure.capitalize(), theirs + ours)] if ours else []
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


@dataclass(frozen=True, slots=True)
class _TableRow:
    """A row of Table 1. shares: (measure, age or all) → value."""

    system: str
    model: str
    shares: Mapping[tuple[str, str], Cell]
    questions: int


def _paper_table(data: AnswersData) -> Grid:
    theirs = []
    for row in published("arxivbot"):
        models = dict.fromkeys((row["model_old"], row["model_recent"]))
        shares: dict[tuple[str, str], Cell] = {
            (measure, age): percent_cell(float(row[f"{measure}_{age}"]) / 100)
            for measure in _SHARES
            for age in AGES
        }
        theirs.append(_TableRow(row["system"], ", ".join(models), shares, int(row["questions"])))
    halves = (*AGES, "all")
    ours = [
        _TableRow(
            answering_system(system),
            data.model_of(system),
            {
                (measure, group.name or "all"): share_cell(data.result(system, group), measure)
                for measure in _SHARES
                for group in (_OLD, _RECENT, ALL)
            },
            data.written[system].items,
        )
        for system in data.systems
    ]
    columns: list[Column[_TableRow]] = [
        Column("System", lambda row: row.system),
        Column("Model", lambda row: row.model),
        *(_share_of_row(measure, age) for age in halves for measure in _SHARES),
        Column("Questions", lambda row: row.questions),
    ]
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
    return table(
        "answers_table_1",
        "Table 1: answers to questions",
        columns,
        groups=[
            RowGroup(theirs, PUBLISHED, _PUBLISHED_BASIS),
            RowGroup(ours, OURS, _basis(data)),
        ],
        notes=notes,
    )


def _share_of_row(measure: str, age: str) -> Column[_TableRow]:
    title = f"{measure.capitalize()}, {age}"
    return Column(title, lambda row: row.shares.get((measure, age)), best="highest")


def _outcomes(data: AnswersData) -> Grid:
    """What became of the questions, and over how many each mean is."""
    columns = [
        _SYSTEM,
        _QUESTIONS,
        _ANSWERED,
        _ABSTAINED,
        _outcome("claims_nothing", "Claims nothing"),
        _outcome("unreadable", "Unreadable"),
        _basis_of("factual", "Factual is of"),
        _basis_of("coverage", "Coverage is of"),
        Column("Claims per answer", lambda result: mean_cell(result.measures.get("claims"), "one")),
    ]
    groups = [
        RowGroup(_results(data, group), title)
        for title, group in (("All", ALL), ("Old", _OLD), ("Recent", _RECENT))
    ]
    about = (
        "Abstained: the system says that the corpus does not hold the answer. Claims nothing: the"
        " answer makes no claim. Unreadable: the judge could not split the answer. The last"
        " columns: over how many questions the means are, and the mean number of claims."
    )
    title = "What the numbers rest on"
    return table("answers_outcomes", title, columns, groups=groups, about=about)


def _basis_of(measure: str, title: str) -> Column[SystemResult]:
    """Over how many questions the mean of a measure is."""
    return Column(
        title,
        lambda result: result.measures[measure].count if measure in result.measures else 0,
    )


def _kinds(data: AnswersData) -> Section | None:
    """The shares by kind of question; None where nothing was graded."""
    columns = [
        _SYSTEM,
        _FACTUAL,
        _COVERAGE,
        _share("gold_shown", "Gold passages shown", best=""),
        _QUESTIONS,
        _ANSWERED,
        _ABSTAINED,
    ]
    groups = [
        RowGroup(_results(data, QuestionGroup("kind", kind)), kind.capitalize()) for kind in KINDS
    ]
    about = f"Each kind has few questions: read the intervals first. {_basis(data)}."
    grid = table("answers_kinds", "By kind", columns, groups=groups, about=about)
    return Section("kinds", "By kind of question", (), (grid,)) if grid.rows else None


def _retrieval(data: AnswersData, *, linked: bool) -> Section | None:
    """What retrieval showed, apart from what a model made of it; None where no system searched.

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
    columns = [
        _SYSTEM,
        _share("gold_shown_first_hop", "Shown by the first hop"),
        _share("gold_shown", "Shown by the last hop"),
        _share("coverage_of_shown", "Coverage of what was shown"),
        _basis_of("gold_shown", "Questions"),
    ]
    shown = [result for result in _results(data) if "gold_shown" in result.measures]
    return table("answers_shown", "Gold claims shown", columns, shown)


def _hops(data: AnswersData) -> Grid:
    def more_than_two(system: str) -> int:
        return sum(questions for number, questions in data.hops[system].items() if number > 2)

    def mean(system: str) -> float:
        hops = data.hops[system]
        return sum(number * questions for number, questions in hops.items()) / hops.total()

    columns = [
        Column("System", answering_system),
        Column("No search", lambda system: data.hops[system][0]),
        Column("One hop", lambda system: data.hops[system][1]),
        Column("Two hops", lambda system: data.hops[system][2]),
        Column("Three and more", more_than_two),
        Column("Hops per question", mean),
    ]
    searched = [system for system in data.systems if any(data.hops[system].keys() - {0})]
    about = (
        "Questions by number of searches; a system searches again only where its model asks for it."
    )
    return table("answers_hops", "Hops used", columns, searched, about=about)


def _gains(gains: Sequence[HopGain]) -> Grid:
    columns: list[Column[HopGain]] = [
        Column("System", lambda gain: answering_system(gain.system)),
        Column("Hop", lambda gain: gain.hop),
        Column("Questions", lambda gain: gain.questions),
        Column("Their gold claims", lambda gain: gain.known),
        Column("First shown", lambda gain: gain.shown),
        Column("Share", lambda gain: gain.shown / gain.known if gain.known else None, "percent"),
        Column("Points", lambda gain: gain.held, "one"),
        Column("Questions helped", lambda gain: len(gain.helped)),
    ]
    about = (
        "First shown: gold claims that this hop was the first to show. Points: what the answers"
        " earn for these, one for each claim held, a half for partly. The table does not show"
        " whether the model would have known them otherwise."
    )
    return table("answers_gains", "Gain of each hop", columns, gains, about=about)


def _helped(data: AnswersData, gains: Sequence[HopGain]) -> Grid:
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
    columns = [_SYSTEM, _FACTUAL, _COVERAGE, _ANSWERED]
    groups = [RowGroup(_results(data, ALL, judge), judge) for judge in data.judges]
    about = (
        "No mean mixes verdicts of two judges. All judges graded the claims into which the first"
        " split the answers."
    )
    beside = table("answers_judges", "Each judge", columns, groups=groups, about=about)
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
    columns: list[Column[Question]] = [
        Column("Question", lambda posed: Cell(posed.question, page=question_file(posed.id))),
        Column("Kind", lambda posed: posed.kind),
        Column("Papers", lambda posed: len(posed.papers)),
        Column("Newest", lambda posed: posed.date or posed.month),
    ]
    for system in reversed(data.systems):
        columns += [_share_of_answer(grades, system, measure) for measure in _SHARES]
    questions = sorted((posed.question for posed in data.questions), key=lambda posed: posed.id)
    listed, notes = first_rows(questions, "the tables; each has its page")
    about = f"{MISSING}: no such share; an answer that abstained has no factual share."
    grid = table(
        "answers_questions", "Questions", columns, listed, about=about, notes=notes, stacked=True
    )
    return Section("questions", "Questions", (), (grid,))


def _share_of_answer(
    grades: Mapping[tuple[str, str], Grade], system: str, measure: str
) -> Column[Question]:
    def share(question: Question) -> Cell:
        grade = grades.get((question.id, system))
        if grade is None:
            return percent_cell(None)
        abstained = measure == "factual" and grade["outcome"] == "abstained"
        tag = "abstained" if abstained else ""
        return Cell(answer_measures(grade).get(measure), "percent", tag=tag)

    return Column(f"{answering_system(system)}, {measure}", share)
