"""What people say of sections and answers, how far they agree, and the judge beside them.

Names and order of the six criteria of ratings are ChatCite's (arXiv 2403.02574, section 4); the
guide's words are ours, and say the same as the judge's. A study is of the systems of one candidate
set; marks and votes of two sets are never pooled. Verdicts of graders and of a judge are compared
on the same claims and gold claims. What cannot be computed is None or absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pipeline import tables
from pipeline.evaluation.annotation.export import (
    SILENT,
    answers_to_grade,
    sections_to_rate,
)
from pipeline.evaluation.annotation.study import CLAIMS, FORMATS, Kind, Part
from pipeline.evaluation.answers.measures import Grade, read_grades
from pipeline.evaluation.g_score.measures import vote_shares
from pipeline.evaluation.g_score.sample import candidate_sets
from pipeline.evaluation.statistics import (
    Agreement,
    Estimate,
    Level,
    Section,
    agreement,
    alpha,
    estimate,
    group,
    mean_ends,
    paired_difference,
    winners,
)
from pipeline.evaluation.verdicts import CLAIM_POINTS, GOLD_POINTS
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import CRITERIA
from pipeline.tables.writers import full_name, writer_name

MEAN = "mean"  # in place of a criterion: the mean of the six, of raters who gave all six
# Criterion, or MEAN → section → its marks.
Marks = Mapping[str, Mapping[Section, Sequence[float]]]


class JudgeAgreement(NamedTuple):
    """How far a judge agrees with the raters on the same sections.

    marks: criterion, or MEAN → agreement, whose mean_difference is the raters' less the judge's;
    None where no section has marks of both. votes: tasks with one section that most raters prefer
    and one that the judge votes for most often; same: of these, tasks in which they are one.
    """

    judge: str
    marks: Mapping[str, Agreement | None]
    votes: int
    same: int


class RatedSet(NamedTuple):
    """Ratings of the systems of one candidate set. A task weighs the same however many rated it.

    choices: how often a section was preferred; voted: on how many tasks. marks: system →
    criterion, or MEAN → mean mark from 1 to 5. preferred: system → its share, 0 to 1, of the
    choices. alpha: criterion → ordinal alpha of the raters; preference: nominal alpha of which
    section they prefer.
    """

    studies: Sequence[str]
    raters: int
    tasks: int
    ratings: int
    choices: int
    voted: int
    marks: Mapping[str, Mapping[str, Estimate]]
    preferred: Mapping[str, Estimate]
    alpha: Mapping[str, Estimate]
    preference: Estimate
    judges: Sequence[JudgeAgreement]


class RatingResults(NamedTuple):
    """Results of ratings by candidate set. outdated: ratings of sections that have changed since,
    left out.
    """

    sets: Mapping[str, RatedSet]
    outdated: int


def read_rating_results(root: DataRoot, settings: Settings, months: Iterable[str]) -> RatingResults:
    """The results of the months' ratings, beside their `g_scores` where they are there. Raises as
    `DataRoot.iterate` does.
    """
    ratings, outdated = _read_current(root, "ratings", months)
    judgements = [
        row
        for month in _names(ratings, "month")
        if root.file(tables.G_SCORES, month).exists()
        for row in root.iterate(tables.G_SCORES, month)
        if row["section_repeat"] == 0
    ]
    sets = candidate_sets(settings, _names(ratings, "system"))
    return RatingResults(rate_sets(ratings, sets, judgements), outdated)


def rate_sets(
    ratings: Iterable[Row], sets: Mapping[str, Collection[str]], judgements: Iterable[Row]
) -> dict[str, RatedSet]:
    """Results of rows of `human_ratings` by candidate set, beside rows of `g_scores` of that set on
    the same sections.

    sets: name → systems. Two studies' ratings of one task are kept apart for agreement, and joined
    for means.
    """
    by_set: dict[str, list[Row]] = defaultdict(list)
    for rows in group((row["study"], row) for row in ratings).values():
        by_set[_set_of(rows, sets)] += rows
    judged = group((row["candidate_set"], row) for row in judgements)
    return {
        name: _rated_set(by_set[name], judged.get(name, ()))
        for name in (*sets, "")
        if name in by_set
    }


def _set_of(rows: Iterable[Row], sets: Mapping[str, Collection[str]]) -> str:
    """The candidate set of a study: the one with most of its systems, of equals the one with fewest
    others; '' where there is none.
    """
    systems = {row["system"] for row in rows}
    return max(sets, key=lambda name: (len(systems & {*sets[name]}), -len(sets[name])), default="")


def _rated_set(rows: Sequence[Row], judgements: Iterable[Row]) -> RatedSet:
    systems = _names(rows, "system")
    marks = _marks_of_sections(rows)
    preferred = [row for row in rows if row["preferred"]]
    votes = group((row["task_id"], row["system"]) for row in preferred)
    return RatedSet(
        studies=_names(rows, "study"),
        raters=len(_names(rows, "rater")),
        tasks=len(_names(rows, "task_id")),
        ratings=len(rows),
        choices=len(preferred),
        voted=len(votes),
        marks={
            system: {
                name: estimate(
                    {task: given for (task, by), given in sections.items() if by == system}
                )
                for name, sections in marks.items()
            }
            for system in systems
        },
        preferred=vote_shares(votes, systems),
        alpha={
            criterion: alpha(
                (
                    ((row["task_id"], row["study"], row["system"]), row[criterion])
                    for row in rows
                    if row[criterion] is not None
                ),
                "ordinal",
            )
            for criterion in CRITERIA
        },
        preference=alpha(
            (((row["task_id"], row["study"]), row["system"]) for row in preferred), "nominal"
        ),
        judges=[*_judges(marks, votes, judgements)],
    )


def _marks_of_sections(rows: Iterable[Row]) -> Marks:
    with_mean = []
    for row in rows:
        marks = [row[criterion] for criterion in CRITERIA]
        with_mean.append({**row, MEAN: None if None in marks else fmean(marks)})
    return {
        name: group(
            ((row["task_id"], row["system"]), row[name])
            for row in with_mean
            if row[name] is not None
        )
        for name in (*CRITERIA, MEAN)
    }


def _judges(
    marks: Marks, votes: Mapping[str, Sequence[str]], judgements: Iterable[Row]
) -> Iterator[JudgeAgreement]:
    """Each judge beside the raters' marks and votes (task → systems)."""
    favourites = winners(votes)
    for judge, rows in sorted(group((row["judge"], row) for row in judgements).items()):
        judged = _marks_of_sections(
            {**each, "task_id": row["task_id"], "system": writer_name(each)}
            for row in rows
            for each in row["marks"]
        )
        voted = winners(group((row["task_id"], row["best"]) for row in rows if row["best"]))
        both = favourites.keys() & voted.keys()
        yield JudgeAgreement(
            judge,
            {name: agreement(judged[name], marks[name]) for name in marks},
            len(both),
            sum(favourites[task] == voted[task] for task in both),
        )


class Share(NamedTuple):
    """What the verdicts on a part of an answer are counted as: the points of each; and the level of
    agreement.
    """

    points: Mapping[str, float]
    level: Level


SHARES: Mapping[Part, Share] = {
    # `not_checkable` is neither more nor less than the other verdicts on claims.
    "claim": Share(CLAIM_POINTS, "nominal"),
    "gold": Share(GOLD_POINTS, "ordinal"),
}


class Claim(NamedTuple):
    """A claim of a system's answer, or a gold claim beside it."""

    question_id: str
    system: str
    part: Part
    text: str


# Claim → grader → verdict.
Verdicts = Mapping[Claim, Mapping[str, str]]


class Accuracy(NamedTuple):
    """How often a judge's verdicts are those of most graders.

    same: share of the claims with a verdict of both that have the same one; its interval is over
    questions. alpha: nominal, of graders and judge. undecided: claims on which graders are split.
    """

    same: Estimate
    alpha: Estimate
    undecided: int


class Comparison(NamedTuple):
    """A share of one system by people and by a judge, on the claims that both graded: means over
    questions. difference: people less judge, None for fewer than two questions.
    """

    system: str
    part: Part
    people: Estimate
    judged: Estimate
    difference: Estimate | None


class GradeResults(NamedTuple):
    """Results of people's grades. outdated: rows on answers or claims that have changed since, left
    out; agreement: of the graders; accuracy, systems: by judge.
    """

    graders: int
    questions: int
    verdicts: int
    outdated: int
    agreement: Mapping[Part, Estimate]
    accuracy: Mapping[str, Mapping[Part, Accuracy]]
    systems: Mapping[str, Sequence[Comparison]]


def read_grade_results(root: DataRoot, months: Iterable[str]) -> GradeResults:
    """The results of the months' grades on claims of judges. Raises as `DataRoot.iterate` does."""
    rows, outdated = _read_current(root, "grades", months)
    # Two sets of questions may use one id.
    rows = [{**row, "question_id": f"{row['month']} {row['question_id']}"} for row in rows]
    grades = [
        {**grade, "question_id": f"{month} {grade['question_id']}"}
        for month in _names(rows, "month")
        for grade in read_grades(root, month)
    ]
    return grade_results(rows, grades, outdated)


def grade_results(rows: Iterable[Row], grades: Iterable[Grade], outdated: int) -> GradeResults:
    """The results of rows of `human_grades` beside grades of judges on the same claims."""
    verdicts: dict[Claim, dict[str, str]] = defaultdict(dict)
    for row in rows:
        claim = Claim(row["question_id"], row["system"], row["part"], row["text"])
        # None, or several of an earlier sheet.
        if row["verdict"] in SHARES[claim.part].points:
            # Graders of two studies that have one name, such as annotator-1, may be two people.
            verdicts[claim][f"{row['study']}: {row['grader']}"] = row["verdict"]
    judged: dict[str, dict[Claim, str]] = defaultdict(dict)
    silent: set[Claim] = set()
    for grade in grades:
        of_grade = {
            Claim(grade["question_id"], grade["system"], part, claim["claim"]): claim["verdict"]
            for part, column in CLAIMS.items()
            for claim in grade[column]
            if claim["verdict"] is not None
        }
        judged[grade["judge"]] |= of_grade
        if grade["outcome"] in SILENT:
            silent |= of_grade.keys()
    return GradeResults(
        graders=len(set().union(*verdicts.values())),
        questions=len({claim.question_id for claim in verdicts}),
        verdicts=sum(map(len, verdicts.values())),
        outdated=outdated,
        agreement={
            part: alpha(
                (
                    (claim, [*share.points].index(verdict))
                    for claim, given in verdicts.items()
                    if claim.part == part
                    for verdict in given.values()
                ),
                share.level,
            )
            for part, share in SHARES.items()
        },
        accuracy={
            judge: {part: _accuracy(part, of_judge, verdicts) for part in SHARES}
            for judge, of_judge in sorted(judged.items())
        },
        systems={
            judge: [*_compare_systems(of_judge, verdicts, silent)]
            for judge, of_judge in sorted(judged.items())
        },
    )


def _accuracy(part: Part, judged: Mapping[Claim, str], verdicts: Verdicts) -> Accuracy:
    """How often one judge is right."""
    both = [claim for claim in verdicts if claim.part == part and claim in judged]
    majority = winners({claim: verdicts[claim].values() for claim in both})
    same = [verdict == judged[claim] for claim, verdict in majority.items()]
    questions = [claim.question_id for claim in majority]
    low, high = mean_ends(same, questions) if same else (None, None)
    return Accuracy(
        Estimate(fmean(same) if same else None, low, high, len(same)),
        alpha([*majority.items(), *((claim, judged[claim]) for claim in majority)], "nominal"),
        len(both) - len(same),
    )


def _compare_systems(
    judged: Mapping[Claim, str], verdicts: Verdicts, silent: Collection[Claim]
) -> Iterator[Comparison]:
    """Each share of each system that was graded. Every grader's verdicts count alike: an answer's
    share is the mean over those who graded it, and the judge's is that of the same claims.

    silent: gold claims beside answers that abstain or claim nothing. These are in no sheet: they
    count as they do for the judge, for the graders of the system who graded gold claims of the
    question in another answer.
    """
    of_system: dict[str, set[str]] = defaultdict(set)
    of_gold: dict[str, set[str]] = defaultdict(set)
    for claim, given in verdicts.items():
        of_system[claim.system] |= given.keys()
        if claim.part == "gold":
            of_gold[claim.question_id] |= given.keys()
    points: dict[tuple[str, Part, str, str], list[tuple[float, float]]] = defaultdict(list)
    for claim, verdict in judged.items():
        by_grader = verdicts.get(claim, {})
        if claim in silent:
            graders = of_system[claim.system] & of_gold[claim.question_id]
            by_grader = dict.fromkeys(graders, verdict)
        of_verdict = SHARES[claim.part].points
        for grader, by_person in by_grader.items():
            points[claim.system, claim.part, claim.question_id, grader].append(
                (of_verdict[by_person], of_verdict[verdict])
            )
    shares = group(
        ((system, part), (question, tuple(map(fmean, zip(*pairs, strict=True)))))
        for (system, part, question, _), pairs in points.items()
    )
    for (system, part), means in sorted(shares.items()):
        people, of_judge = (
            group((question, mean[place]) for question, mean in means) for place in (0, 1)
        )
        difference = paired_difference(people, of_judge)
        yield Comparison(system, part, estimate(people), estimate(of_judge), difference)


def _read_current(root: DataRoot, kind: Kind, months: Iterable[str]) -> tuple[list[Row], int]:
    """Rows by people on what has not changed since, with their month and with the writer's name as
    `system`; and how many other rows there are.
    """
    form = FORMATS[kind]
    read_items = sections_to_rate if kind == "ratings" else answers_to_grade
    current: list[Row] = []
    outdated = 0
    for month in sorted({*months} & {*root.months(form.table)}):
        texts = {item.item_id: item.texts for item in read_items(root, [month])}
        for row in root.iterate(form.table, month):
            of_item = texts.get(row[form.item], {})
            system = full_name(writer_name(row), of_item)
            text = of_item.get(system)
            if text and text.is_that_of(row):
                current.append({**row, "month": month, "system": system})
            else:
                outdated += 1
    return current, outdated


def _names(rows: Iterable[Row], column: str) -> list[str]:
    """The values of a column, each once, sorted."""
    return sorted({row[column] for row in rows})
