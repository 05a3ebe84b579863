"""Verification of judges: they judge claims that other people labelled, and are measured by the labels.

Two tasks, with the prompts and the code that sections and answers are judged with: `citation_support` judges the claim
as a citing sentence, `claim_grade` as a claim of an answer about the document, without gold claims beside the passages.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline.answering.questions import Question
from pipeline.engine.stage import Workspace
from pipeline.evaluation.answers.verdicts import judge_claim
from pipeline.evaluation.citation_support import judge as citation_judge
from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.evaluation.judge_check.labelled_claims import LABELS, Label, LabelledClaim, LabelledSet, SetName
from pipeline.evaluation.passages import Passage
from pipeline.evaluation.statistics import Estimate, bootstrap_sums
from pipeline.llm.client import ClientWorkspace, LlmClient, Spent, open_client
from pipeline.llm.loop import run, side_by_side, without_waiting
from pipeline.llm.models import Model
from pipeline.llm.rehearsal import Rehearsal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TaskName = Literal["citation_support", "claim_grade"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a judge is asked. supported: the verdict that stands for SUPPORT; labels: set → verdict → label, for sets
    whose three labels the verdicts tell apart."""

    name: TaskName
    title: str
    supported: str
    labels: Mapping[SetName, Mapping[str, Label]]


# Citation-Integrity's REFUTE is a citation that is not accurate, one that overstates included: the verdict "partly".
# SciFact's REFUTE is a contradiction, which the judge of citations calls "not", as it does what is not said at all; and
# of a claim that is supported only in part, SciFact says that there is not enough information.
CITATION_SUPPORT = Task(
    "citation_support", "citation support", "supported",
    {"Citation-Integrity": {"supported": "SUPPORT", "partly": "REFUTE", "not": "NEI"}},
)  # fmt: skip
CLAIM_GRADE = Task(
    "claim_grade", "grades of claims", "correct",
    {
        "Citation-Integrity": {
            "correct": "SUPPORT", "partly": "REFUTE", "wrong": "REFUTE", "not_checkable": "NEI",
        },
        "SciFact": {"correct": "SUPPORT", "partly": "NEI", "wrong": "REFUTE", "not_checkable": "NEI"},
    },
)  # fmt: skip
TASKS: Mapping[str, Task] = {task.name: task for task in (CITATION_SUPPORT, CLAIM_GRADE)}
_QUESTION = "Is the claim correct?"
PaidVerdict = tuple[str, Spent]
"""A verdict on one claim, UNREADABLE for an answer that could not be read, and what it cost."""

# Files of earlier versions have [value, low, high].
Figure = Annotated[
    Estimate | None, BeforeValidator(lambda value: Estimate(*value) if isinstance(value, list) else value)
]
"""None where it is undefined, or there is one document alone."""
UNREADABLE = "unreadable"
"""In place of a verdict: an answer that could not be read. It counts as wrong."""
SUPPORT_OR_NOT = ("SUPPORT", "NOT")


@dataclass(frozen=True, slots=True)
class ClassMeasures:
    """Of one class: how many claims have it, the share of these that the judge gives it (accuracy), and F1."""

    claims: int
    accuracy: Figure
    f1: Figure


@dataclass(frozen=True, slots=True)
class Measures:
    """A judge's verdicts on one set.

    confusion: label → the judge's own verdict → claims. support_macro_f1, support: macro-F1 and measures of two
    classes, SUPPORT and all else. macro_f1, classes: of the three labels; None and empty where the verdicts do not tell
    them apart.
    """

    claims: int
    confusion: Mapping[str, Mapping[str, int]]
    support_macro_f1: Figure
    support: Mapping[str, ClassMeasures]
    macro_f1: Figure
    classes: Mapping[str, ClassMeasures]


def measure(
    labels: Sequence[Label],
    verdicts: Sequence[str],
    clusters: Sequence[str],
    *,
    supported: str,
    label_of: Mapping[str, Label] | None,
) -> Measures:
    """Measures of verdicts on claims. clusters: the document of each, which is resampled as a whole. supported: the
    verdict that stands for SUPPORT; label_of: verdict → label, None where three labels are not told apart."""
    two = ["SUPPORT" if label == "SUPPORT" else "NOT" for label in labels]
    judged = [UNREADABLE if v == UNREADABLE else "SUPPORT" if v == supported else "NOT" for v in verdicts]
    support_macro_f1, support = _of_classes(two, judged, SUPPORT_OR_NOT, clusters)
    macro_f1: Estimate | None = None
    classes: dict[str, ClassMeasures] = {}
    if label_of is not None:
        mapped = [label_of.get(verdict, UNREADABLE) for verdict in verdicts]
        macro_f1, classes = _of_classes(labels, mapped, LABELS, clusters)
    pairs = Counter(zip(labels, verdicts, strict=True))
    confusion: dict[str, dict[str, int]] = {label: {} for label in LABELS}
    for (label, verdict), count in sorted(pairs.items()):
        confusion[label][verdict] = count
    return Measures(len(labels), confusion, support_macro_f1, support, macro_f1, classes)


def _of_classes(
    labels: Sequence[str], judged: Sequence[str], classes: Sequence[str], clusters: Sequence[str]
) -> tuple[Estimate | None, dict[str, ClassMeasures]]:
    """Macro-F1 and the measures of each class."""
    import numpy as np

    has = np.array([[label == name for name in classes] for label in labels], dtype=float)
    gets = np.array([[label == name for name in classes] for label in judged], dtype=float)
    both = has * gets

    def ratio(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> Estimate | None:
        """The ratio of two sums; the mean of several such ratios, where they have several columns."""
        width = numerators.shape[1]

        def mean_ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            above, below = sums[..., :width], sums[..., width:]
            known = below > 0
            ratios = np.divide(above, below, out=np.zeros_like(above), where=known)
            count = known.sum(axis=-1)
            return np.where(count > 0, ratios.sum(axis=-1) / np.maximum(count, 1), np.nan)

        value, low, high = bootstrap_sums(mean_ratio, np.hstack([numerators, denominators]), clusters)
        return None if value is None or low is None else Estimate(value, low, high, len(clusters))

    measures = {}
    for place, name in enumerate(classes):
        column = slice(place, place + 1)
        measures[name] = ClassMeasures(
            claims=int(has[:, place].sum()),
            accuracy=ratio(both[:, column], has[:, column]),
            f1=ratio(2 * both[:, column], has[:, column] + gets[:, column]),
        )
    return ratio(2 * both, has + gets), measures


@dataclass(frozen=True, slots=True)
class SetResult:
    """A judge on one set. money: None where no price is set."""

    set: SetName
    available: int
    sha256: str
    measures: Measures
    calls: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None


def measure_set(task: Task, labelled: LabelledSet, verdicts: Sequence[str]) -> Measures:
    """Measures of verdicts on a set, in the order of its claims."""
    claims = labelled.claims
    return measure(
        [claim.label for claim in claims], verdicts, [claim.document for claim in claims],
        supported=task.supported, label_of=task.labels.get(labelled.name),
    )  # fmt: skip


def verify_overlap(judge: OverlapJudge, sets: Sequence[LabelledSet]) -> list[SetResult]:
    """The judge that calls no model, as a judge of citations."""
    results = []
    for labelled in sets:
        verdicts = judge.verdicts([(claim.claim, claim.passages) for claim in labelled.claims])
        judged = [(verdict.label, Spent()) for verdict in verdicts]
        results.append(_result(CITATION_SUPPORT, labelled, judged, None))
    return results


def verify_model(
    workspace: Workspace, model: Model, sets: Sequence[LabelledSet], advance: Callable[[], None] = lambda: None
) -> dict[TaskName, list[SetResult]]:
    """A language model at both tasks. advance: called for every verdict.

    Raises SettingError where its context is too small, and as `open_client` does.
    """
    judged = run(_judge_all(workspace, model, sets, advance))
    return {
        task.name: [_result(task, labelled, judged[task.name, labelled.name], model) for labelled in sets]
        for task in TASKS.values()
    }


@dataclass(frozen=True, slots=True)
class VerificationCost:
    """What the verification of a model takes. answered: calls whose answers are cached."""

    model: str
    calls: int
    answered: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None


def estimate_cost(workspace: Workspace, model: Model, sets: Sequence[LabelledSet]) -> VerificationCost:
    """The cost of `verify_model`, which is rehearsed; no model is called."""
    rehearsal = Rehearsal(lambda _prompt, _tokens, word: word)
    rehearsed = ClientWorkspace(workspace.settings, rehearsal.make_client)
    with without_waiting():
        run(_judge_all(rehearsed, model, sets, lambda: None))
    return VerificationCost(
        model=model.name,
        calls=rehearsal.count("calls"),
        answered=rehearsal.count("cached"),
        prompt_tokens=rehearsal.count("prompt_tokens"),
        completion_tokens=rehearsal.count("completion_tokens"),
        money=sum(usage.cost for usage in rehearsal.usages) if model.prices.known else None,
    )


async def _judge_all(
    workspace: Workspace, model: Model, sets: Sequence[LabelledSet], advance: Callable[[], None]
) -> dict[tuple[TaskName, SetName], list[PaidVerdict]]:
    turns = asyncio.Semaphore(model.concurrency)
    judges: Mapping[TaskName, Callable[[LlmClient, LabelledClaim, int], Coroutine[Any, Any, PaidVerdict]]] = {
        "citation_support": _judge_citation,
        "claim_grade": _judge_claim,
    }

    async def one(client: LlmClient, task: TaskName, claim: LabelledClaim) -> PaidVerdict:
        async with turns:
            judged = await judges[task](client, claim, model.context)
        advance()
        return judged

    async with open_client(workspace, model.name) as client:
        return {
            (task, labelled.name): await side_by_side(one(client, task, claim) for claim in labelled.claims)
            for labelled in sets
            for task in judges
        }


async def _judge_citation(client: LlmClient, claim: LabelledClaim, context: int) -> PaidVerdict:
    passages = [Passage(text, place) for place, text in enumerate(claim.passages)]
    asked = citation_judge.conversation(claim.title, passages, claim.marked, context)
    judged = await citation_judge.judge(client, asked)
    return judged.verdict or UNREADABLE, judged.spent


async def _judge_claim(client: LlmClient, claim: LabelledClaim, context: int) -> PaidVerdict:
    # Without validation: the document need be no paper of arXiv, and there are no gold claims.
    question = Question.model_construct(
        id=claim.id, question=_QUESTION, kind="summary", papers=(claim.document,), claims=()
    )
    passages = [
        Passage(text, place, f"{claim.document} {place}", claim.document, "", claim.title)
        for place, text in enumerate(claim.passages)
    ]
    graded, spent = await judge_claim(client, question, claim.claim, passages, context)
    return graded["verdict"] or UNREADABLE, spent


def _result(task: Task, labelled: LabelledSet, judged: Sequence[PaidVerdict], model: Model | None) -> SetResult:
    cost = sum((spent for _, spent in judged), Spent())
    priced = model is not None and model.prices.known
    return SetResult(
        set=labelled.name,
        available=labelled.available,
        sha256=labelled.sha256,
        measures=measure_set(task, labelled, [verdict for verdict, _ in judged]),
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        money=model.prices.cost(cost.prompt_tokens, cost.completion_tokens) if model and priced else None,
    )
