"""Which months a refresh runs, and which of their stages.

Stages that call no language model are brought up to date. Those that call one, and the stages below
them, are left as they are unless the user asks for them or sets a budget, so that their tables
never mix old and new inputs. A refresh stays within the stages that the corpus was run to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.engine.run import State, state
from pipeline.engine.stage import Stage, Workspace
from pipeline.engine.status import stages_due
from pipeline.errors import CiteloomError, SettingError
from pipeline.settings import Settings
from pipeline.stages import CORPUS_STAGES, LLM_STAGES, STAGES, choose_stages

if TYPE_CHECKING:
    from pipeline.arxiv.harvest import HarvestReport


_DRIVERS = {tables.RELATED_WORK_TASKS.name, tables.QUESTIONS.name}


def stages_in_use(workspace: Workspace, until: str | None = None) -> tuple[Stage, ...]:
    """The stages that a refresh keeps up to date: up to `until`, or those that any month has.

    A stage that one of these reads is in use too; on a new data root all are. Raises SettingError
    for an unknown name.
    """
    if until is not None:
        return tuple(choose_stages(until))
    names = {stage.name for stage in STAGES if workspace.root.months(stage.table)}
    for stage in reversed(STAGES):
        if stage.name in names:
            names |= stage.waits_for
    return tuple(stage for stage in STAGES if stage.name in names) or STAGES


@dataclass(frozen=True, slots=True)
class Downstream:
    """The later stages that a month needs: those to run, and those left as they are."""

    run: tuple[Stage, ...]
    deferred: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """The harvest's report, None where none was made or it failed; and the stages due by month."""

    harvest: HarvestReport | None
    harvest_failure: str
    due: Mapping[str, Sequence[Stage]]

    @property
    def months(self) -> tuple[str, ...]:
        """The months in which a stage of the corpus is due."""
        return tuple(month for month, stages in self.due.items() if corpus_stages_of(stages))


def find_changes(
    workspace: Workspace, months: Sequence[str], stages: Sequence[Stage], *, ask_arxiv: bool
) -> RefreshPlan:
    """Harvest where `ask_arxiv`, and find which of some months are to be run through some stages.

    A harvest that fails is reported and ends nothing: what changed on disk is run all the same, and
    the next harvest continues where this one broke off. Raises SettingError for unsuitable
    settings.
    """
    report, failure = None, ""
    if ask_arxiv:
        from pipeline.arxiv.harvest import harvest

        try:
            report = harvest(workspace)
        except SettingError:
            raise
        except CiteloomError as error:
            failure = str(error)
    return RefreshPlan(report, failure, due_by_month(workspace, months, stages))


def corpus_stages_of(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages among these that call no language model and read no table of a stage that does."""
    return tuple(stage for stage in stages if stage in CORPUS_STAGES)


def due_by_month(
    workspace: Workspace, months: Sequence[str], stages: Sequence[Stage]
) -> dict[str, Sequence[Stage]]:
    """Month → the stages that are due in it, for every one of some months."""
    with workspace.read_cache():
        return {month: stages_due(stages, workspace, month) for month in months}


def downstream(workspace: Workspace, month: str, due: Sequence[Stage], *, redo: bool) -> Downstream:
    """The stages to run and those to defer, of those that are due once the corpus is up to date.
    redo: run stages that call language models.
    """
    run: list[Stage] = []
    deferred: list[Stage] = []
    for stage in due:
        if (
            stage.disabled_reason(workspace.settings)
            and state(stage, workspace, month) is State.DONE
        ):
            continue  # an empty month does not depend on the stages above it
        below = stage.waits_for & {other.name for other in deferred}
        asks = stage in LLM_STAGES and not redo and not _asks_nothing(stage, workspace, month)
        if below or asks:
            deferred.append(stage)
        else:
            run.append(stage)
    return Downstream(tuple(run), tuple(deferred))


def _asks_nothing(stage: Stage, workspace: Workspace, month: str) -> bool:
    """Whether a stage is disabled, or its month has neither task nor question for it."""
    if stage.disabled_reason(workspace.settings):
        return True
    drivers = [
        driver
        for driver in CORPUS_STAGES
        if driver.name in _DRIVERS and driver.table in stage.upstream
    ]
    if not drivers:
        return False
    exist = all(workspace.root.file(driver.table, month).exists() for driver in drivers)
    return exist and not any(_rows(workspace, driver, month) for driver in drivers)


def stale_of(workspace: Workspace, month: str, stages: Sequence[Stage]) -> dict[str, int]:
    """The existing tables of language models among these stages, each with its rows."""
    stale = [
        stage
        for stage in stages
        if stage in LLM_STAGES and workspace.root.file(stage.table, month).exists()
    ]
    return {stage.name: _rows(workspace, stage, month) for stage in stale}


def token_limit(settings: Settings) -> int:
    """The tokens that a refresh's LLM stages may pay for; 0 leaves them out."""
    of_refresh, of_run = settings.refresh_llm_tokens, settings.llm_budget_tokens
    if of_refresh and of_run:
        return min(of_refresh, of_run)
    return of_refresh


def _rows(workspace: Workspace, stage: Stage, month: str) -> int:
    """The number of a month's rows; 0 where its file cannot be read."""
    try:
        provenance = workspace.root.provenance(stage.table, month)
    except CiteloomError:
        return 0
    return provenance.rows if provenance else 0
