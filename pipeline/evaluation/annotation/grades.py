"""Grades of answers to questions: what graders read, and the results beside the judge's verdicts.

Graders see the claims into which a judge split the answers. Where no judge graded, or a study asks
for it, they see whole sentences, and split these into claims by giving several verdicts. They do
not see a judge's verdicts, quotes and passages: the search for passages is part of what is tested,
so people read the papers themselves.

Verdicts of graders and of a judge are compared on the same claims and gold claims. What cannot be
computed is absent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    GOLD_POINTS,
    overall_verdict,
    split_verdicts,
)
from pipeline.identity.months import select_months
from pipeline.index.papers import rows_of_papers
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import writer_name
from pipeline.text import one_line, text_digest

SILENT = ("abstained", "claims_nothing")
"""Outcomes that leave nothing to annotate."""
NO_JUDGE = ""
"""The judge of answers that no model graded."""


class Share(NamedTuple):
    """What the verdicts on a part of an answer are counted as.

    measure: its name in `answer_measures`. points: verdict → points. level: of agreement.
    """

    measure: str
    points: Mapping[str, float]
    level: Level


SHARES: Mapping[Part, Share] = {
    # `not_checkable` is neither more nor less than the other verdicts on claims.
    "claim": Share("factual", CLAIM_POINTS, "nominal"),
    "gold": Share("coverage", GOLD_POINTS, "ordinal"),
}


class ClaimKey(NamedTuple):
    """A claim of a system's answer, or a gold claim beside it."""

    question_id: str
    system: str
    part: Part
    text: str


Points = dict[tuple[str, str], dict[str, dict[str, tuple[list[float], list[float]]]]]
"""(System, measure) → question → grader → points of the grader's verdicts, and of the judge's."""


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
    """One system by people and by one judge, on the claims that both graded.

    people, judged: measure → mean over questions. difference: people less judge, None for fewer
    than two questions. NO_JUDGE has no values in `judged` and no differences.
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


def read_grade_results(
    root: DataRoot, months: Iterable[str], study: str | None = None
) -> GradeResults:
    """The results of the months' grades on claims of judges or on sentences of answers, of one
    study or of all. Raises as `DataRoot.iterate` does.
    """
    rows: list[Row] = []
    grades: list[Grade] = []
    outdated = 0
    for month in sorted({*months} & {*root.months(tables.HUMAN_GRADES)}):
        answers = gradable_answers(root, month)
        digests = {key: answer.digest for key, answer in answers.items()}
        current, outdated_rows = read_current(root, FORMATS["grades"], month, digests, study)
        of_judges = read_grades(root, month)
        of_sentences = [answer.sentence_grade() for answer in answers.values()]
        judged = {key for grade in of_judges for key in _verdicts_of(grade)}
        known = judged.union(*map(_verdicts_of, of_sentences))
        on_claims = [row for row in current if _key(row) in known]
        if any(_key(row) not in judged for row in on_claims):
            of_judges += of_sentences
        # Two sets of questions may use one id.
        rows += [{**row, "question_id": f"{month} {row['question_id']}"} for row in on_claims]
        grades += [{**row, "question_id": f"{month} {row['question_id']}"} for row in of_judges]
        outdated += outdated_rows + len(current) - len(on_claims)
    return grade_results(rows, grades, outdated)


def grade_results(rows: Iterable[Row], grades: Sequence[Grade], outdated: int = 0) -> GradeResults:
    """The results of rows of `human_grades` beside grades of judges."""
    # Graders of two studies that have one name, such as annotator-1, may be two people.
    named = [{**row, "grader": f"{row['study']}: {row['grader']}"} for row in rows]
    verdicts: dict[ClaimKey, dict[str, str]] = defaultdict(dict)
    for row in sorted(named, key=lambda row: (_key(row), row["grader"])):
        if row["verdict"] is not None:
            verdicts[_key(row)][row["grader"]] = row["verdict"]
    lines: dict[Part, dict[ClaimKey, list[str]]] = {
        part: {
            key: [*map(overall_verdict, by_grader.values())]
            for key, by_grader in verdicts.items()
            if key.part == part
        }
        for part in SHARES
    }
    by_judge = {
        judge: [grade for grade in grades if grade["judge"] == judge]
        for judge in names_of(grades, "judge")
    }
    return GradeResults(
        studies=names_of(named, "study"),
        graders=names_of(named, "grader"),
        questions=len(names_of(named, "question_id")),
        answers=len({(row["question_id"], row["system"]) for row in named}),
        verdicts=sum(
            len(split_verdicts(line))
            for of_claim in verdicts.values()
            for line in of_claim.values()
        ),
        comments=sum(row["comment"] is not None for row in named),
        outdated=outdated,
        agreement={
            part: agreement_of(
                (
                    (key, [*share.points].index(verdict))
                    for key, line in lines[part].items()
                    for verdict in line
                ),
                share.level,
            )
            for part, share in SHARES.items()
        },
        accuracy={
            judge: {part: _judge_accuracy(part, mine, lines[part]) for part in SHARES}
            for judge, mine in by_judge.items()
            if named and judge
        },
        systems=tuple(
            system
            for judge, mine in by_judge.items()
            for system in _compare_systems(judge, mine, verdicts)
        ),
    )


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


def _judge_accuracy(
    part: Part, grades: Iterable[Grade], lines: Mapping[ClaimKey, Collection[str]]
) -> Accuracy:
    """How often one judge is right. lines: claim → the verdict of each grader on it."""
    import numpy as np

    judged = {
        key: verdict
        for grade in grades
        for key, verdict in _verdicts_of(grade).items()
        if verdict is not None and key in lines
    }
    majority = winners({key: lines[key] for key in sorted(judged)})
    pairs = {key: (people, judged[key]) for key, people in majority.items()}
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
        undecided=len(judged) - len(pairs),
        confusion=[
            {"people": people, "judge": judge, "units": units}
            for (people, judge), units in sorted(Counter(pairs.values()).items())
        ],
    )


def _compare_systems(
    judge: str, grades: Iterable[Grade], verdicts: Mapping[ClaimKey, Mapping[str, str]]
) -> Iterator[SystemComparison]:
    """Each system that was graded. Every grader's verdicts count alike: an answer's share is the
    mean over those who graded it, and the judge's is that of the same claims.

    Answers that abstain or claim nothing are in no sheet, and hold no gold claim: they count for
    the graders of the system who graded gold claims of the question in another answer.

    verdicts: claim → grader → verdict, or several as `split_verdicts` reads them.
    """
    of_system: dict[str, set[str]] = defaultdict(set)
    of_gold: dict[str, set[str]] = defaultdict(set)
    for key, by_grader in verdicts.items():
        of_system[key.system] |= by_grader.keys()
        if key.part == "gold":
            of_gold[key.question_id] |= by_grader.keys()
    given: Points = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: ([], []))))
    for grade in grades:
        question, system = grade["question_id"], grade["system"]
        silent_for = of_system[system] & of_gold[question]
        for key, verdict in _verdicts_of(grade).items():
            if verdict is None and judge != NO_JUDGE:
                continue
            lines = verdicts.get(key, {})
            if grade["outcome"] in SILENT:
                lines = dict.fromkeys(silent_for, str(verdict))
            measure, points, _ = SHARES[key.part]
            for grader, line in lines.items():
                of_people, of_judge = given[system, measure][question][grader]
                of_people += [points[each] for each in split_verdicts(line)]
                if verdict is not None and judge != NO_JUDGE:
                    of_judge.append(points[verdict])
    for system in sorted({system for system, _ in given}):
        people, judged = (
            {
                share.measure: {
                    question: [fmean(pair[place]) for pair in pairs.values() if pair[place]]
                    for question, pairs in given[system, share.measure].items()
                }
                for share in SHARES.values()
                if (system, share.measure) in given
            }
            for place in (0, 1)
        )
        yield SystemComparison(
            judge=judge,
            system=system,
            people={name: estimate(values) for name, values in people.items()},
            judged={name: estimate(values) for name, values in judged.items()},
            difference={
                name: paired_difference(values, judged[name]) for name, values in people.items()
            },
        )
