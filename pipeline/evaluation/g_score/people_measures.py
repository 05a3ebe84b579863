"""Results of people's ratings: marks and preference by system, agreement of raters, and of the
judge with them.

Pure: rows of `human_ratings` and `g_scores` in, numbers out; what cannot be computed is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.evaluation import statistics
from pipeline.evaluation.g_score.measures import named_judgement
from pipeline.evaluation.g_score.people import digests
from pipeline.evaluation.statistics import Estimate, alpha, estimate
from pipeline.tables import CRITERIA, G_SCORES, HUMAN_RATINGS
from pipeline.tables.writers import full_name, short_names, writer_name

if TYPE_CHECKING:
    from pipeline.storage.data_root import DataRoot
    from pipeline.storage.writing import Row

MEAN = "mean"
"""In place of a criterion: the mean of the six, of raters who gave all six."""
_RATING_COLUMNS = [name for name in HUMAN_RATINGS.schema.names if name not in ("label", "comment")]
_G_SCORE_COLUMNS = ["task_id", "candidate_set", "section_repeat", "judge", "marks", "best", "order"]

Key = TypeVar("Key")
Value = TypeVar("Value")
SectionKey = tuple[str, str]
"""Task and system."""
_NAMES = (*CRITERIA, MEAN)


@dataclass(frozen=True, slots=True)
class RatedSystem:
    """One system. marks: criterion, or MEAN → mean mark from 1 to 5; preferred: share, 0 to 1, of
    the choices in which it was on offer. A task weighs the same however many rated it.
    """

    system: str
    marks: Mapping[str, Estimate]
    preferred: Estimate


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How a judge's mean marks go with the raters', section by section.

    marks: criterion, or MEAN → agreement, whose mean_difference is the raters' less the judge's;
    None where no section has marks of both. votes: tasks with one section that most raters prefer
    and one that the judge votes for most often; same: of these, tasks in which they are one.
    """

    judge: str
    marks: Mapping[str, statistics.Agreement | None]
    votes: int
    same: int


@dataclass(frozen=True, slots=True)
class RatingResults:
    """Results of ratings. alpha: criterion → ordinal alpha of the raters; preference: nominal alpha
    of which section they prefer; outdated: ratings of sections that have changed since, left out.
    """

    studies: tuple[str, ...]
    raters: tuple[str, ...]
    tasks: int
    ratings: int
    outdated: int
    choices: int
    systems: tuple[RatedSystem, ...]
    alpha: Mapping[str, Estimate]
    preference: Estimate
    judges: tuple[JudgeAgreement, ...]

    @property
    def empty(self) -> bool:
        """Whether there are no ratings, outdated ones included."""
        return not (self.ratings or self.outdated)


def read_rating_results(
    root: DataRoot, months: Sequence[str], study: str | None = None
) -> RatingResults:
    """The results of the months' ratings, of one study or of all; the months' `g_scores` are
    compared where they are there. Raises as `DataRoot.iterate` does.
    """
    ratings: list[Row] = []
    judgements: list[Row] = []
    outdated = 0
    for month in months:
        current, outdated_rows = read_ratings(root, month, study)
        ratings += current
        outdated += outdated_rows
        if current and root.file(G_SCORES, month).exists():
            judgements += root.iterate(G_SCORES, month, _G_SCORE_COLUMNS)
    shown = short_names(row["system"] for row in ratings)
    return rating_results(
        [{**row, "system": shown[row["system"]]} for row in ratings],
        [named_judgement(row, shown) for row in judgements if row["section_repeat"] == 0],
        outdated,
    )


def read_ratings(root: DataRoot, month: str, study: str | None = None) -> tuple[list[Row], int]:
    """(Ratings of sections that have not changed since, with their writers' names as `system`;
    count of others) of a month, of one study or of all. Raises as `DataRoot.iterate` does.
    """
    if not root.file(HUMAN_RATINGS, month).exists():
        return [], 0
    sections = digests(root, month)
    writers = {name for _, name in sections}
    current: list[Row] = []
    outdated = 0
    for row in root.iterate(HUMAN_RATINGS, month, _RATING_COLUMNS):
        if study in (None, row["study"]):
            system = full_name(writer_name(row), writers)
            if sections.get((row["task_id"], system)) == row["text_sha256"]:
                current.append({**row, "system": system})
            else:
                outdated += 1
    return current, outdated


def rating_results(
    ratings: Iterable[Row], judgements: Sequence[Row] = (), outdated: int = 0
) -> RatingResults:
    """Results of rows of `human_ratings`, beside rows of `g_scores` on the same sections: those of
    the candidate set that is nearest to the rated systems.

    Two studies' ratings of one task are kept apart for agreement, and joined for means.
    """
    rows = sorted(
        ratings, key=lambda row: [row[name] for name in ("study", "task_id", "system", "rater")]
    )
    return RatingResults(
        studies=tuple(sorted({row["study"] for row in rows})),
        raters=tuple(sorted({row["rater"] for row in rows})),
        tasks=len({row["task_id"] for row in rows}),
        ratings=len(rows),
        outdated=outdated,
        choices=sum(bool(row["preferred"]) for row in rows),
        systems=tuple(_system(rows, system) for system in sorted({row["system"] for row in rows})),
        alpha={name: _marks_alpha(rows, name) for name in CRITERIA},
        preference=_preference_alpha(rows),
        judges=tuple(_judges(rows, _nearest_judgements(rows, judgements))),
    )


def nearest_set(systems: Collection[str], sets: Mapping[str, Collection[str]]) -> str:
    """The candidate set with most of these systems, of equals the one with fewest others; '' for
    none. sets: name → systems.
    """

    def nearness(name: str) -> tuple[int, int, str]:
        return len({*systems} & {*sets[name]}), -len(sets[name]), name

    return max(sets, key=nearness, default="")


def _nearest_judgements(rows: Sequence[Row], judgements: Sequence[Row]) -> list[Row]:
    sets: dict[str, set[str]] = defaultdict(set)
    for row in judgements:
        sets[row["candidate_set"]].update(row["order"])
    nearest = nearest_set({row["system"] for row in rows}, sets)
    return [row for row in judgements if row["candidate_set"] == nearest]


def mark_of(row: Mapping[str, Any], name: str) -> float | None:
    """A rating's mark for a criterion, or for MEAN the mean of all six; None where one lacks."""
    if name != MEAN:
        return None if row[name] is None else float(row[name])
    marks = [row[criterion] for criterion in CRITERIA]
    return None if None in marks else fmean(marks)


def _system(rows: Sequence[Row], system: str) -> RatedSystem:
    of_system = [row for row in rows if row["system"] == system]
    means = {}
    for name in _NAMES:
        marks = ((row["task_id"], mark_of(row, name)) for row in of_system)
        means[name] = estimate(_group((task, mark) for task, mark in marks if mark is not None))
    choices = _group(
        (row["task_id"], float(row["preferred"]))
        for row in of_system
        if row["preferred"] is not None
    )
    return RatedSystem(system, means, estimate(choices))


def _group(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    groups: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _marks_alpha(rows: Iterable[Row], criterion: str) -> Estimate:
    units = _group(
        ((row["study"], row["task_id"], row["system"]), row[criterion])
        for row in rows
        if row[criterion] is not None
    )
    return alpha(list(units.values()), [task for _, task, _ in units])


def _preference_alpha(rows: Iterable[Row]) -> Estimate:
    choices = _group(
        ((row["study"], row["task_id"]), row["system"]) for row in rows if row["preferred"]
    )
    return alpha(list(choices.values()), [task for _, task in choices], "nominal")


def _judges(rows: Sequence[Row], judgements: Iterable[Row]) -> Iterator[JudgeAgreement]:
    people = {
        name: _means(((row["task_id"], row["system"]), mark_of(row, name)) for row in rows)
        for name in _NAMES
    }
    favourites = _favourites((row["task_id"], row["system"]) for row in rows if row["preferred"])
    by_judge = _group((row["judge"], row) for row in judgements)
    for judge, of_judge in sorted(by_judge.items()):
        marked = [
            ((row["task_id"], marks["system"]), marks) for row in of_judge for marks in row["marks"]
        ]
        agreed = {
            name: statistics.agreement(
                _means((place, mark_of(marks, name)) for place, marks in marked), people[name]
            )
            for name in _NAMES
        }
        voted = _favourites((row["task_id"], row["best"]) for row in of_judge if row["best"])
        both = favourites.keys() & voted.keys()
        same = sum(favourites[task] == voted[task] for task in both)
        yield JudgeAgreement(judge, agreed, len(both), same)


def _means(marked: Iterable[tuple[SectionKey, float | None]]) -> dict[SectionKey, float]:
    """The mean of each section's marks, over raters or over repeats of a judge."""
    groups = _group((section, mark) for section, mark in marked if mark is not None)
    return {section: fmean(marks) for section, marks in groups.items()}


def _favourites(votes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Task → the system with most votes; a task in which two have as many has none."""
    winners = {task: statistics.clear_winner(systems) for task, systems in _group(votes).items()}
    return {task: winner for task, winner in winners.items() if winner is not None}
