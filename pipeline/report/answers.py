"""Sections on answers: all systems, the arXivBot report's Table 1 beside ours, kinds of questions,
retrieval, differences, and the questions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any, get_args

from pipeline.answering.questions import KINDS
from pipeline.answering.systems import SYSTEMS
from pipeline.evaluation.answers.measures import AGES, Outcome
from pipeline.identity.months import month_name
from pipeline.report.costs import cost_section
from pipeline.report.formatting import (
    ANSWERS_PAGE,
    FAILURES_PAGE,
    MISSING,
    OURS,
    PUBLISHED,
    answering_system,
    question_date,
    question_file,
)
from pipeline.report.frames import Answers, Row, answering_order
from pipeline.report.grid import (
    Cell,
    Grid,
    PageSection,
    RowGroup,
    first_rows,
    mean_cell,
    percent_cell,
    present,
    with_values,
)
from pipeline.report.judgements import grades_section
from pipeline.report.measures import (
    MeasuredRow,
    basis,
    best_first,
    interval_notes,
    leader_card,
    mean_cells,
    measure_table,
    published_rows,
    select,
    with_short_titles,
)
from pipeline.tables.writers import by_system, parse_writer
from pipeline.text import number_of

_SHARES = ("factual", "coverage")
_RETRIEVAL = ("gold_shown_first_hop", "gold_shown", "coverage_of_shown")
_RANKED_BY: Mapping[str, str] = {
    "fused": "dense vectors and BM25",
    "dense": "dense vectors alone",
}
_PUBLISHED_BASIS = (
    "50 questions over 15 papers of ar5iv's computer science, answers graded by three people; old"
    " and recent 25 each"
)
# GPT-4's knowledge cut-off, which divides old from recent papers in the arXivBot report.
_PUBLISHED_CUTOFF = "2023-12"
_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# The systems of Table 1, each by the names under which it may have run here.
_TABLE_SYSTEMS = (("direct",), ("wikichat",), ("arxivbot", "arxivbot_fused"))


def sections(data: Answers, *, with_pages: bool) -> list[PageSection]:
    """The answers of some months; none where there is no question.

    with_pages: whether the report has a page for each question, and lists them.
    """
    if not data.questions:
        return []
    title = "Answers: all systems"
    board = PageSection("answers-leaderboard", title, _search_note(data), (leaderboard(data),))
    return present(
        board if data.systems else None,
        _paper_table(data) if data.scores.judge else None,
        _kinds(data),
        _retrieval(data),
        _differences(data),
        cost_section("cost-of-answers", "Cost of answers", data),
        grades_section(data.people, data.names),
        _question_list(data) if with_pages else None,
    )


def _search_note(data: Answers) -> list[str]:
    """What was searched, and by what each system's searches ranked; none where nothing was."""
    ranked: dict[str, list[str]] = defaultdict(list)
    for system in data.systems:
        known = SYSTEMS.get(parse_writer(system).system)
        if known and known.retrieves:
            ranked[_RANKED_BY[known.search_by]].append(answering_system(system))
    loads = [row for month in data.data.finished for row in month.counts["index_receipts"]]
    indexes = sorted(
        {f"{row['collection']} ({row['engine']}), dense vectors of {row['model']}" for row in loads}
    )
    systems = "; ".join(f"{by}: {', '.join(names)}" for by, names in ranked.items())
    note = f"Passages were searched in the index {' and '.join(indexes)}. Ranked by {systems}."
    return [note] if ranked and indexes else []


def month_intro(data: Answers) -> PageSection:
    """The way from a month's page to its answers."""
    key, title = "answers", "Answers to questions"
    if not data.questions:
        return PageSection(key, title, (f"No question was asked: {why_none(data)}.",))
    count = number_of(len(data.questions), "question")
    links = [(f"{count}, every answer with its evidence", ANSWERS_PAGE)]
    answered_by = "; ".join(map(answering_system, data.systems))
    text = f"Answered by {answered_by}." if data.systems else "No system answered."
    if not data.systems:
        links.append(("What failed", FAILURES_PAGE))
    return PageSection(key, title, (text,), links=links)


def why_none(data: Answers) -> str:
    """Why there is no question; '' where there is one."""
    if data.questions:
        return ""
    for month in data.data.finished:
        notes = month.notes.get("questions")
        if notes is None:
            return "the month has no table of questions"
        if notes.get("off"):
            return str(notes["off"])
    return "the question set has no question for this month, or all were left out"


def card(data: Answers) -> list[tuple[str, str, str]]:
    """The card of the system that is ahead; none where nothing was graded."""
    if not data.graded_systems:
        return []
    (coverage,) = select("coverage")
    ranked = best_first(data.scores, data.graded_systems, "coverage")
    return [leader_card("Answers", data, data.scores, ranked, coverage)]


def _basis(data: Answers) -> str:
    papers = {paper for question in data.questions.values() for paper in question["papers"]}
    questions = f"{number_of(len(data.questions), 'question')} on {number_of(len(papers), 'paper')}"
    return basis(data, questions, data.scores.judge, "graded")


def leaderboard(data: Answers) -> Grid:
    """Every system with its shares and outcomes over all questions, the highest coverage first."""
    chosen = select(*_SHARES, "gold_shown", "claims")
    rows = []
    for system in best_first(data.scores, data.systems, "coverage"):
        cells: dict[str, Any] = mean_cells(data.scores, system, chosen)
        if outcomes := data.outcomes.get((system, "")):
            cells |= {outcome: outcomes[outcome] for outcome in _OUTCOMES}
        cells["questions"] = sum(row["rows"] for row in data.costs[system])
        cells |= data.states[system]
        rows.append(MeasuredRow(answering_system(system), cells, data.model_of(system)))
    return measure_table(
        "answers_leaderboard",
        "Answers: leaderboard",
        with_short_titles([*chosen, *select("questions", *_OUTCOMES, "failed")]),
        rows,
        about=f"{_basis(data)}. A system that only shows passages has no answer to grade.",
        sortable=True,
    )


def _paper_table(data: Answers) -> PageSection:
    """Table 1 beside ours, and what the numbers rest on."""
    halves: dict[str, Collection[str] | None] = {age: data.of_age(age) for age in AGES}
    halves["all"] = None
    shares = [f"{share}_{half}" for half in halves for share in _SHARES]
    columns = select(*shares, "questions")
    ours = []
    for system in data.graded_systems:
        cells: dict[str, Any] = {"questions": sum(row["rows"] for row in data.costs[system])}
        for half, questions in halves.items():
            for share in _SHARES:
                mean = data.scores.mean(system, share, questions)
                cells[f"{share}_{half}"] = mean_cell(mean, "percent")
        ours.append(MeasuredRow(answering_system(system), cells, data.model_of(system)))
    missing = [
        answering_system(names[0]) for names in _TABLE_SYSTEMS if not by_system(data.systems, names)
    ]
    notes = [f"Not run here (CITELOOM_ANSWER_SYSTEMS): {', '.join(missing)}."] if missing else []
    notes.append("The model alone corresponds to GPT-4 and GPT-4o, imported answers to the site.")
    groups = [
        RowGroup(published_rows("arxivbot", "table_1", columns), PUBLISHED, _PUBLISHED_BASIS),
        RowGroup(ours, OURS, _basis(data)),
    ]
    title = "Table 1: answers to questions"
    grid = measure_table("answers_table_1", title, columns, groups=groups, notes=notes)
    paragraphs = [
        (
            "Compare rankings, not absolute scores: models, papers and questions differ. The best"
            " value of each group is bold. In the report three people graded; here the judge is"
            f" {data.scores.judge}. Its corpus has 27,447 papers."
        ),
        _age_note(data),
        *interval_notes(len(data.questions), "question"),
    ]
    return PageSection("answers", "The arXivBot report's table and ours", paragraphs, [grid])


def _age_note(data: Answers) -> str:
    divides = f"The report divides at {month_name(_PUBLISHED_CUTOFF)}, GPT-4's."
    unknown = ", ".join(model for model, cutoff in data.cutoffs.items() if not cutoff)
    if not data.cutoff:
        return (
            f"Old and recent questions are not separated: the knowledge cut-off of {unknown} is not"
            f" known (cutoff in the file of CITELOOM_MODELS, or CITELOOM_LLM_CUTOFF). {divides}"
        )
    cutoffs = ", ".join(
        f"{model}: {cutoff or 'not known'}" for model, cutoff in data.cutoffs.items()
    )
    return (
        f"Old questions are those whose newest paper first appeared up to {data.cutoff}, the latest"
        f" knowledge cut-off of the models that answered ({cutoffs}). {divides}"
    )


def _kinds(data: Answers) -> PageSection | None:
    """The shares by kind of question; None where nothing was measured."""
    chosen = select(*_SHARES, "gold_shown")
    groups = []
    for kind in KINDS:
        of_kind = {key for key, row in data.questions.items() if row["kind"] == kind}
        rows = []
        for system in data.systems:
            outcomes = data.outcomes.get((system, kind), Counter())
            means = {item: data.scores.mean(system, item.metric, of_kind) for item in chosen}
            cells: dict[str, Any] = {item.metric: item.cell(mean) for item, mean in means.items()}
            questions = outcomes.total() or max(mean.count for mean in means.values())
            if questions:
                counted = {"answered": outcomes["answered"], "abstained": outcomes["abstained"]}
                cells |= {"questions": questions, **(counted if outcomes else {})}
                rows.append(MeasuredRow(answering_system(system), cells))
        groups.append(RowGroup(rows, kind.capitalize()))
    columns = with_short_titles([*chosen, *select("questions", "answered", "abstained")])
    about = f"Each kind has few questions: read the intervals first. {_basis(data)}."
    grid = measure_table("answers_kinds", "By kind", columns, groups=groups, about=about)
    return PageSection("kinds", "By kind of question", (), (grid,)) if grid.rows else None


def _retrieval(data: Answers) -> PageSection | None:
    """Measures of retrieval, apart from the model; None where no system searched."""
    chosen = select(*_RETRIEVAL)
    searched = [
        MeasuredRow(answering_system(system), mean_cells(data.scores, system, chosen))
        for system in data.systems
        if data.scores.by_item(system, "gold_shown")
    ]
    shown = measure_table("answers_shown", "Gold claims shown", chosen, searched)
    grids = with_values(shown, _gains(data))
    title = "Retrieval, apart from the model"
    return PageSection("retrieval-of-answers", title, (), grids) if grids else None


def _gains(data: Answers) -> Grid:
    gains: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in data.gains:
        if row["judge"] == data.scores.judge:
            system = str(row["system"])
            system = data.names.get(system, system)
            gains[system, row["hop"]].append(row)
    rows = []
    for system, hop in sorted(gains, key=lambda gain: (answering_order(gain[0]), gain[1])):
        months = gains[system, hop]
        questions, known, shown, held = (
            sum(row[name] for row in months) for name in ("questions", "known", "shown", "held")
        )
        share = percent_cell(shown / known if known else None)
        helped = sum(len(row["helped"]) for row in months)
        points = Cell(held, "one")
        name = answering_system(system)
        rows.append([name, hop, questions, known, shown, share, points, helped])
    columns = [
        "System", "Hop", "Questions", "Their gold claims", "First shown", "Share", "Points",
        "Questions helped",
    ]  # fmt: skip
    about = (
        "First shown: gold claims that this hop was the first to show. Points: what the answers"
        " earn for these, one for each claim held, a half for partly."
    )
    return Grid("answers_gains", "Gain of each hop", columns, rows, about=about)


def _differences(data: Answers) -> PageSection | None:
    """Paired differences between systems, and between models of a system; None for fewer than two
    systems.
    """
    rows = []
    for first, second in combinations(reversed(data.graded_systems), 2):
        means = [data.scores.difference(first, second, share) for share in _SHARES]
        if any(means):
            cells = [mean_cell(mean, "one", 100) for mean in means]
            rows.append([answering_system(first), answering_system(second), *cells])
    about = (
        "In percentage points, over the questions for which both have the measure. An interval that"
        " includes 0 does not separate the two."
    )
    columns = ["System", "Less", "Factual", "Coverage"]
    grid = Grid("answers_differences", "Differences between systems", columns, rows, about=about)
    title = "Paired differences of answers"
    return PageSection("differences", title, (), (grid,)) if rows else None


def _question_list(data: Answers) -> PageSection:
    """The questions with their pages and main shares."""
    systems = data.graded_systems[::-1]
    listed, notes = first_rows(sorted(data.questions), "the tables; each has its page")
    rows = []
    for key in listed:
        question = data.questions[key]
        link = Cell(question["question"], page=question_file(question["question_id"]))
        row = [link, question["kind"], len(question["papers"]), question_date(question)]
        for system in systems:
            for share in _SHARES:
                row.append(percent_cell(data.scores.by_item(system, share).get(key)))
        rows.append(row)
    columns = ["Question", "Kind", "Papers", "Newest"]
    columns += [f"{answering_system(system)}, {share}" for system in systems for share in _SHARES]
    about = f"{MISSING}: no such share; an answer that abstained has no factual share."
    grid = Grid(
        "answers_questions", "Questions", columns, rows, about=about if systems else "",
        notes=notes, stacked=True,
    )  # fmt: skip
    return PageSection("questions", "Questions", (), (grid,))
