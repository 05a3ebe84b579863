"""The cost of the LLM stages of some months before they run: calls, tokens, money, time.

Each stage is rehearsed (`pipeline.llm.rehearsal`): its own code runs on its own inputs, with
invented answers where the cache has none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.answering.stages import QUESTIONS, check_answering
from pipeline.engine.parts import PartedStage
from pipeline.engine.run import State, state
from pipeline.engine.stage import Job, MonthPart, Stage, Workspace
from pipeline.engine.status import stages_due
from pipeline.errors import MissingInput
from pipeline.identity.months import describe_months
from pipeline.llm.budget import check_budget
from pipeline.llm.client import ClientWorkspace
from pipeline.llm.models import Model, get_model, judge_model
from pipeline.llm.rehearsal import ASSUMED_SHARE, ASSUMED_UNLIMITED, Rehearsal, words
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.settings import Settings
from pipeline.stage_names import plain_name
from pipeline.stages import LLM_STAGES, calls_model, writer_models
from pipeline.storage.writing import Row
from pipeline.tables import Table
from pipeline.tables.writers import Writer

_NOTHING_DUE = "there is nothing to pay: no stage of these months that calls a model is due"


@dataclass(frozen=True, slots=True)
class StageCost:
    """The cost of one stage of one month, or of one writer in it. Calls are answers; one request
    may bring several.

    answered: calls that cost nothing now, because the answer is cached, or an earlier stage pays
    for it. prompt_tokens, completion_tokens, money, seconds: of the other calls. seconds: with as
    many completions in flight as the model's concurrency allows.
    """

    month: str = ""
    stage: str = ""
    system: str | None = None
    model: str | None = None
    calls: int = 0
    answered: int = 0
    to_pay: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0

    @property
    def writer(self) -> str:
        """The writer's name; empty where the cost is not that of one writer."""
        return Writer(self.system, self.model).name if self.system else ""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of some months. notes: what the figures are based on, and what to do first."""

    parts: tuple[StageCost, ...]
    months: tuple[str, ...]
    not_ready: tuple[str, ...]
    """Months without tasks, which are not counted."""
    priced: bool
    notes: tuple[str, ...]

    def total(self) -> StageCost:
        """The sum over all stages and months."""
        return sum_parts(self.parts)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"total": asdict(self.total())}


def sum_parts(parts: Sequence[StageCost]) -> StageCost:
    """The sum of several costs, without labels; times add up."""
    sums = Counter[str]()
    for part in parts:
        sums.update({name: n for name, n in asdict(part).items() if isinstance(n, int | float)})
    return StageCost(**sums)  # type: ignore[arg-type]


def estimate(workspace: Workspace, months: Sequence[str]) -> CostEstimate:
    """The cost of the LLM stages of these months with the current settings.

    Raises MissingInput where none of the months has its tasks; SettingError as the stages do.
    """
    settings = workspace.settings
    for model in writer_models(settings):
        check_budget(settings, get_model(settings, model))
    check_answering(settings)
    # These stages make the questions and tasks; a run until the last of them makes all of them.
    needed = [
        stage for stage in (QUESTIONS, RELATED_WORK_TASKS) if not stage.disabled_reason(settings)
    ]
    complete = set.intersection(*(set(workspace.root.months(stage.table)) for stage in needed))
    ready = tuple(month for month in months if month in complete)
    not_ready = tuple(month for month in months if month not in complete)
    if not ready:
        selection = not_ready[0] if len(not_ready) == 1 else f"{not_ready[0]}..{not_ready[-1]}"
        names = " and ".join(plain_name(stage.name) for stage in needed)
        raise MissingInput(
            f"{describe_months(list(not_ready))}: no {names} yet, whose calls are counted: run"
            f" citeloom run --months {selection} --until tasks first, which asks no model"
        )
    readiness = tuple(_readiness_notes(workspace, needed, ready, not_ready))
    answers: dict[tuple[str, int], Any] = {}
    rehearsed = [
        item
        for month in (ready if calls_model(settings) else ())
        for item in _rehearse_month(workspace, month, answers)
    ]
    if not rehearsed:
        return CostEstimate((), ready, not_ready, priced=False, notes=(_NOTHING_DUE, *readiness))
    parts = tuple(part for part, _ in rehearsed)
    notes = (
        _basis(", ".join(writer_models(settings)), max(requests for _, requests in rehearsed)),
        *_price_notes(settings),
        *readiness,
        *_budget_notes(settings, sum_parts(parts)),
    )
    priced = any(model.prices.known for model in _models_used(settings))
    return CostEstimate(parts, ready, not_ready, priced, notes)


@dataclass(slots=True)
class _RehearsalJob(Job):
    """A job that reads invented rows where the stage before was rehearsed too."""

    invented: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
        if table.name not in self.invented:
            return self.workspace.root.rows(table, self.month, columns)
        return [dict(row) for row in self.invented[table.name]]

    def iterate(self, table: Table, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        yield from self.rows(table, columns)


def _rehearse_month(
    workspace: Workspace, month: str, answers: dict[tuple[str, int], Any]
) -> Iterator[tuple[StageCost, int]]:
    """The cost of each stage that is due, or of each of its parts, and the number of past requests
    that it is based on. A disabled stage costs nothing.

    answers: those invented for earlier months and stages, so that none is counted twice.
    """
    invented: dict[str, list[Row]] = {}
    for stage in stages_due(LLM_STAGES, workspace, month, completes=True):
        rows: list[Row] = []
        parts: Sequence[MonthPart | None] = [None]
        if stage.disabled_reason(workspace.settings):
            parts = []
        elif isinstance(stage, PartedStage):
            parts = stage.parts(workspace, month)
        for part in parts:
            rehearsal = Rehearsal(_invent_answer, answers)
            client_workspace = ClientWorkspace(workspace.settings, rehearsal.make_client)
            job = _RehearsalJob(client_workspace, month, stage, rehearsal=True, invented=invented)
            rows += [row for row in (part or stage).build(job) if isinstance(row, Mapping)]
            if part is None or part.columns is not None:
                yield _cost_of(rehearsal, stage, part, month), rehearsal.past_requests
        invented[stage.name] = rows


def _cost_of(rehearsal: Rehearsal, stage: Stage, part: MonthPart | None, month: str) -> StageCost:
    columns = (part.columns or {}) if part else {}
    return StageCost(
        month=month,
        stage=stage.name,
        system=columns.get("system"),
        model=columns.get("model"),
        calls=rehearsal.count("calls"),
        answered=rehearsal.count("cached"),
        to_pay=rehearsal.count("calls") - rehearsal.count("cached"),
        requests=rehearsal.count("requests"),
        prompt_tokens=rehearsal.count("prompt_tokens"),
        completion_tokens=rehearsal.count("completion_tokens"),
        money=sum(usage.cost for usage in rehearsal.usages),
        seconds=rehearsal.seconds,
    )


def _invent_answer(prompt: str, tokens: int, unique_word: str) -> str:
    """A text of the kind that the prompt asks for: a verdict, or prose with citations."""
    if "The best choice is" in prompt:
        # Not the first: systems without votes continue with that one, and their calls would seem to
        # be the same.
        choices = re.findall(r"^Choice (\d+):", prompt, re.MULTILINE)
        return (
            f"{unique_word} {words(tokens - 6)}\nThe best choice is {choices[-1] if choices else 1}"
        )
    numbers = sorted({int(number) for number in re.findall(r"\[Reference (\d{1,4})\]", prompt)})
    sentence = words(tokens // max(len(numbers), 1) - 6)
    cited = " ".join(f"{unique_word} {sentence} [Reference {number}]." for number in numbers)
    return cited or f"{unique_word} {words(tokens)}."


def _basis(models: str, requests: int) -> str:
    if requests:
        return (
            "prompt tokens are an upper estimate; lengths and times are those of the last"
            f" {requests:,} requests to {models}, where there were any, with as many at once as its"
            " concurrency allows; all answers without a longest length count as of one kind"
        )
    return (
        f"no requests to {models} are on record: prompt tokens are an upper estimate, answers are"
        f" assumed to have {ASSUMED_SHARE:.0%} of the longest allowed length, or"
        f" {ASSUMED_UNLIMITED} tokens where there is none, and times are a guess"
    )


def _price_notes(settings: Settings) -> Iterator[str]:
    models = _models_used(settings)
    unpriced = [model.name for model in models if not model.prices.known]
    if len(unpriced) == len(models):
        yield (
            "no money, as no price of a model is set (CITELOOM_LLM_PRICE, or price in the file of"
            " CITELOOM_MODELS)"
        )
    elif unpriced:
        yield f"the money excludes {', '.join(unpriced)}, which has no price"


def _models_used(settings: Settings) -> list[Model]:
    """The judge and the models that write, without repetition."""
    writing = [get_model(settings, name, "CITELOOM_SYSTEMS") for name in writer_models(settings)]
    return list({model.name: model for model in (judge_model(settings), *writing)}.values())


def _readiness_notes(
    workspace: Workspace, needed: Sequence[Stage], ready: Sequence[str], not_ready: Sequence[str]
) -> Iterator[str]:
    if not_ready:
        names = " and ".join(plain_name(stage.name) for stage in needed)
        yield (
            f"not counted, without {names}: {describe_months(list(not_ready))} (run --until"
            " tasks first)"
        )
    for stage in needed:
        outdated = [month for month in ready if state(stage, workspace, month) is not State.DONE]
        if outdated:
            months = ", ".join(outdated)
            yield (
                f"{plain_name(stage.name)} of {months}: out of date; run --until tasks, and"
                " estimate again"
            )


def _budget_notes(settings: Settings, total: StageCost) -> Iterator[str]:
    needs = {
        "calls": total.to_pay,
        "tokens": total.prompt_tokens + total.completion_tokens,
        "money": total.money,
    }
    for unit, needed in needs.items():
        limit = getattr(settings, f"llm_budget_{unit}")
        if limit and needed > limit:
            yield (
                f"CITELOOM_LLM_BUDGET_{unit.upper()} is {limit:,}: the run will stop there, and can"
                " be continued"
            )
