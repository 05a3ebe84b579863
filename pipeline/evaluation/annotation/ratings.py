"""Ratings of related-work sections: what raters read, and the results beside the judge's marks.

Names and order of the six criteria are ChatCite's (arXiv 2403.02574, section 4); the guide's words
are ours, and say the same as the judge's. A study is of the systems of one candidate set; marks and
votes of two sets are never pooled. What cannot be computed is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pipeline import tables
from pipeline.errors import SettingError
from pipeline.evaluation import statistics
from pipeline.evaluation.annotation.study import (
    FORMATS,
    Selection,
    StudyItem,
    StudyText,
    agreement_of,
    group,
    names_of,
    read_current,
    select_items,
    winners,
)
from pipeline.evaluation.g_score.measures import vote_shares
from pipeline.evaluation.g_score.sample import candidate_sets
from pipeline.evaluation.prose import parted
from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.identity.months import select_months
from pipeline.related_work.task_reader import section_rows
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import CRITERIA, G_SCORES
from pipeline.tables.writers import short_names, with_display_name, writer_name
from pipeline.text import clip, text_digest

# About 500 words: title, abstract and the beginning of the introduction. Nobody who rates ten tasks
# reads ten papers.
TARGET_CHARS = 3_500
MEAN = "mean"
"""In place of a criterion: the mean of the six, of raters who gave all six."""
MarksOfSections = dict[str, dict[tuple[str, str], list[float]]]
"""Criterion, or MEAN → (task, system) → its marks."""
_G_SCORE_COLUMNS = ["task_id", "candidate_set", "section_repeat", "judge", "marks", "best"]


def sections_to_rate(
    root: DataRoot,
    settings: Settings,
    months: str,
    systems: Sequence[str] | None,
    *,
    most: int,
    seed: int,
    with_gold: bool,
    candidate_set: str | None = None,
) -> tuple[Selection, list[StudyItem]]:
    """Tasks that every system wrote a section for, `most` at most, to be shown with the section
    that was published or without it.

    systems: None for those of the candidate set, which is the first where none is named. Raises
    SettingError for an unknown set, and as `select_items` does.
    """
    month_of: dict[str, str] = {}
    writers: dict[str, set[str]] = {}
    for month in select_months(months, root.months(tables.RELATED_WORK_TASKS)):
        golds = root.rows(tables.RELATED_WORK_TASKS, month, ["task_id", "gold"])
        usable = {row["task_id"] for row in golds if (row["gold"] or "").strip() or not with_gold}
        for row in golds:
            month_of[row["task_id"]], writers[row["task_id"]] = month, set()
        for row in section_rows(root, month):
            if row["task_id"] in usable and (row["text"] or "").strip():
                writers[row["task_id"]].add(writer_name(row))
    sets = candidate_sets(settings, set().union(*writers.values()))
    if candidate_set not in (None, *sets):
        raise SettingError(f"--set {candidate_set} is none of {', '.join(sets) or 'no set'}")
    of_set = sets.get(candidate_set or next(iter(sets), ""))
    selection = select_items(writers, systems or of_set, most=most, seed=seed)
    items = {
        item.item_id: item
        for month in sorted({month_of[task_id] for task_id in selection.item_ids})
        for item in _read_items(root, month, selection, with_gold=with_gold)
    }
    return selection, [items[task_id] for task_id in selection.item_ids]


def _read_items(
    root: DataRoot, month: str, selection: Selection, *, with_gold: bool
) -> Iterator[StudyItem]:
    """The selected tasks of a month."""
    texts: dict[str, dict[str, StudyText]] = defaultdict(dict)
    for row in section_rows(root, month):
        if writer_name(row) in selection.systems:
            text = StudyText(row["text"], text_digest(row["text"]), {})
            texts[row["task_id"]][writer_name(row)] = text
    for task in root.iterate(tables.RELATED_WORK_TASKS, month):
        if task["task_id"] in selection.item_ids:
            background = [*_background(task, with_gold=with_gold)]
            title, of_task = task["title"] or "", texts[task["task_id"]]
            yield StudyItem(task["task_id"], month, title, background, of_task)


def _background(task: Row, *, with_gold: bool) -> Iterator[tuple[str, list[str]]]:
    target = (task["description"] or "").removeprefix(f"# {task['title']}").strip()
    if len(target) > TARGET_CHARS:
        target = f"{target[:TARGET_CHARS]}… (the paper continues)"
    yield "The target paper", [part.lstrip("# ") for part in parted(target)]
    yield "References", [*map(_reference_line, task["references"])]
    if with_gold:
        yield "The section that was published", parted(task["gold"])


def _reference_line(reference: Row) -> str:
    title, year, arxiv_id = reference["title"], reference["year"], reference["arxiv_id"]
    parts = [title or clip(reference["text"] or ""), year, arxiv_id and f"arXiv:{arxiv_id}"]
    return f"[Reference {reference['number']}] {', '.join(str(part) for part in parts if part)}"


@dataclass(frozen=True, slots=True)
class RatedSystem:
    """One system. marks: criterion, or MEAN → mean mark from 1 to 5; preferred: its share, 0 to 1,
    of the choices in its candidate set. A task weighs the same however many rated it.
    """

    system: str
    marks: Mapping[str, Estimate]
    preferred: Estimate


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far a judge agrees with the raters on the same sections.

    marks: criterion, or MEAN → agreement, whose mean_difference is the raters' less the judge's;
    None where no section has marks of both. votes: tasks with one section that most raters prefer
    and one that the judge votes for most often; same: of these, tasks in which they are one.
    """

    judge: str
    marks: Mapping[str, statistics.Agreement | None]
    votes: int
    same: int


@dataclass(frozen=True, slots=True)
class RatedSet:
    """Ratings of the systems of one candidate set. choices: how often a section was preferred;
    voted: on how many tasks. alpha: criterion → ordinal alpha of the raters; preference: nominal
    alpha of which section they prefer.
    """

    candidate_set: str
    studies: tuple[str, ...]
    raters: tuple[str, ...]
    tasks: int
    ratings: int
    choices: int
    voted: int
    systems: tuple[RatedSystem, ...]
    alpha: Mapping[str, Estimate]
    preference: Estimate
    judges: tuple[JudgeAgreement, ...]


@dataclass(frozen=True, slots=True)
class RatingResults:
    """Results of ratings by candidate set. outdated: ratings of sections that have changed since,
    left out.
    """

    sets: tuple[RatedSet, ...]
    outdated: int

    @property
    def empty(self) -> bool:
        """Whether there are no ratings, outdated ones included."""
        return not (self.sets or self.outdated)

    def of_set(self, name: str) -> RatedSet | None:
        """The results of one candidate set."""
        return next((rated for rated in self.sets if rated.candidate_set == name), None)


def read_rating_results(
    root: DataRoot, settings: Settings, months: Sequence[str], study: str | None = None
) -> RatingResults:
    """The results of the months' ratings, of one study or of all; the months' `g_scores` are
    compared where they are there. Raises as `DataRoot.iterate` does.
    """
    ratings: list[Row] = []
    judgements: list[Row] = []
    outdated = 0
    for month in sorted({*months} & {*root.months(tables.HUMAN_RATINGS)}):
        digests = {
            (row["task_id"], writer_name(row)): text_digest(row["text"])
            for row in section_rows(root, month)
        }
        current, outdated_rows = read_current(root, FORMATS["ratings"], month, digests, study)
        ratings += current
        outdated += outdated_rows
        if current and root.file(G_SCORES, month).exists():
            judgements += root.iterate(G_SCORES, month, _G_SCORE_COLUMNS)
    shown = short_names(row["system"] for row in ratings)
    sets = candidate_sets(settings, shown)
    return rating_results(
        [{**row, "system": shown[row["system"]]} for row in ratings],
        {name: [shown[writer] for writer in writers] for name, writers in sets.items()},
        [
            {
                **row,
                "marks": [with_display_name(marks, shown) for marks in row["marks"]],
                "best": shown.get(row["best"], row["best"]),
            }
            for row in judgements
            if row["section_repeat"] == 0
        ],
        outdated,
    )


def rating_results(
    ratings: Iterable[Row],
    sets: Mapping[str, Collection[str]],
    judgements: Iterable[Row] = (),
    outdated: int = 0,
) -> RatingResults:
    """Results of rows of `human_ratings` by candidate set, beside rows of `g_scores` of that set on
    the same sections.

    sets: name → systems. Two studies' ratings of one task are kept apart for agreement, and joined
    for means.
    """
    rows = sorted(
        ratings, key=lambda row: [row[name] for name in ("study", "task_id", "system", "rater")]
    )
    studies = group((row["study"], row) for row in rows)
    set_of = {study: _set_of(of_study, sets) for study, of_study in studies.items()}
    by_set = group((set_of[row["study"]], row) for row in rows)
    judged = group((row["candidate_set"], row) for row in judgements)
    rated = (_rated_set(name, of_set, judged.get(name, ())) for name, of_set in by_set.items())
    order = [*sets, ""]
    return RatingResults(
        tuple(sorted(rated, key=lambda each: order.index(each.candidate_set))), outdated
    )


def _set_of(rows: Iterable[Row], sets: Mapping[str, Collection[str]]) -> str:
    """The candidate set of a study: the one with most of its systems, of equals the one with fewest
    others; '' where there is none.
    """
    systems = {row["system"] for row in rows}

    def nearness(name: str) -> tuple[int, int]:
        return len(systems & {*sets[name]}), -len(sets[name])

    return max(sets, key=nearness, default="")


def _rated_set(name: str, rows: Sequence[Row], judgements: Iterable[Row]) -> RatedSet:
    systems = names_of(rows, "system")
    marks = _marks_of_sections(rows)
    votes = group((row["task_id"], row["system"]) for row in rows if row["preferred"])
    shares = vote_shares(votes, systems)
    choices = (((row["task_id"], row["study"]), row["system"]) for row in rows if row["preferred"])
    return RatedSet(
        candidate_set=name,
        studies=names_of(rows, "study"),
        raters=names_of(rows, "rater"),
        tasks=len(names_of(rows, "task_id")),
        ratings=len(rows),
        choices=sum(map(len, votes.values())),
        voted=len(votes),
        systems=tuple(
            RatedSystem(
                system,
                {
                    name: estimate(
                        {task: given for (task, by), given in sections.items() if by == system}
                    )
                    for name, sections in marks.items()
                },
                shares[system],
            )
            for system in systems
        ),
        alpha={
            criterion: agreement_of(
                (
                    ((row["task_id"], row["study"], row["system"]), row[criterion])
                    for row in rows
                    if row[criterion] is not None
                ),
                "ordinal",
            )
            for criterion in CRITERIA
        },
        preference=agreement_of(choices, "nominal"),
        judges=tuple(_judges(marks, votes, judgements)),
    )


def _marks_of_sections(rows: Iterable[Row]) -> MarksOfSections:
    groups: MarksOfSections = {name: defaultdict(list) for name in (*CRITERIA, MEAN)}
    for row in rows:
        section = row["task_id"], row["system"]
        given = [row[criterion] for criterion in CRITERIA]
        for name, mark in zip(CRITERIA, given, strict=True):
            if mark is not None:
                groups[name][section].append(mark)
        if None not in given:
            groups[MEAN][section].append(fmean(given))
    return groups


def _judges(
    marks: MarksOfSections, votes: Mapping[str, Sequence[str]], judgements: Iterable[Row]
) -> Iterator[JudgeAgreement]:
    """Each judge beside the raters' marks and votes (task → systems)."""
    people = _means_of_sections(marks)
    favourites = winners(votes)
    for judge, of_judge in sorted(group((row["judge"], row) for row in judgements).items()):
        judged = _means_of_sections(
            _marks_of_sections(
                {**marks, "task_id": row["task_id"]} for row in of_judge for marks in row["marks"]
            )
        )
        voted = winners(group((row["task_id"], row["best"]) for row in of_judge if row["best"]))
        both = favourites.keys() & voted.keys()
        yield JudgeAgreement(
            judge,
            {name: statistics.agreement(judged[name], people[name]) for name in people},
            len(both),
            sum(favourites[task] == voted[task] for task in both),
        )


def _means_of_sections(marks: MarksOfSections) -> dict[str, dict[tuple[str, str], float]]:
    """The mean of each section's marks, over raters or over repeats of a judge."""
    return {
        name: {section: fmean(values) for section, values in sections.items()}
        for name, sections in marks.items()
    }
