"""Verification of judges: they judge claims that other people labelled, and are measured by the labels.

Two tasks, with the prompts and the code that sections and answers are judged with: `citation_support` judges the claim
as a citing sentence, `claim_grade` as a claim of an answer about the document, without gold claims beside the passages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.answering.questions import Question
from pipeline.engine.stage import Workspace
from pipeline.evaluation.answers.splitting import CLAIM
from pipeline.evaluation.answers.splitting import PROMPTS as ANSWER_PROMPTS
from pipeline.evaluation.answers.verdicts import judge_claim
from pipeline.evaluation.citation_support import judge as citation_judge
from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.evaluation.judge_check.labelled_claims import Label, LabelledClaim, LabelledSet, SetName
from pipeline.evaluation.judge_check.measures import UNREADABLE, Measures, measure
from pipeline.evaluation.passages import Passage
from pipeline.llm.client import ClientWorkspace, LlmClient, Spent, open_client
from pipeline.llm.loop import run, side_by_side, without_waiting
from pipeline.llm.models import Model
from pipeline.llm.rehearsal import Rehearsal

TaskName = Literal["citation_support", "claim_grade"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a judge is asked. supported: the verdict that stands for SUPPORT; labels: set → verdict → label, for sets
    whose three labels the verdicts tell apart."""

    name: TaskName
    title: str
    supported: str
    labels: Mapping[SetName, Mapping[str, Label]]

    @property
    def prompt_digest(self) -> str:
        """SHA-256 of its prompt."""
        if self.name == "claim_grade":
            return ANSWER_PROMPTS.digest(CLAIM)
        return citation_judge.PROMPTS.digest(citation_judge.PROMPT)


# Citation-Integrity's REFUTE is a citation that is not accurate, one that overstates included: the verdict "partly".
# SciFact's REFUTE is a contradiction, which the judge of citations calls "not", as it does what is not said at all; and
# of a claim that is borne out in part alone, SciFact says that there is not enough information.
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one claim, `UNREADABLE` for an answer that could not be read; its quote, and what it cost."""

    verdict: str
    quote: str
    spent: Spent


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
        judgements = [Judgement(verdict.label, verdict.sentence, Spent()) for verdict in verdicts]
        results.append(_result(CITATION_SUPPORT, labelled, judgements, None))
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
) -> dict[tuple[TaskName, SetName], list[Judgement]]:
    turns = asyncio.Semaphore(model.concurrency)
    judges: Mapping[TaskName, Callable[[LlmClient, LabelledClaim, int], Coroutine[Any, Any, Judgement]]] = {
        "citation_support": _judge_citation,
        "claim_grade": _judge_claim,
    }

    async def one(client: LlmClient, task: TaskName, claim: LabelledClaim) -> Judgement:
        async with turns:
            judgement = await judges[task](client, claim, model.context)
        advance()
        return judgement

    async with open_client(workspace, model.name) as client:
        return {
            (task, labelled.name): await side_by_side(one(client, task, claim) for claim in labelled.claims)
            for labelled in sets
            for task in judges
        }


async def _judge_citation(client: LlmClient, claim: LabelledClaim, context: int) -> Judgement:
    passages = [Passage(text, place) for place, text in enumerate(claim.passages)]
    asked = citation_judge.conversation(claim.title, passages, claim.marked, context)
    judged = await citation_judge.judge(client, asked)
    return Judgement(judged.verdict or UNREADABLE, judged.quote, judged.spent)


async def _judge_claim(client: LlmClient, claim: LabelledClaim, context: int) -> Judgement:
    # Without validation: the document need be no paper of arXiv, and there are no gold claims.
    question = Question.model_construct(
        id=claim.id, question=_QUESTION, kind="summary", papers=(claim.document,), claims=()
    )
    passages = [
        Passage(text, place, f"{claim.document} {place}", claim.document, "", claim.title)
        for place, text in enumerate(claim.passages)
    ]
    graded, spent = await judge_claim(client, question, claim.claim, passages, context)
    return Judgement(graded["verdict"] or UNREADABLE, graded["quote"], spent)


def _result(task: Task, labelled: LabelledSet, judgements: Sequence[Judgement], model: Model | None) -> SetResult:
    cost = sum((judgement.spent for judgement in judgements), Spent())
    priced = model is not None and model.prices.known
    return SetResult(
        set=labelled.name,
        available=labelled.available,
        sha256=labelled.sha256,
        measures=measure_set(task, labelled, [judgement.verdict for judgement in judgements]),
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        money=model.prices.cost(cost.prompt_tokens, cost.completion_tokens) if model and priced else None,
    )
