"""Sections on answers: all systems, the arXivBot report's Table 1 beside ours, kinds of questions,
retrieval, differences, and the questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import Any, get_args

from pipeline.answering.questions import KINDS
from pipeline.answering.systems import SYSTEMS
from pipeline.evaluation.answers.measures import (
    AGES,
    ALL,
    Grade,
    Outcome,
    QuestionGroup,
    SystemResult,
    answer_measures,
    difference,
    hop_gains,
)
from pipeline.identity.months import month_name
from pipeline.report.costs import answers_cost
from pipeline.report.data import AnswersData, answering_order
from pipeline.report.formatting import (
    ANSWERS_PAGE,
    FAILURES_PAGE,
    MISSING,
    OURS,
    PUBLISHED,
    answering_system,
    count,
    interval_notes,
    month_range,
    question_file,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    PageSection,
    RowGroup,
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
from pipeline.tables.writers import by_system, parse_writer
from pipeline.text import number_of

_OLD, _RECENT = (QuestionGroup("age", name) for name in AGES)
_SHARES = ("factual", "coverage")
_RANKED_BY: Mapping[str, str] = {
    "fused": "dense vectors and BM25",
    "dense": "dense vectors alone",
}
(_COVERAGE,) = select("coverage")
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
# The systems of Table 1, each by the names under which it may have run here.
_TABLE_SYSTEMS = (("direct",), ("wikichat",), ("arxivbot", "arxivbot_fused"))
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


def sections(data: AnswersData, *, with_pages: bool) -> list[PageSection]:
    """The answers of some months; none where there is no question.

    with_pages: whether the report has a page for each question, and lists them.
    """
    if not data.questions:
        return []
    title = "Answers: all systems"
    board = PageSection("answers-leaderboard", title, _search_note(data), (leaderboard(data),))
    return present(
        board if data.systems else None,
        _paper_table_section(data),
        _kinds(data),
        _retrieval(data),
        _differences(data),
        answers_cost(data),
        None if data.people.empty else grades_section(data.people, data.names),
        _question_list(data) if with_pages else None,
    )


def _search_note(data: AnswersData) -> list[str]:
    """What was searched, and by what each system's searches ranked; none where nothing was."""
    ranked: dict[str, list[str]] = defaultdict(list)
    for system in data.systems:
        known = SYSTEMS.get(parse_writer(system).system)
        if known and known.retrieves:
            ranked[_RANKED_BY[known.search_by]].append(answering_system(system))
    if not (ranked and data.indexes):
        return []
    indexes = " and ".join(
        f"{collection} ({engine}), dense vectors of {model}"
        for collection, engine, model in data.indexes
    )
    systems = "; ".join(f"{by}: {', '.join(names)}" for by, names in ranked.items())
    return [f"Passages were searched in the index {indexes}. Ranked by {systems}."]


def month_intro(data: AnswersData) -> PageSection:
    """The way from a month's page to its answers."""
    key, title = "answers", "Answers to questions"
    if not data.questions:
        return PageSection(key, title, (f"No question was asked: {data.why_none}.",))
    questions = f"{number_of(len(data.questions), 'question')}, every answer with its evidence"
    links = [(questions, ANSWERS_PAGE)]
    if data.systems:
        answered_by = "; ".join(map(answering_system, data.systems))
        return PageSection(key, title, (f"Answered by {answered_by}.",), links=links)
    links.append(("What failed", FAILURES_PAGE))
    return PageSection(key, title, ("No system answered.",), links=links)


def _basis(data: AnswersData) -> str:
    """The basis of our rows: questions, papers, months and judge."""
    papers = {paper for question in data.questions for paper in question["papers"]}
    judge = f"judge {data.judge}" if data.judge else "nothing was graded"
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
    cells: dict[str, Any] = {}
    if result.judge:
        cells = {outcome: result.outcomes.get(outcome, 0) for outcome in _OUTCOMES}
    for measure in _MEANS:
        mean = result.measures.get(measure.metric)
        cells[measure.metric] = measure.cell(mean)
    return cells | {"questions": result.questions}


def _rows(data: AnswersData, group: QuestionGroup = ALL) -> list[MeasuredRow]:
    """The systems that have results over a group of questions."""
    results = ((system, data.result(system, group)) for system in data.systems)
    return [
        MeasuredRow(answering_system(system), _cells(result))
        for system, result in results
        if result
    ]


def leaderboard(data: AnswersData) -> Grid:
    """Every system with its shares and outcomes over all questions, the highest coverage first."""
    outcomes = (
        " Abstained: the system says that the corpus does not hold the answer. Claims nothing: the"
        " answer makes no claim. Unreadable: the judge could not split it. Failed: the model gave"
        " no answer."
    )
    about = f"{_basis(data)}."
    if data.judge:
        about += outcomes
    if data.shown:
        about += " passages only shows the closest passages: there is no answer to grade."
    rows = []
    for system in best_first(data):
        result = data.result(system)
        cells = _cells(result) if result else {}
        cells |= {"questions": data.costs[system].items, **data.states[system]}
        rows.append(MeasuredRow(answering_system(system), cells, data.model_of(system)))
    return measure_table(
        "answers_leaderboard",
        "Answers: leaderboard",
        with_short_titles(
            select(*_SHARES, "gold_shown", "claims", "questions", *_OUTCOMES, "failed")
        ),
        rows,
        about=about,
        sortable=True,
    )


def best_first(data: AnswersData) -> list[str]:
    """The systems, the highest coverage of all questions first."""
    coverage = {system: float(coverage_of(data, system).value or 0) for system in data.systems}
    return sorted(data.systems, key=lambda system: (-coverage[system], system))


def _paper_table_section(data: AnswersData) -> PageSection | None:
    """Table 1 beside ours, and what the numbers rest on; None where nothing was graded."""
    if not data.judge:
        return None
    paragraphs = [
        (
            "Compare rankings, not absolute scores: models, papers and questions differ. The best"
            " value of each group is bold."
        ),
        (
            f"In the report three people graded; here the judge is {data.judge}. A judge's quotes"
            " are on each question's page. The report's questions are not published; ours are"
            f" others, on other papers. Its corpus has {count(_CORPUS_PAPERS)} papers."
        ),
        _age_note(data),
        *interval_notes(len(data.questions), "question", "questions"),
    ]
    title = "The arXivBot report's table and ours"
    return PageSection("answers", title, paragraphs, [_paper_table(data)], _DEFINITIONS)


def _age_note(data: AnswersData) -> str:
    divides = f"The report divides at {month_name(_PUBLISHED_CUTOFF)}, GPT-4's."
    without_cutoff = ", ".join(model for model, cutoff in data.cutoffs.items() if not cutoff)
    if not data.cutoff:
        why = "no model answered"
        if without_cutoff:
            why = (
                f"the knowledge cut-off of {without_cutoff} is not known (cutoff in the file of"
                " CITELOOM_MODELS, or CITELOOM_LLM_CUTOFF)"
            )
        return f"Old and recent questions are not separated here: {why}. {divides}"
    cutoffs = ", ".join(f"{model}: {cutoff}" for model, cutoff in data.cutoffs.items() if cutoff)
    if without_cutoff:
        cutoffs += f"; not known: {without_cutoff}"
    return (
        f"Old questions are those whose newest paper first appeared up to {data.cutoff}, recent"
        " ones those after it, for every system: the latest knowledge cut-off of the models that"
        f" answered ({cutoffs}). {divides}"
    )


def _paper_table(data: AnswersData) -> Grid:
    halves = {"old": _OLD, "recent": _RECENT, "all": ALL}
    shares = select(*(f"{share}_{half}" for half in halves for share in _SHARES))
    columns = [*shares, *select("questions")]
    ours = []
    for system in data.graded_systems:
        cells: dict[str, Any] = {"questions": data.costs[system].items}
        for half, group in halves.items():
            for share in _SHARES:
                cells[f"{share}_{half}"] = mean_cell(data.mean(system, share, group), "percent")
        ours.append(MeasuredRow(answering_system(system), cells, data.model_of(system)))
    missing = [
        answering_system(names[0]) for names in _TABLE_SYSTEMS if not by_system(data.systems, names)
    ]
    notes = [f"Not run here (CITELOOM_ANSWER_SYSTEMS): {', '.join(missing)}."] if missing else []
    notes.append(
        "The model alone corresponds to the report's GPT-4 and GPT-4o, imported answers"
        " (CITELOOM_IMPORTED_ANSWERS) to its ChatGPT site. Its recent half names WikiChat's"
        " model as GPT-4, its old half as GPT-4o."
    )
    groups = [
        RowGroup(published_rows("arxivbot", "table_1", columns), PUBLISHED, _PUBLISHED_BASIS),
        RowGroup(ours, OURS, _basis(data)),
    ]
    title = "Table 1: answers to questions"
    return measure_table("answers_table_1", title, columns, groups=groups, notes=notes)


def _kinds(data: AnswersData) -> PageSection | None:
    """The shares by kind of question; None where nothing was graded."""
    columns = with_short_titles(
        select(*_SHARES, "gold_shown", "questions", "answered", "abstained")
    )
    groups = [
        RowGroup(_rows(data, QuestionGroup("kind", kind)), kind.capitalize()) for kind in KINDS
    ]
    about = f"Each kind has few questions: read the intervals first. {_basis(data)}."
    grid = measure_table("answers_kinds", "By kind", columns, groups=groups, about=about)
    return PageSection("kinds", "By kind of question", (), (grid,)) if grid.rows else None


def _retrieval(data: AnswersData) -> PageSection | None:
    """Measures of retrieval, apart from the model; None where no system searched."""
    text = (
        "Gold claims shown needs no model: a claim of the standard answer counts as shown where a"
        " passage that holds its evidence was among those that the system read; claims without a"
        " known passage do not count. Coverage of what was shown is the model's part."
    )
    grids = with_rows(_gold_shown(data), _gains(data))
    title = "Retrieval, apart from the model"
    return PageSection("retrieval-of-answers", title, (text,), grids) if grids else None


def _gold_shown(data: AnswersData) -> Grid:
    columns = select("gold_shown_first_hop", "gold_shown", "coverage_of_shown")
    searched = [row for row in _rows(data) if row.cells["gold_shown"].value is not None]
    return measure_table("answers_shown", "Gold claims shown", columns, searched)


def _gains(data: AnswersData) -> Grid:
    by_judge = (grade for grade in data.grades if grade["judge"] == data.judge)
    gains = sorted(hop_gains(by_judge), key=lambda gain: (answering_order(gain.system), gain.hop))
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


def _differences(data: AnswersData) -> PageSection | None:
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
    return (
        PageSection("differences", "Paired differences of answers", (), (grid,)) if rows else None
    )


def _question_list(data: AnswersData) -> PageSection:
    """The questions with their pages and main shares."""
    grades = {
        (grade["question_id"], grade["system"]): grade
        for grade in data.grades
        if grade["judge"] == data.judge
    }
    systems = data.graded_systems[::-1]
    questions = sorted(data.questions, key=lambda question: str(question["id"]))
    listed, notes = first_rows(questions, "the tables; each has its page")
    rows = []
    for question in listed:
        link = Cell(question["question"], page=question_file(question["id"]))
        row = [link, question["kind"], len(question["papers"]), question["date"]]
        for system in systems:
            row += _shares_of_answer(grades.get((question["id"], system)))
        rows.append(row)
    columns = ["Question", "Kind", "Papers", "Newest"]
    columns += [f"{answering_system(system)}, {share}" for system in systems for share in _SHARES]
    about = f"{MISSING}: no such share; an answer that abstained has no factual share."
    about = about if systems else ""
    grid = Grid(
        "answers_questions", "Questions", columns, rows, about=about, notes=notes, stacked=True
    )
    return PageSection("questions", "Questions", (), (grid,))


def _shares_of_answer(grade: Grade | None) -> tuple[Cell, Cell]:
    measures = answer_measures(grade) if grade else {}
    tag = "abstained" if grade and grade["outcome"] == "abstained" else ""
    return Cell(measures.get("factual"), "percent", tag=tag), percent_cell(measures.get("coverage"))
