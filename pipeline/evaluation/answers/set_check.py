"""What a question set holds, and what of it the corpus does not have.

Nothing is asked of a model: this tells before a run what could not be asked, and what retrieval could not be scored on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.answering.questions import KINDS, Question, gold_passages, passages_of_papers, read_questions
from pipeline.answering.rendering import one_line
from pipeline.engine.stage import Workspace
from pipeline.evaluation.answers.measures import age_of
from pipeline.storage.writing import Row
from pipeline.wikipedia.root import held_snapshot


@dataclass(frozen=True, slots=True)
class Unfound:
    """A gold claim that no passage supports. why: no_evidence, or not_found."""

    question_id: str
    claim: str
    paper: str
    why: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What is to be told of a set. ages: None where the model's cut-off is not set."""

    file: str
    questions: int
    reviewed: int
    claims: int
    kinds: Mapping[str, int]
    months: Mapping[str, int]
    ages: Mapping[str, int] | None
    corpus: bool
    """Whether there are passages at all; without them neither papers nor claims are looked for."""
    lacking: Mapping[str, tuple[str, ...]]
    """Paper that has no passages → the questions that name it, which cannot be asked."""
    unfound: tuple[Unfound, ...]
    """Of the questions whose papers are there."""

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def check_set(workspace: Workspace, file: Path) -> Checked:
    """Read a set and look for its papers and phrases. Raises SettingError where it is none, as `read_questions`."""
    questions = read_questions(file, held_snapshot(workspace.root))
    cutoff = workspace.settings.llm_cutoff
    ages = Counter(age for question in questions if (age := age_of(question.date or question.month, cutoff)))
    lacking, unfound = _look(workspace, questions)
    return Checked(
        file=str(file),
        questions=len(questions),
        reviewed=sum(question.reviewed for question in questions),
        claims=sum(len(question.claims) for question in questions),
        kinds={kind: count for kind in KINDS if (count := sum(question.kind == kind for question in questions))},
        months=dict(sorted(Counter(question.month for question in questions).items())),
        ages=dict(sorted(ages.items())) if cutoff.strip() else None,
        corpus=bool(workspace.root.months(tables.PASSAGES)),
        lacking=lacking,
        unfound=tuple(unfound),
    )


def _look(workspace: Workspace, questions: tuple[Question, ...]) -> tuple[dict[str, tuple[str, ...]], list[Unfound]]:
    if not workspace.root.months(tables.PASSAGES):
        return {}, []
    rows = passages_of_papers(workspace.root, questions)
    absent = sorted({paper for question in questions for paper in question.papers} - rows.keys())
    lacking = {paper: tuple(question.id for question in questions if paper in question.papers) for paper in absent}
    askable = [question for question in questions if rows.keys() >= set(question.papers)]
    return lacking, [found for each in askable for found in _unfound(each, rows)]


def _unfound(question: Question, rows: Mapping[str, Sequence[Row]]) -> Iterator[Unfound]:
    for place, ids in gold_passages(question, rows).items():
        claim = question.claims[place]
        if not ids:
            yield Unfound(question.id, claim.claim, claim.paper, "not_found" if claim.evidence else "no_evidence")


def lines(found: Checked) -> Iterator[str]:
    """What the set holds."""
    yield f"{one_line(found.file)}: {found.questions} questions, {found.claims} gold claims; {found.reviewed} reviewed"
    yield f"by kind: {_counts(found.kinds)}"
    yield f"by month: {_counts(found.months)}"
    if found.ages is not None:
        yield f"by age: {_counts(found.ages)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def notes(found: Checked) -> Iterator[str]:
    """What a user should know, line by line: what is not asked, and what retrieval is not scored on."""
    if found.ages is None:
        yield "no split by age: set CITELOOM_LLM_CUTOFF to the model's knowledge cut-off"
    waiting = found.questions - found.reviewed
    if waiting:
        yield f"{waiting} questions are not reviewed, and are not asked until reviewed is true"
    if not found.corpus:
        yield "the data root holds no passages: papers and evidence were not looked for"
    for paper, ids in found.lacking.items():
        yield f"not in the corpus: {paper}, hence not asked: {', '.join(ids)}"
    for each in found.unfound:
        why = "it has no evidence" if each.why == "no_evidence" else f"no passage of {each.paper} holds its evidence"
        yield f"{each.question_id}: {why}: {one_line(each.claim)}"
