"""What the LLM stages of some months would cost, before anything is spent: calls, tokens, money, time.

Each stage is rehearsed (`pipeline.llm.rehearsal`): its own code runs on its own inputs, with answers that are made up
where none is kept. Not here: running anything, and what is shown of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pipeline import tables
from pipeline.errors import MissingInput
from pipeline.evaluation.stages import SCORES
from pipeline.llm.client import ClientWorkspace, check_llm
from pipeline.llm.loop import without_waiting
from pipeline.llm.rehearsal import ASSUMED_SHARE, Rehearsal, words
from pipeline.months import describe_months
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.related_work.systems import chosen_systems
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.runs import pending
from pipeline.settings import Settings
from pipeline.stages import Job, Stage, State, Workspace, state
from pipeline.tables import Row, Table

LLM_STAGES = (KEY_ELEMENTS, SUMMARIES, SCORES)
_PER_SYSTEM = {SUMMARIES.name}


@dataclass(frozen=True, slots=True)
class Part:
    """One stage of one month, or one system of it. Calls are answers; a request may bring several.

    answered: calls whose answers are kept, whose month is done, or that a part before this one pays for. The rest is
    to be paid, and so are the tokens, the money and the seconds; `answered_tokens` cost nothing now. seconds: from the
    first call to the last answer; busy: what that would be if a call had to wait for a free slot alone.
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
    busy: float

    @property
    def to_pay(self) -> int:
        return self.calls - self.answered


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
    named = ("month", "stage", "system", "seconds")
    summed = {
        name: sum(getattr(part, name) for part in parts) for name in Part.__dataclass_fields__ if name not in named
    }
    stages = {(part.month, part.stage) for part in parts}
    seconds = sum(_together([part for part in parts if (part.month, part.stage) == each]) for each in sorted(stages))
    first = parts[0] if parts else None
    stage, system = (first.stage, first.system) if first else ("", None)
    return Part(month="", stage=stage, system=system, seconds=seconds, **summed)


def _together(systems: Sequence[Part]) -> float:
    """Seconds of systems side by side: as long as the slowest takes, or as the calls of all need for their turns."""
    return max(max(part.seconds for part in systems), sum(part.busy for part in systems))


def estimate(workspace: Workspace, months: Sequence[str]) -> Estimate:
    """What the LLM stages of these months would cost with the settings as they are.

    Raises MissingInput where none of the months has its tasks; SettingError as the stages do.
    """
    check_llm(workspace.settings)
    chosen_systems(workspace.settings.systems)
    have = set(workspace.root.months(tables.RELATED_WORK_TASKS))
    ready = tuple(month for month in months if month in have)
    lacking = tuple(month for month in months if month not in have)
    if not ready:
        raise MissingInput(
            f"{describe_months(list(lacking))}: no related_work_tasks yet, from which calls are counted: run citeloom "
            f"run --months {_as_option(lacking)} --until related_work_tasks first, which asks no language model"
        )
    answers: dict[tuple[str, int], Any] = {}
    rehearsed = [each for month in ready for each in _Month(workspace, month, answers).parts()]
    priced = bool(workspace.settings.llm_price_read or workspace.settings.llm_price_written)
    parts = tuple(part for part, _ in rehearsed)
    notes = _notes(workspace, parts, ready, lacking, max((seen for _, seen in rehearsed), default=0))
    return Estimate(parts, ready, lacking, priced, tuple(notes))


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
            rows: list[Row] = []
            for system in self._systems(stage):
                rehearsal = Rehearsal(_made_up, self._answers)
                rows += self._rehearse(stage, system, rehearsal)
                yield self._part(stage, system, rehearsal), rehearsal.seen
            if stage.name in self._due:
                self._made[stage.name] = rows

    def _systems(self, stage: Stage) -> list[str | None]:
        if stage.name not in _PER_SYSTEM:
            return [None]
        return [system.name for system in chosen_systems(self._workspace.settings.systems)]

    def _rehearse(self, stage: Stage, system: str | None, rehearsal: Rehearsal) -> list[Row]:
        """The rows that the stage would make; what it would leave out and note is nobody's business here."""
        settings = self._workspace.settings
        if system is not None:
            settings = settings.model_copy(update={"systems": (system,)})
        place = ClientWorkspace(settings, rehearsal.make_client)
        job = _Rehearsed(place, self._month, stage, made=self._made)
        with without_waiting():
            return [row for row in stage.build(job) if isinstance(row, Mapping)]

    def _part(self, stage: Stage, system: str | None, rehearsal: Rehearsal) -> Part:
        usage = rehearsal.usage
        part = Part(
            month=self._month,
            stage=stage.name,
            system=system,
            calls=usage.calls,
            answered=usage.cached,
            requests=usage.requests,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            answered_tokens=usage.kept_prompt_tokens + usage.kept_completion_tokens,
            money=usage.cost,
            seconds=rehearsal.seconds,
            busy=rehearsal.busy,
        )
        return part if stage.name in self._due else _done(part)


def _done(part: Part) -> Part:
    """The part of a month that is done, also where its answers were thrown away meanwhile."""
    tokens = part.answered_tokens + part.prompt_tokens + part.completion_tokens
    return replace(
        part, answered=part.calls, requests=0, prompt_tokens=0, completion_tokens=0, answered_tokens=tokens, money=0.0,
        seconds=0.0, busy=0.0,
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
    if not (settings.llm_price_read or settings.llm_price_written):
        yield "no money, as CITELOOM_LLM_PRICE_READ and CITELOOM_LLM_PRICE_WRITTEN are not set"
    if lacking:
        named = describe_months(list(lacking))
        yield f"not counted, having no tasks yet: {named} (run --until related_work_tasks first)"
    old = [month for month in ready if state(RELATED_WORK_TASKS, workspace, month) is not State.DONE]
    if old:
        yield f"the tasks of {', '.join(old)} are out of date: run --until related_work_tasks, and estimate again"
    yield from _over_budget(settings, total)


def _over_budget(settings: Settings, total: Part) -> Iterator[str]:
    needed = {
        "calls": total.to_pay, "tokens": total.prompt_tokens + total.completion_tokens, "money": total.money
    }  # fmt: skip
    for unit, most in needed.items():
        limit = getattr(settings, f"llm_budget_{unit}")
        if limit and most > limit:
            yield f"CITELOOM_LLM_BUDGET_{unit.upper()} is {limit:,}: the run will end there, and can be gone on with"
