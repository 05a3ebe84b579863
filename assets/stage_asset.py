"""How a stage becomes an asset: partitions, column schema, what is told of a run, which failures a rerun may clear."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import dagster as dg
import pyarrow as pa
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._utils import interrupts

from assets.partitions import MONTHS
from assets.placement import LOST_STEPS, definition_time_settings
from assets.shown import markdown_table
from pipeline.engine import progress, shutdown
from pipeline.engine.stage import Outcome, Stage, Workspace, run_stage
from pipeline.errors import CiteloomError, TransientFailure
from pipeline.index import close_indexes
from pipeline.storage.reading import open_parquet
from pipeline.tables import Table

Extras = Callable[[Workspace, str], Mapping[str, Any]]

# A minute between tries: a server that restarts or a rate limit is over after a few of them.
SECONDS_BETWEEN_RETRIES = 60
PREVIEW_ROWS = 5


class StageConfig(dg.Config):
    """What a run may be told of one asset."""

    force: bool = False
    """Compute the month again although it is up to date."""
    retries: int = 3
    """Tries after a failure that may pass, such as a server that does not answer."""


def _no_extras(workspace: Workspace, month: str) -> Mapping[str, Any]:
    return {}


def stage_asset(
    stage: Stage,
    *,
    group: str,
    description: str,
    kinds: Iterable[str] = ("parquet",),
    pool: str | None = None,
    after: Iterable[str] = (),
    extras: Extras = _no_extras,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> dg.AssetsDefinition:
    """The asset of a stage. `extras` adds metadata of a finished month, such as a picture.

    pool: limits how many runs work on it at once. after: assets that go before it in a run, though it reads no table
    of theirs. tags: of its step, which a cluster reads.
    """

    @dg.asset(
        name=stage.name,
        deps=list(dict.fromkeys([*(table.name for table in stage.upstream), *after])),
        partitions_def=MONTHS,
        group_name=group,
        kinds=set(kinds),
        description=f"{description}\n\nA row is {stage.table.row}.",
        metadata={"dagster/column_schema": column_schema(stage.table)},
        code_version=f"{stage.table.version}.{stage.version}",
        pool=pool,
        op_tags=dict(tags),
        retry_policy=retry_of_lost_steps(),
    )
    def _asset(
        context: dg.AssetExecutionContext, config: StageConfig, workspace: dg.ResourceParam[Workspace]
    ) -> dg.MaterializeResult[None]:
        outcomes = [_run(context, stage, workspace, month, config) for month in context.partition_keys]
        last = outcomes[-1]
        try:
            shown = {
                **_preview(stage, workspace, last.month),
                **_ledger(stage, workspace, last.month),
                **extras(workspace, last.month),
            }
        except CiteloomError as error:  # the store of the data root may be gone by now
            raise dg.Failure(description=str(error), allow_retries=False) from error
        return dg.MaterializeResult(metadata={**_account(outcomes), **shown})

    return _asset


def retry_of_lost_steps() -> dg.RetryPolicy | None:
    """On a cluster, a step whose node is lost is begun again on another."""
    return dg.RetryPolicy(max_retries=LOST_STEPS) if definition_time_settings().on_cluster else None


def column_schema(table: Table) -> dg.TableSchema:
    """A table's columns as the UI shows them."""
    return dg.TableSchema(
        columns=[dg.TableColumn(name, kind, description=text) for name, kind, text in table.describe_columns()]
    )


def _run(
    context: dg.AssetExecutionContext, stage: Stage, workspace: Workspace, month: str, config: StageConfig
) -> Outcome:
    try:
        listener = _LogProgress(context.log)
        with progress.listening(listener), shutdown.fenced(_fence(context)), shutdown.draining(_end_after_this_step):
            outcome = run_stage(stage, workspace, month, force=config.force)
    except shutdown.Interrupted as error:
        raise DagsterExecutionInterruptedError from error
    except TransientFailure as error:
        if context.retry_number >= config.retries:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        context.log.warning(f"{error}\nTrying again in {SECONDS_BETWEEN_RETRIES} s.")
        raise dg.RetryRequested(config.retries, SECONDS_BETWEEN_RETRIES) from error
    except CiteloomError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    except Exception as error:  # that nobody foresaw: it is no lost node, for which alone a cluster's step is retried
        raise dg.Failure(description=f"{type(error).__name__}: {error}", allow_retries=False) from error
    finally:
        close_indexes()  # asking whether the month is up to date has opened Edge, which other processes may want
    verb = "kept, up to date" if outcome.kept else f"made in {outcome.seconds:.1f} s"
    context.log.info(f"{stage.name} {month}: {outcome.rows} rows, {verb}")
    return outcome


def _fence(context: dg.AssetExecutionContext) -> shutdown.Fence:
    """Tells whether the step's run still goes on: others may have ended it, as where its process is gone and the step
    works on another machine."""

    def lost() -> str:
        run = context.instance.get_run_by_id(context.run_id)
        if run is None or run.is_finished:
            how = run.status.value.lower() if run else "it was deleted"
            return f"run {context.run_id} was ended from outside ({how})"
        return ""

    return lost


def _end_after_this_step() -> None:
    """Have Dagster end the run as if the signal came now: the stage took it, and ended well all the same."""
    interrupts._received_interrupt["received"] = True


class _LogProgress(progress.Listener):
    """Tells in the run's log, every half minute, how far a stage is."""

    def __init__(self, log: dg.DagsterLogManager) -> None:
        self._log, self._clock = log, progress.StageClock()

    def advanced(self, stage: str, month: str, done: int, total: int | None) -> None:
        """Tell how far it is, where it was not told just now."""
        if self._clock.is_due():
            self._log.info(f"{stage} {month}: {self._clock.tell(done, total)}")

    def noted(self, message: str) -> None:
        """Tell what a user should know."""
        self._log.info(message)


def _account(outcomes: list[Outcome]) -> dict[str, Any]:
    """Numbers of a run, summed over its months, each under a name that the UI can plot over time."""
    account: dict[str, Any] = {
        "dagster/row_count": sum(outcome.rows for outcome in outcomes),
        "seconds": round(sum(outcome.seconds for outcome in outcomes), 3),
        "bytes": sum(outcome.bytes for outcome in outcomes),
        "kept": all(outcome.kept for outcome in outcomes),
        "left_out": 0,
    }
    for outcome in outcomes:
        for reason, count in outcome.left_out.items():
            account["left_out"] += count
            account[f"left_out/{reason}"] = account.get(f"left_out/{reason}", 0) + count
        for name, value in {**outcome.notes, **outcome.measured}.items():
            account[name] = _shown(value)
    return account


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    return dg.MetadataValue.json(value) if isinstance(value, Mapping | list) else value


def _preview(stage: Stage, workspace: Workspace, month: str) -> dict[str, Any]:
    """The first rows as a Markdown table; text from papers is data, so whatever could be markup is escaped."""
    columns = [column.name for column in stage.table.schema if is_readable(column)]
    rows = workspace.root.read(stage.table, month, columns).slice(0, PREVIEW_ROWS).to_pylist()
    return {"preview": dg.MetadataValue.md(markdown_table(columns, (list(row.values()) for row in rows)))}


def _ledger(stage: Stage, workspace: Workspace, month: str) -> dict[str, Any]:
    """Why things were left out of the month, how often, and one of each; nothing where nothing was left out."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    with open_parquet(workspace.root.ledger_file(stage.name, month)) as ledger:
        for batch in ledger.iter_batches(columns=["reason", "subject", "detail"]):
            reasons = batch["reason"].to_pylist()
            counts.update(reasons)
            for reason in set(reasons) - examples.keys():
                place = reasons.index(reason)
                examples[reason] = [batch["subject"][place].as_py(), batch["detail"][place].as_py()]
    if not counts:
        return {}
    rows = [(reason, f"{count:,}", *examples[reason]) for reason, count in counts.most_common()]
    return {"ledger": dg.MetadataValue.md(markdown_table(("reason", "left out", "first", "its detail"), rows))}


def is_readable(column: pa.Field) -> bool:
    """Whether a column says something in a narrow cell: no digests, no nested rows, no vectors."""
    texts = pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type)
    return (texts or not pa.types.is_nested(column.type)) and not column.name.endswith("_sha256")
