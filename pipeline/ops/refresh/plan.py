"""Which months a refresh runs, and of these which stages.

What costs nothing but time is brought up to date. What asks a language model is left as it is, and so is whatever lies
below it, unless it is asked for or there is a budget: tables of before and after are never mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline import tables
from pipeline.engine.stage import Stage, State, Workspace, state
from pipeline.engine.stages_due import pending
from pipeline.errors import CiteloomError, SettingError
from pipeline.index import close_indexes
from pipeline.metadata.harvest import HarvestReport, harvest
from pipeline.settings import Settings
from pipeline.stages import LLM_STAGES, STAGES
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import listing_cache


def _prepared() -> tuple[Stage, ...]:
    asking = {stage.name for stage in LLM_STAGES}
    chosen: list[Stage] = []
    for stage in STAGES:
        if stage.name in asking or {table.name for table in stage.upstream} & asking:
            asking.add(stage.name)
        else:
            chosen.append(stage)
    return tuple(chosen)


PREPARING = _prepared()
"""Stages that ask no language model and read nothing of one: from the zips to the index, tasks and questions."""
_DRIVERS = {tables.RELATED_WORK_TASKS.name, tables.QUESTIONS.name}


@dataclass(frozen=True, slots=True)
class Downstream:
    """What a month needs of the stages below the prepared ones: those to run, and those that are left as they are."""

    run: tuple[Stage, ...]
    left: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a refresh finds: the harvest's report, None where none was made or it failed; and the months to run."""

    harvest: HarvestReport | None
    harvest_failure: str
    months: tuple[str, ...]


def find_changes(workspace: Workspace, months: Sequence[str], *, ask_arxiv: bool) -> Found:
    """Harvest where asked to, and find which of some months are to be run.

    A harvest that fails is told of and ends nothing: what changed on disk is run all the same, and the next harvest
    goes on where this one broke off. Raises SettingError for settings that cannot do.
    """
    report, failure = _harvest(workspace) if ask_arxiv else (None, "")
    return Found(report, failure, tuple(due_months(workspace, months)))


def _harvest(workspace: Workspace) -> tuple[HarvestReport | None, str]:
    try:
        return harvest(workspace.settings, workspace), ""
    except SettingError:
        raise
    except CiteloomError as error:
        return None, str(error)


def due_months(workspace: Workspace, months: Sequence[str]) -> list[str]:
    """Of some months those whose pages, metadata, settings or code are other than their tables were made with.

    Asking opens the embedded index, which belongs to one process at a time: the caller closes it.
    """
    with listing_cache():
        return [month for month in months if pending(PREPARING, workspace, month)]


def downstream(workspace: Workspace, month: str, *, redo: bool) -> Downstream:
    """What a month needs below its prepared stages, which are up to date. redo: whether a language model is asked."""
    run: list[Stage] = []
    left: list[Stage] = []
    for stage in pending(STAGES, workspace, month):
        if stage.off(workspace.settings) and state(stage, workspace, month) is State.DONE:
            continue  # an empty month is the same whatever is above it
        below = {table.name for table in stage.upstream} & {other.name for other in left}
        asks = stage in LLM_STAGES and not redo and not _asks_nothing(stage, workspace, month)
        (left if below or asks else run).append(stage)
    return Downstream(tuple(run), tuple(left))


def _asks_nothing(stage: Stage, workspace: Workspace, month: str) -> bool:
    """Whether a stage is off, or of a month that has neither task nor question for it."""
    if stage.off(workspace.settings):
        return True
    drivers = [each for each in PREPARING if each.name in _DRIVERS and each.table in stage.upstream]
    there = all(workspace.root.file(each.table, month).exists() for each in drivers)
    return bool(drivers) and there and not any(_rows(workspace, each, month) for each in drivers)


def out_of_date(workspace: Workspace, month: str) -> dict[str, int]:
    """Tables of language models that no longer match their inputs, each with how many rows it has."""
    try:
        return stale_of(workspace, month, downstream(workspace, month, redo=False).left)
    finally:
        close_indexes()


def stale_of(workspace: Workspace, month: str, left: Sequence[Stage]) -> dict[str, int]:
    """Of the stages that a refresh leaves, the tables of language models that are there, each with its rows."""
    there = [stage for stage in left if stage in LLM_STAGES and workspace.root.file(stage.table, month).exists()]
    return {stage.name: _rows(workspace, stage, month) for stage in there}


def ceiling(settings: Settings) -> int:
    """The tokens that the LLM stages of a refresh may pay for; 0 where it has no budget and leaves them."""
    if not settings.refresh_llm_tokens:
        return 0
    return min(filter(None, (settings.refresh_llm_tokens, settings.llm_budget_tokens)))


def _rows(workspace: Workspace, stage: Stage, month: str) -> int:
    """How many rows a month has; none where its file cannot be read."""
    try:
        written = read_provenance(workspace.root.file(stage.table, month))
    except CiteloomError:
        return 0
    return written.rows if written else 0
