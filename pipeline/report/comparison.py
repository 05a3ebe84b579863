"""The paper's own tables beside ours: Tables 1 and 2, the six criteria (Figure 4), preference (Figure 5).

Only what the paper has too; what it never asked is in `reliability` and `citations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pipeline.evaluation.annotation.rating_results import MEAN
from pipeline.evaluation.annotation.rating_results import Mean as HumanMean
from pipeline.evaluation.rouge import FLOOR
from pipeline.report.figures import Bar, BarFigure, series_of
from pipeline.report.filters import count, month_name, number_of, words
from pipeline.report.found import Found, Row
from pipeline.report.grid import NOTHING, Grid, Rows, Section, Value
from pipeline.report.published import DATA, JUDGE, SYSTEMS_1, SYSTEMS_2, TABLE_1, TABLE_2, Printed
from pipeline.report.scores import Mean, mean_of
from pipeline.tables import CRITERIA, RELATED_WORK_SYSTEMS, by_system, parse_writer

_HEAD = ("System", "Model", "R-1", "R-2", "R-L by sentence", "R-L of the whole", "G-Score", "Best, %", "Tasks")
_METRICS = ("rouge1", "rouge2", "rougeLsum", "rougeL")
PUBLISHED, OURS = "As published", "Ours"
# Where a system of ours is not what the paper's row of that name is, or has none there.
_DIFFERS = {
    "table_1": {"chatcite_grounded": "ChatCite, grounded is ours; the paper has no such system."},
    "table_2": {
        "chatcite_no_incremental": "Without incremental steps is what the paper ran: summaries, then few-shot with the "
        "writing guidelines; key elements and votes are missing too.",
        "chatcite_no_reflection": "Without reflection the paper shows box plots alone (Figure 3).",
    },
}
# Percentiles of fewer clusters make too narrow an interval; the retrieval page says so from the same number on.
FEW = 20


def paper_section(found: Found) -> Section:
    """Tables 1 and 2."""
    return Section(
        "tables",
        "The paper's tables, and ours",
        (
            "To compare the shape, not the height: ours are other models, other papers, other lists of references. "
            "R-1, R-2 and R-L are ROUGE F1 in percent against the gold section, with stemming. R-L by sentence is "
            "rouge-score's rougeLsum, R-L of the whole its rougeL; the paper's R-L is 0.91 to 0.93 of its R-1, as only "
            "the one by sentence is on real sections, and stands beside that. A random section, the gold section of "
            "another task of the month, is the floor of every ROUGE. The G-Score, 1 to 5, is "
            "the mean of a judging model's six marks, and compares only systems that it marked in one conversation; "
            "best is the share of the same judge's votes.",
            *((interval_note(found.tasks),) if found.systems else ()),
        ),
        (
            _table("table_1", "Table 1: ChatCite and other methods", TABLE_1, SYSTEMS_1, found),
            _table("table_2", "Table 2: ChatCite with parts taken out", TABLE_2, SYSTEMS_2, found),
        ),
    )


def _table(key: str, title: str, printed: Sequence[Printed], systems: Sequence[str], found: Found) -> Grid:
    """The paper's rows, then ours by each model, and in Table 1 the sections that were written elsewhere."""
    mine = by_system(found.systems, systems)
    if key == "table_1":
        mine += [name for name in found.systems if parse_writer(name).system not in RELATED_WORK_SYSTEMS]
    ours = [_our_row(found, name) for name in mine]
    lacking = [words(system) for system in systems if not by_system(found.systems, [system])]
    notes = [f"Not run here: {', '.join(lacking)}; CITELOOM_SYSTEMS says which are."] if lacking else []
    notes += [text for system, text in _DIFFERS.get(key, {}).items() if by_system(found.systems, [system])]
    if ours:
        notes += _fewer_judged(found, mine)
        ours += _floor_rows(found)
    published = Rows([_printed_row(row) for row in printed], PUBLISHED, f"{DATA}; judge {JUDGE}")
    return Grid(
        key,
        title,
        _HEAD,
        [published, Rows(ours, OURS, basis(found))] if ours else [published],
        notes=notes,
        strong=("ChatCite",),
    )


def interval_note(tasks: int) -> str:
    """What the small numbers under a mean are, and how far they go with so many tasks."""
    said = (
        "Under each mean of ours, from here on, stands its 95 % interval: between these ends it lies in 95 % of "
        "10,000 draws of the tasks with replacement (bootstrap). There is none for a single task, or where all tasks "
        "have one value."
    )
    few = f" With {number_of(tasks, 'task')} it is too narrow: take differences for no more than a hint."
    return said + few if 1 < tasks < FEW else said


def _fewer_judged(found: Found, systems: Sequence[str]) -> list[str]:
    """Where the judge marked fewer sections of a system than it wrote, how many."""
    judged = {system: len(found.scores.by_task(system, "g_score")) for system in systems}
    lacking = [
        f"{words(system)} {count(times)} of {count(found.written[system].done)}"
        for system, times in judged.items()
        if times < found.written[system].done
    ]
    return [f"G-Score and best are of fewer tasks: {', '.join(lacking)}."] if lacking and found.scores.judge else []


def main_rows(found: Found) -> tuple[Sequence[str], list[list[Value]]]:
    """Heads and rows of every system that wrote, as Tables 1 and 2 have them, and the floor of ROUGE."""
    return _HEAD, [*(_our_row(found, system) for system in found.systems), *_floor_rows(found)]


def basis(found: Found, judges: str | None = None) -> str:
    """What our rows rest on: data and judge, which is that of the marks unless others are given."""
    first, last = (found.months[0], found.months[-1]) if found.months else ("", "")
    when = month_name(first) if first == last else f"{month_name(first)} to {month_name(last)}"
    who = found.scores.judge if judges is None else judges
    judge = f"judge {who}" if who else "nothing was judged"
    small = f"; no measure of the methods, as {found.small_model} wrote or judged" if found.small_model else ""
    return f"{number_of(found.tasks, 'task')} of {when}; {judge}{small}"


def model_of(found: Found, system: str) -> str:
    """The model, or models, that a system wrote with; for an imported system that it was elsewhere."""
    elsewhere = "" if parse_writer(system).system in RELATED_WORK_SYSTEMS else "elsewhere"
    return ", ".join(sorted(found.written[system].models)) or elsewhere


def _printed_row(row: Printed) -> list[Value]:
    rouge = [Value(value, "two") for value in (row.rouge1, row.rouge2, row.rouge_l, None)]
    marks = [Value(row.g_score, "two"), Value(row.preference, "two"), Value(50, "count")]
    return [Value(row.name), Value(row.model), *rouge, *marks]


def _our_row(found: Found, system: str) -> list[Value]:
    rouge = [found.scores.mean(system, metric).cell("two") for metric in _METRICS]
    vote = _hundredfold(found.scores.mean(system, "g_vote"))
    marks = [found.scores.mean(system, "g_score").cell("two"), vote.cell("two")]
    written = Value(found.written[system].done, "count")
    return [Value(words(system)), Value(model_of(found, system)), *rouge, *marks, written]


def _floor_rows(found: Found) -> list[list[Value]]:
    """The row of the random section; none where no month has two gold sections."""
    if not found.scores.by_task(FLOOR, _METRICS[0]):
        return []
    means = [found.scores.mean(FLOOR, metric) for metric in _METRICS]
    marks = [Value(None, "two"), Value(None, "two"), Value(means[0].tasks, "count")]
    return [[Value(words(FLOOR)), Value("another task's gold section"), *(mean.cell("two") for mean in means), *marks]]


def _hundredfold(mean: Mean) -> Mean:
    value, low, high = (None if each is None else 100 * each for each in (mean.value, mean.low, mean.high))
    return Mean(value, low, high, mean.tasks)


def criteria_section(found: Found) -> Section | None:
    """Figure 4: the six criteria, the judge beside people where people marked; None where nothing was judged."""
    judged = [system for system in found.systems if found.scores.by_task(system, "g_score")]
    people = _human_means(found)
    if not judged and not people:
        return None
    groups = [(name_of(each), _criterion_bars(found, judged, people, each)) for each in CRITERIA]
    figure = BarFigure(
        "Figure 4: the six criteria",
        groups,
        _criteria_caption(found, judged, people),
    )
    parts = [Rows(_criteria_rows(found, judged), f"Judge {found.scores.judge}")] if judged else []
    if people:
        parts.append(Rows(_human_rows(people), "People"))
    head = ("System", *map(name_of, CRITERIA), "G-Score", "Tasks")
    about = f"Marks from 1 to 5; the judge's with all systems of a task in one conversation. {basis(found)}."
    return Section(
        "criteria", "The six criteria", (), (figure, Grid("criteria", "Marks by criterion", head, parts, about))
    )


def _criteria_caption(found: Found, judged: Sequence[str], people: Mapping[str, object]) -> str:
    told = "Marks from 1 to 5, mean over tasks, on an axis from 0 to 5; whiskers: 95 % interval."
    told += f" Filled: {found.scores.judge} as judge." if judged else ""
    asked = found.people
    if people and asked:
        who = f"{number_of(len(asked.raters), 'rater')} on {number_of(asked.tasks, 'task')}"
        told += f" Outlined: people ({who}), of the systems that they were shown."
    return told


def name_of(criterion: str) -> str:
    """`citation_accuracy` → `Citation accuracy`."""
    return words(criterion).capitalize()


def _criterion_bars(
    found: Found, judged: Sequence[str], people: Mapping[str, Mapping[str, Mean]], criterion: str
) -> list[Bar]:
    bars = []
    for system in sorted({*judged, *people}):
        if system in judged:
            bars.append(_mark_bar(system, found.scores.mean(system, f"g_{criterion}")))
        mark = people.get(system, {}).get(criterion)
        if mark is not None and mark.value is not None:
            bars.append(_mark_bar(system, mark, hollow=True))
    return bars


def _mark_bar(system: str, mean: Mean, *, hollow: bool = False) -> Bar:
    value = mean.value or 0.0
    low, high = (None if each is None else each / 5 for each in (mean.low, mean.high))
    name = "by people" if hollow else words(system)
    return Bar(name, f"{value:.2f}", value / 5, series_of(system), low, high, hollow)


def _criteria_rows(found: Found, judged: Sequence[str]) -> list[list[Value]]:
    return [
        [
            Value(words(system)),
            *(found.scores.mean(system, f"g_{criterion}").cell("two") for criterion in CRITERIA),
            found.scores.mean(system, "g_score").cell("two"),
            Value(len(found.scores.by_task(system, "g_score")), "count"),
        ]
        for system in judged
    ]


def _human_means(found: Found) -> dict[str, dict[str, Mean]]:
    """System → criterion → mean over tasks of what raters gave, under `mean` of the six together; marked ones alone."""
    systems = found.people.systems if found.people else ()
    return {
        each.system: {name: _mean(mean) for name, mean in each.marks.items()}
        for each in systems
        if any(mean.value is not None for mean in each.marks.values())
    }


def _human_rows(people: Mapping[str, Mapping[str, Mean]]) -> list[list[Value]]:
    return [
        [
            Value(words(system)),
            *(marks[name].cell("two") for name in (*CRITERIA, MEAN)),
            Value(max(mean.tasks for mean in marks.values()), "count"),
        ]
        for system, marks in sorted(people.items())
    ]


def preference_section(found: Found) -> Section | None:
    """Figure 5: whose section was liked best, by each judge and by people; None where nobody was asked."""
    from pipeline.evaluation.statistics import votes_by_task

    cast = {judge: votes_by_task(found.judgements, judge) for judge in found.scores.judges()}
    asked = [
        _Asked(f"Judge {judge}", sum(map(len, votes.values())), len(votes), _preferences(found, judge, votes))
        for judge, votes in cast.items()
        if votes
    ]
    asked += _people_asked(found)
    if not asked:
        return None
    figure = BarFigure(
        "Figure 5: preference",
        [(each.told, _preference_bars(each)) for each in asked],
        "Share of the votes for the best section of a task, every task weighing the same; whiskers: 95 % interval. In "
        "the paper people chose, on 10 samples.",
    )
    rows = [
        [Value(words(system)), *(each.shares.get(system, Mean(None)).cell("percent") for each in asked)]
        for system in found.systems
    ]
    totals = [Value("Votes"), *(Value(each.votes, "count") for each in asked)]
    about = f"{NOTHING}: the system was not among those to choose from."
    head = ("System", *(each.name for each in asked))
    return Section(
        "preference",
        "Preference",
        (),
        (figure, Grid("preference", "Votes", head, [Rows([*rows, totals])], about, strong=("Votes",))),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who chose, how often, on how many tasks; system → share of the choices, of systems that were on offer."""

    name: str
    votes: int
    tasks: int
    shares: Mapping[str, Mean]
    hollow: bool = False

    @property
    def told(self) -> str:
        return f"{self.name}, {number_of(self.votes, 'vote')} on {number_of(self.tasks, 'task')}"


def _preferences(found: Found, judge: str, votes: Mapping[str, Sequence[str]]) -> dict[str, Mean]:
    seen = {name for row in found.judgements if row["judge"] == judge and row["best"] for name in row["order"]}
    return {system: _preference(votes, system) for system in sorted(seen)}


def _people_asked(found: Found) -> list[_Asked]:
    people = found.people
    if people is None or not people.choices:
        return []
    shares = {each.system: _mean(each.preferred) for each in people.systems if each.preferred.value is not None}
    tasks = {row["task_id"] for row in found.ratings if row["preferred"]}
    return [_Asked("People", people.choices, len(tasks), shares, hollow=True)]


def _mean(told: HumanMean) -> Mean:
    return Mean(told.value, told.low, told.high, told.tasks)


def _preference(votes: Mapping[str, Sequence[str]], system: str) -> Mean:
    shares = {task: fmean(vote == system for vote in cast) for task, cast in votes.items() if cast}
    return mean_of(shares)


def _preference_bars(asked: _Asked) -> list[Bar]:
    return [
        Bar(words(system), mean.cell("percent").shown, mean.value or 0.0, series_of(system), mean.low, mean.high,
            hollow=asked.hollow)
        for system, mean in asked.shares.items()
    ]  # fmt: skip


def tasks_grid(found: Found, lines: Sequence[Row], most: int) -> Grid:
    """The month's tasks with their main score by system. lines: page, arxiv_id, title, references, outside, task_id."""
    metric = "g_score" if found.scores.judge else "rouge1"
    head = ("Target", "arXiv", "References", "Not used", *(words(system) for system in found.systems))
    rows = [_task_row(found, line, metric) for line in lines[:most]]
    notes = [f"The other {count(len(lines) - most)} are in the tables; each has its page."] if len(lines) > most else []
    judged = (
        f"Under each system the G-Score by {found.scores.judge}, all systems in one conversation; best: most votes."
    )
    about = judged if metric == "g_score" else "Under each system ROUGE-1 F1."
    about += f" {NOTHING}: no score. Not used: works cited in the section taken out that are no reference of the task."
    return Grid("tasks", "Tasks", head, [Rows(rows)], about, notes, stacked=True)


def _task_row(found: Found, line: Row, metric: str) -> list[Value]:
    values = found.scores.of_task(line["task_id"], found.systems, metric)
    votes = found.scores.of_task(line["task_id"], found.systems, "g_vote")
    most = max(votes.values(), default=0.0)
    best = {system for system, share in votes.items() if share == most and share > 0}
    scores = [Value(values.get(each), "two", tag="best" if each in best else "") for each in found.systems]
    return [
        Value(line["title"], page=line["page"]),
        Value(line["arxiv_id"], arxiv_id=line["arxiv_id"]),
        Value(line["references"], "count"),
        Value(line["outside"], "count"),
        *scores,
    ]
