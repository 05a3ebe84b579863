"""What the LLM stages of some months would cost, before anything is spent: calls, tokens, money, time.

Each stage is rehearsed (`pipeline.llm.rehearsal`): its own code runs on its own inputs, with answers that are made up
where none is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pipeline import tables
from pipeline.answering.stages import IMPORTED_ANSWERS, QUESTIONS, check_answering
from pipeline.arxiv.months import describe_months
from pipeline.engine.run_stats import Expected, note_estimates
from pipeline.engine.stage import Job, Stage, State, Workspace, state
from pipeline.engine.stages_due import pending
from pipeline.errors import MissingInput
from pipeline.evaluation.judges import prices_by_model
from pipeline.llm.client import ClientWorkspace, check_llm
from pipeline.llm.loop import without_waiting
from pipeline.llm.rehearsal import ASSUMED_SHARE, Rehearsal, words
from pipeline.related_work.systems import chosen_systems
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.settings import Settings
from pipeline.stages import LLM_STAGES
from pipeline.storage.writing import Row
from pipeline.tables import Table

_SYSTEM_OF = {table.name: system for system, table in (*tables.SUMMARIES.items(), *tables.ANSWERS.items())}


@dataclass(frozen=True, slots=True)
class Part:
    """One stage of one month, or one system of it. Calls are answers; a request may bring several.

    answered: calls whose answers are kept, whose month is done, or that a part before this one pays for. The rest is
    to be paid, and so are the tokens, the money and the seconds; `answered_tokens` cost nothing now. seconds: from the
    first call to the last answer.
    """

    month: str
    stage: str
    system: str | None
    calls: int
    answered: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    answered_tokens: int
    money: float
    seconds: float

    @property
    def to_pay(self) -> int:
        return self.calls - self.answered

    def expected(self) -> Expected:
        """The part as it is kept, to be compared with what the stage then took."""
        tokens = self.answered_tokens + self.prompt_tokens + self.completion_tokens
        return Expected(self.calls, tokens, self.money, self.seconds)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What months would cost. `notes`: what the figures rest on, and what a user should do first."""

    parts: tuple[Part, ...]
    months: tuple[str, ...]
    not_ready: tuple[str, ...]
    """Months without tasks, which are not in the figures."""
    priced: bool
    notes: tuple[str, ...]

    def total(self) -> Part:
        """The sum of all parts; its `month`, `stage` and `system` say nothing."""
        return sum_parts(self.parts)

    def as_json(self) -> dict[str, Any]:
        parts = [asdict(part) | {"to_pay": part.to_pay} for part in self.parts]
        total = asdict(self.total()) | {"to_pay": self.total().to_pay}
        named = ("month", "stage", "system")
        return asdict(self) | {"parts": parts, "total": {k: v for k, v in total.items() if k not in named}}


def sum_parts(parts: Sequence[Part]) -> Part:
    """Several parts as one, under the stage and system of the first; months and stages run one after another."""
    named = ("month", "stage", "system")
    summed = {
        name: sum(getattr(part, name) for part in parts) for name in Part.__dataclass_fields__ if name not in named
    }
    first = parts[0] if parts else None
    stage, system = (first.stage, first.system) if first else ("", None)
    return Part(month="", stage=stage, system=system, **summed)


def estimate(workspace: Workspace, months: Sequence[str]) -> Estimate:
    """What the LLM stages of these months would cost with the settings as they are.

    Raises MissingInput where none of the months has its tasks; SettingError as the stages do.
    """
    check_llm(workspace.settings)
    chosen_systems(workspace.settings.systems)
    check_answering(workspace.settings)
    have = _months_with_all(workspace)
    ready = tuple(month for month in months if month in have)
    lacking = tuple(month for month in months if month not in have)
    if not ready:
        raise MissingInput(
            f"{describe_months(list(lacking))}: no {_of_which(workspace)} yet, of which calls are counted: run "
            f"citeloom run --months {_as_option(lacking)} --until related_work_tasks first, which asks no model"
        )
    answers: dict[tuple[str, int], Any] = {}
    rehearsed = [each for month in ready for each in _Month(workspace, month, answers).parts()]
    priced = any(prices.known for prices in prices_by_model(workspace.settings).values())
    parts = tuple(part for part, _ in rehearsed)
    notes = _notes(workspace, parts, ready, lacking, max((seen for _, seen in rehearsed), default=0))
    return Estimate(parts, ready, lacking, priced, tuple(notes))


def _counted(workspace: Workspace) -> list[Stage]:
    """The stages that say what there is to ask; a run until the last of them makes all of them."""
    return [stage for stage in (QUESTIONS, IMPORTED_ANSWERS, RELATED_WORK_TASKS) if not stage.off(workspace.settings)]


def _of_which(workspace: Workspace) -> str:
    return " and ".join(stage.name for stage in _counted(workspace))


def _months_with_all(workspace: Workspace) -> set[str]:
    return set.intersection(*(set(workspace.root.months(stage.table)) for stage in _counted(workspace)))


def keep(workspace: Workspace, found: Estimate) -> None:
    """Keep what the stages that have anything to pay are expected to take, for a report to compare with."""
    for month in found.months:
        parts = [part for part in found.parts if part.month == month and part.to_pay]
        note_estimates(workspace.root, month, {part.stage: part.expected() for part in parts})


def _as_option(months: Sequence[str]) -> str:
    return months[0] if len(months) == 1 else f"{months[0]}..{months[-1]}"


@dataclass(slots=True)
class _Rehearsed(Job):
    """A job on rows that were made up, where the stage before was rehearsed too."""

    made: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
        if table.name not in self.made:
            return self.workspace.root.rows(table, self.month, columns)
        return [dict(row) for row in self.made[table.name]]

    def iterate(self, table: Table, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        yield from self.rows(table, columns)


class _Month:
    """One month at rehearsal, stage by stage."""

    def __init__(self, workspace: Workspace, month: str, answers: dict[tuple[str, int], Any]) -> None:
        self._workspace, self._month, self._answers = workspace, month, answers
        self._due = {stage.name for stage in pending(LLM_STAGES, workspace, month)}
        self._made: dict[str, list[Row]] = {}

    def parts(self) -> Iterator[tuple[Part, int]]:
        """Each stage's and system's part, and of how many requests its lengths and times are the average."""
        for stage in LLM_STAGES:
            rehearsal = Rehearsal(_made_up, self._answers)
            place = ClientWorkspace(self._workspace.settings, rehearsal.make_client)
            job = _Rehearsed(place, self._month, stage, made=self._made)
            if stage.off(self._workspace.settings):
                rows = []
            else:
                with without_waiting():
                    rows = [row for row in stage.build(job) if isinstance(row, Mapping)]
                yield self._part(stage, rehearsal), rehearsal.seen
            if stage.name in self._due:
                self._made[stage.name] = rows

    def _part(self, stage: Stage, rehearsal: Rehearsal) -> Part:
        part = Part(
            month=self._month,
            stage=stage.name,
            system=_SYSTEM_OF.get(stage.name),
            calls=rehearsal.count("calls"),
            answered=rehearsal.count("cached"),
            requests=rehearsal.count("requests"),
            prompt_tokens=rehearsal.count("prompt_tokens"),
            completion_tokens=rehearsal.count("completion_tokens"),
            answered_tokens=rehearsal.count("kept_prompt_tokens") + rehearsal.count("kept_completion_tokens"),
            money=sum(usage.cost for usage in rehearsal.usages),
            seconds=rehearsal.seconds,
        )
        return part if stage.name in self._due else _done(part)


def _done(part: Part) -> Part:
    """The part of a month that is done, also where its answers were thrown away meanwhile."""
    tokens = part.answered_tokens + part.prompt_tokens + part.completion_tokens
    return replace(
        part, answered=part.calls, requests=0, prompt_tokens=0, completion_tokens=0, answered_tokens=tokens, money=0.0,
        seconds=0.0,
    )  # fmt: skip


def _made_up(prompt: str, tokens: int, own: str) -> str:
    """A text such as the prompt asks for: a verdict, or prose that cites every reference that it names."""
    if "The best choice is" in prompt:
        # Not the first, which is what systems without votes go on with: theirs would seem to be the same calls.
        choices = re.findall(r"^Choice (\d+):", prompt, re.MULTILINE)
        return f"{own} {words(tokens - 6)}\nThe best choice is {choices[-1] if choices else 1}"
    numbers = sorted({int(number) for number in re.findall(r"\[Reference (\d{1,4})\]", prompt)})
    each = words(tokens // max(len(numbers), 1) - 6)
    return " ".join(f"{own} {each} [Reference {number}]." for number in numbers) or f"{own} {words(tokens)}."


def _notes(
    workspace: Workspace, parts: Sequence[Part], ready: Sequence[str], lacking: Sequence[str], seen: int
) -> Iterator[str]:
    settings, total = workspace.settings, sum_parts(parts)
    yield (
        f"tokens read are estimated from above; lengths and times are those of the last {seen:,} requests to "
        f"{settings.llm_model}, where there were such"
        if seen
        else f"nothing was asked of {settings.llm_model} here yet: tokens read are estimated from above, answers are "
        f"taken to be {ASSUMED_SHARE:.0%} of the longest allowed, and times are a guess"
    )
    priced = prices_by_model(settings)
    unpriced = [model for model, prices in priced.items() if not prices.known]
    if len(unpriced) == len(priced):
        yield "no money, as CITELOOM_LLM_PRICES is not set"
    elif unpriced:
        yield f"the money is without {', '.join(unpriced)}, of which CITELOOM_LLM_PRICES has no price"
    if lacking:
        named = describe_months(list(lacking))
        yield f"not counted, having no {_of_which(workspace)} yet: {named} (run --until related_work_tasks first)"
    for stage in _counted(workspace):
        old = [month for month in ready if state(stage, workspace, month) is not State.DONE]
        if old:
            told = f"{stage.name} of {', '.join(old)}: out of date"
            yield f"{told}; run --until related_work_tasks, and estimate again"
    yield from _over_budget(settings, total)


def _over_budget(settings: Settings, total: Part) -> Iterator[str]:
    needed = {
        "calls": total.to_pay, "tokens": total.prompt_tokens + total.completion_tokens, "money": total.money
    }  # fmt: skip
    for unit, most in needed.items():
        limit = getattr(settings, f"llm_budget_{unit}")
        if limit and most > limit:
            yield f"CITELOOM_LLM_BUDGET_{unit.upper()} is {limit:,}: the run will end there, and can be gone on with"
