"""Grades of answers to questions: what graders read, and the results beside the judge's verdicts.

Annotators see the claims into which a judge split the answers. Of answers that no judge graded, or
in a study that is to need no model, they see whole sentences, and split these into claims
themselves by giving several verdicts. They see neither verdicts, quotes nor passages of a judge:
passages that were looked up are part of what is tested, so people go by the papers themselves.

A person's verdict is on the very claim or gold claim that the judge had a verdict on, so both are
compared one by one, on the same claims. What cannot be computed is absent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from pipeline import tables
from pipeline.answering.systems import writes_answers
from pipeline.corpus.links import abstract_url
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import (
    FORMATS,
    Part,
    Selection,
    StudyItem,
    StudyText,
    agreement_of,
    names_of,
    read_current,
    select_items,
    winners,
)
from pipeline.evaluation.answers.measures import Grade, read_grades
from pipeline.evaluation.statistics import (
    Estimate,
    Level,
    estimate,
    mean_ends,
    paired_difference,
)
from pipeline.evaluation.verdicts import (
    CLAIM_POINTS,
    CLAIM_VERDICTS,
    GOLD_POINTS,
    GOLD_VERDICTS,
    overall_verdict,
    split_verdicts,
)
from pipeline.identity.months import select_months
from pipeline.index.papers import rows_of_papers
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name
from pipeline.text import one_line, text_digest

VERDICTS: Mapping[Part, tuple[str, ...]] = {"claim": CLAIM_VERDICTS, "gold": GOLD_VERDICTS}
SILENT = ("abstained", "claims_nothing")
"""Outcomes that leave nothing to annotate."""
NO_JUDGE = ""
"""The judge of answers that no model graded."""
COMPARED: Mapping[Part, tuple[str, Mapping[str, float]]] = {
    "claim": ("factual", CLAIM_POINTS),
    "gold": ("coverage", GOLD_POINTS),
}
"""Part → its measure in `answer_measures`, and the points of its verdicts."""
# `not_checkable` is neither more nor less than the other verdicts on claims; those on gold claims
# have an order.
_LEVELS: Mapping[Part, Level] = {"claim": "nominal", "gold": "ordinal"}


class ClaimKey(NamedTuple):
    """A claim of a system's answer, or a gold claim beside it."""

    question_id: str
    system: str
    part: Part
    text: str


Verdicts = Mapping[ClaimKey, Mapping[str, str]]
"""Claim → grader → verdict, or several as `split_verdicts` reads them."""
Shares = dict[tuple[str, str], dict[str, list[float]]]
"""(System, measure) → question → a value for each grader."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a judge's verdicts are those of most graders.

    units: claims with a verdict of both. same: share with the same one, its interval over questions
    in `low` and `high`, None for one question. alpha: nominal, of graders and judge. undecided:
    claims on which graders are split. confusion: how many claims have these verdicts of `people`
    and `judge`.
    """

    part: Part
    units: int
    same: float | None
    low: float | None
    high: float | None
    alpha: Estimate
    undecided: int
    confusion: Sequence[Mapping[str, str | int]]


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """One system by people and by one judge: measure → mean over the questions that people graded
    it on, of the same claims. difference: people less judge, None for fewer than two questions and
    for NO_JUDGE, whose `judged` are empty.
    """

    judge: str
    system: str
    people: Mapping[str, Estimate]
    judged: Mapping[str, Estimate]
    difference: Mapping[str, Estimate | None]


@dataclass(frozen=True, slots=True)
class GradeResults:
    """Results of people's grades. outdated: rows on answers or claims that have changed since, left
    out; agreement: of the graders; accuracy: judge → part → how often it is right.
    """

    studies: tuple[str, ...]
    graders: tuple[str, ...]
    questions: int
    answers: int
    verdicts: int
    comments: int
    outdated: int
    agreement: Mapping[Part, Estimate]
    accuracy: Mapping[str, Mapping[Part, Accuracy]]
    systems: tuple[SystemComparison, ...]

    @property
    def empty(self) -> bool:
        """Whether there are no grades, outdated ones included."""
        return not (self.graders or self.outdated)


@dataclass(frozen=True, slots=True)
class MonthGrades:
    """A month's rows of people on answers that are still there, and the grades of its judges.
    outdated: how many rows are on others.
    """

    rows: Sequence[Row]
    grades: Sequence[Grade]
    outdated: int = 0


@dataclass(frozen=True, slots=True)
class GradableAnswer:
    """A row of `answers` with its month and the row of its question."""

    month: str
    question: Row
    answer: Row

    @property
    def digest(self) -> str:
        """SHA-256 of the question and the answer."""
        return text_digest(f"{self.question['question']}\0{self.answer['text']}")

    def sentence_grade(self) -> Grade:
        """A grade by no judge, without verdicts: each sentence is a claim."""
        sentences = dict.fromkeys(one_line(row["text"]) for row in self.answer["sentences"])
        claims = [text for text in sentences if any(map(str.isalnum, text))]
        outcome = "answered" if claims else "claims_nothing"
        if self.answer["abstained"]:
            claims, outcome = [], "abstained"
        # An answer without claims holds no gold claim.
        verdict = None if claims else "not"
        return {
            "question_id": self.question["question_id"],
            "system": writer_name(self.answer),
            "judge": NO_JUDGE,
            "outcome": outcome,
            "claims": [{"claim": text, "verdict": None} for text in claims],
            "gold": [
                {"claim": claim["claim"], "verdict": verdict} for claim in self.question["claims"]
            ],
        }


def gradable_answers(root: DataRoot, month: str) -> dict[tuple[str, str], GradableAnswer]:
    """(Question id, system) → its answer, of a month. Raises as `DataRoot.iterate` does."""
    files = root.file(tables.QUESTIONS, month), root.file(tables.ANSWERS, month)
    if not all(file.exists() for file in files):
        return {}
    columns = ["question_id", "question", "papers", "claims"]
    rows = root.rows(tables.QUESTIONS, month, columns)
    questions = {row["question_id"]: row for row in rows}
    columns = ["question_id", "system", "model", "text", "sentences", "abstained"]
    return {
        (row["question_id"], writer_name(row)): GradableAnswer(
            month, questions[row["question_id"]], row
        )
        for row in root.iterate(tables.ANSWERS, month, columns)
        if writes_answers(row["system"]) and row["question_id"] in questions
    }


def answers_to_grade(
    root: DataRoot,
    months: str,
    systems: Sequence[str] | None,
    *,
    most: int,
    seed: int,
    sentences: bool = False,
) -> tuple[Selection, list[StudyItem]]:
    """Questions to which every system has an answer, `most` at most, with the answers that claim
    anything. systems: None for all. sentences: show sentences also where a judge has split the
    answers.

    All judges grade the same claims, so the first in the table is taken. In a month without a
    judge, sentences are shown. Raises SettingError for a question that two months ask,
    MissingInput where there is nothing to grade, and as `select_items` does.
    """
    answered = root.months(tables.ANSWERS)
    texts: dict[tuple[str, str], GradableAnswer] = {}
    grades: dict[str, dict[str, Grade]] = defaultdict(dict)
    for month in select_months(months, answered) if answered else []:
        new = gradable_answers(root, month)
        for twice in sorted(grades.keys() & {question for question, _ in new}):
            raise SettingError(f"question {twice} is asked in {month} and before: narrow --months")
        texts |= new
        of_judges = [] if sentences else read_grades(root, month)
        for grade in of_judges or [answer.sentence_grade() for answer in new.values()]:
            question, system = grade["question_id"], grade["system"]
            if (question, system) in new:
                grades[question].setdefault(system, grade)
    selection = select_items(grades, systems, most=most, seed=seed)
    items = [
        _item(root, [(texts[question, name], grades[question][name]) for name in selection.systems])
        for question in selection.item_ids
    ]
    if not any(item.texts for item in items):
        raise MissingInput("no answer has anything to grade: all abstained, or claim nothing")
    return selection, [item for item in items if item.texts]


def _item(root: DataRoot, answers: Sequence[tuple[GradableAnswer, Grade]]) -> StudyItem:
    """The item of one question."""
    first = answers[0][0]
    papers = {paper: abstract_url(paper) for paper in first.question["papers"]}
    for row in rows_of_papers(root, tables.PAPERS, papers, ["arxiv_id", "title"]):
        papers[row["arxiv_id"]] = f"{row['title']}, {papers[row['arxiv_id']]}"
    return StudyItem(
        first.question["question_id"],
        first.month,
        first.question["question"],
        [("Papers", [*papers.values()])],
        {
            grade["system"]: StudyText(
                answer.answer["text"],
                answer.digest,
                {
                    "claim": [claim["claim"] for claim in grade["claims"]],
                    "gold": [claim["claim"] for claim in grade["gold"]],
                },
            )
            for answer, grade in answers
            if grade["outcome"] not in SILENT
        },
    )


def read_month_grades(
    root: DataRoot, month: str, grades: Sequence[Grade], study: str | None = None
) -> MonthGrades:
    """A month's rows, of one study or of all, on claims of judges or on sentences of answers.

    Raises as `DataRoot.iterate` does.
    """
    if not root.file(tables.HUMAN_GRADES, month).exists():
        return MonthGrades((), grades)
    answers = gradable_answers(root, month)
    digests = {key: answer.digest for key, answer in answers.items()}
    rows, outdated = read_current(root, FORMATS["grades"], month, digests, study)
    of_sentences = [answer.sentence_grade() for answer in answers.values()]
    judged = {key for grade in grades for key in _verdicts_of(grade)}
    claims = judged.union(*map(_verdicts_of, of_sentences))
    current = [row for row in rows if _key(row) in claims]
    if any(_key(row) not in judged for row in current):
        grades = [*grades, *of_sentences]
    return MonthGrades(current, grades, outdated + len(rows) - len(current))


def read_grade_results(
    root: DataRoot, months: Iterable[str], study: str | None = None
) -> GradeResults:
    """The results of the months' grades, of one study or of all. Raises as `read_month_grades`."""
    return pool_months(
        {month: read_month_grades(root, month, read_grades(root, month), study) for month in months}
    )


def pool_months(months: Mapping[str, MonthGrades]) -> GradeResults:
    """The results of some months together."""
    rows: list[Row] = []
    grades: list[Grade] = []
    for month, read in months.items():
        # Two sets of questions may use one id.
        prefix = f"{month} " if len(months) > 1 else ""
        rows += [{**row, "question_id": prefix + row["question_id"]} for row in read.rows]
        grades += [{**grade, "question_id": prefix + grade["question_id"]} for grade in read.grades]
    return grade_results(rows, grades, sum(month.outdated for month in months.values()))


def grade_results(rows: Sequence[Row], grades: Sequence[Grade], outdated: int = 0) -> GradeResults:
    """The results of rows of `human_grades` beside grades of judges."""
    verdicts: dict[ClaimKey, dict[str, str]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: (_key(row), _grader(row))):
        if row["verdict"] is not None:
            verdicts[_key(row)][_grader(row)] = row["verdict"]
    by_judge = {
        judge: [grade for grade in grades if grade["judge"] == judge]
        for judge in names_of(grades, "judge")
    }
    answers = {(row["question_id"], row["system"]) for row in rows}
    lines = [line for by_grader in verdicts.values() for line in by_grader.values()]
    return GradeResults(
        studies=names_of(rows, "study"),
        graders=tuple(sorted({_grader(row) for row in rows})),
        questions=len(names_of(rows, "question_id")),
        answers=len(answers),
        verdicts=sum(len(split_verdicts(line)) for line in lines),
        comments=sum(row["comment"] is not None for row in rows),
        outdated=outdated,
        agreement={part: _graders_agreement(verdicts, part) for part in VERDICTS},
        accuracy={
            judge: {part: _judge_accuracy(mine, verdicts, part) for part in VERDICTS}
            for judge, mine in by_judge.items()
            if rows and judge
        },
        systems=tuple(
            system
            for judge, mine in by_judge.items()
            for system in _compare_systems(judge, mine, verdicts)
        ),
    )


def _grader(row: Row) -> str:
    """Graders of two studies that have one name, such as annotator-1, may be two people."""
    return f"{row['study']}: {row['grader']}"


def _key(row: Row) -> ClaimKey:
    return ClaimKey(row["question_id"], row["system"], row["part"], row["text"])


def _verdicts_of(grade: Grade) -> dict[ClaimKey, str | None]:
    """Claim → the judge's verdict, of every claim and gold claim of a grade."""
    parts: Mapping[Part, Sequence[Row]] = {"claim": grade["claims"], "gold": grade["gold"]}
    return {
        ClaimKey(grade["question_id"], grade["system"], part, claim["claim"]): claim["verdict"]
        for part, claims in parts.items()
        for claim in claims
    }


def _lines(verdicts: Verdicts, part: Part) -> dict[ClaimKey, list[str]]:
    """Claim → the verdict of each grader on its line as a whole."""
    return {
        key: [overall_verdict(verdict) for verdict in by_grader.values()]
        for key, by_grader in verdicts.items()
        if key.part == part
    }


def _graders_agreement(verdicts: Verdicts, part: Part) -> Estimate:
    lines = _lines(verdicts, part).items()
    codes = ((key, VERDICTS[part].index(verdict)) for key, line in lines for verdict in line)
    return agreement_of(codes, _LEVELS[part])


def _judge_accuracy(grades: Iterable[Grade], verdicts: Verdicts, part: Part) -> Accuracy:
    """How often one judge is right about the claims that people graded too."""
    import numpy as np

    judged = {
        key: verdict
        for grade in grades
        for key, verdict in _verdicts_of(grade).items()
        if verdict is not None
    }
    lines = {key: line for key, line in _lines(verdicts, part).items() if key in judged}
    pairs = {key: (people, judged[key]) for key, people in sorted(winners(lines).items())}
    same = np.array([people == judge for people, judge in pairs.values()], dtype=float)
    low, high = mean_ends(same, [key.question_id for key in pairs]) if pairs else (None, None)
    return Accuracy(
        part=part,
        units=len(pairs),
        same=float(same.mean()) if pairs else None,
        low=low,
        high=high,
        alpha=agreement_of(
            ((key, verdict) for key, pair in pairs.items() for verdict in pair), "nominal"
        ),
        undecided=len(lines) - len(pairs),
        confusion=[
            {"people": people, "judge": judge, "units": units}
            for (people, judge), units in sorted(Counter(pairs.values()).items())
        ],
    )


def _compare_systems(
    judge: str, grades: Sequence[Grade], verdicts: Verdicts
) -> Iterator[SystemComparison]:
    """Each system that was graded. Every grader's verdicts count alike: an answer's share is the
    mean over those who graded it, and the judge's is that of the same claims.

    No sheet has answers that abstain or claim nothing, and yet they hold no gold claim: they count
    for questions of which the grader graded gold claims in another answer.
    """
    people: Shares = defaultdict(lambda: defaultdict(list))
    judged: Shares = defaultdict(lambda: defaultdict(list))
    for grader in sorted({name for by_grader in verdicts.values() for name in by_grader}):
        mine = {
            key: by_grader[grader] for key, by_grader in verdicts.items() if grader in by_grader
        }
        systems = {key.system for key in mine}
        for grade in grades:
            if grade["system"] in systems:
                both = zip((people, judged), _verdicts_on_the_same(grade, mine), strict=True)
                for shares, lines in both:
                    _add_shares(shares, grade, lines)
    for system in sorted({system for system, _ in people}):
        measures = [name for name, _ in COMPARED.values() if (system, name) in people]
        yield SystemComparison(
            judge=judge,
            system=system,
            people={name: estimate(people[system, name]) for name in measures},
            judged={name: estimate(judged[system, name]) for name in measures},
            difference={
                name: paired_difference(people[system, name], judged[system, name])
                for name in measures
            },
        )


def _add_shares(shares: Shares, grade: Grade, verdicts: Mapping[ClaimKey, str]) -> None:
    """Add the share of points that one person's, or the judge's, verdicts give an answer."""
    for part, (measure, points) in COMPARED.items():
        marks = [
            points[verdict]
            for key, line in verdicts.items()
            if key.part == part
            for verdict in split_verdicts(line)
        ]
        if marks:
            shares[grade["system"], measure][grade["question_id"]].append(fmean(marks))


def _verdicts_on_the_same(
    grade: Grade, mine: Mapping[ClaimKey, str]
) -> tuple[Mapping[ClaimKey, str], Mapping[ClaimKey, str]]:
    """A grader's verdicts on an answer, and the judge's on the same claims; none of NO_JUDGE."""
    claims = _verdicts_of(grade)
    judged = {key: verdict for key, verdict in claims.items() if verdict is not None}
    if grade["outcome"] in SILENT:
        question_id = grade["question_id"]
        graded = any(key.part == "gold" and key.question_id == question_id for key in mine)
        of_people = judged if graded else {}
    else:
        known = claims if grade["judge"] == NO_JUDGE else judged
        of_people = {key: mine[key] for key in known if key in mine}
    if grade["judge"] == NO_JUDGE:
        return of_people, {}
    return of_people, {key: judged[key] for key in of_people}
