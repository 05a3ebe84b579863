"""Make a stage a Dagster asset: versions, partitions, schema, metadata, retries; and its checks."""

import inspect
import json
import warnings
from collections.abc import Mapping
from typing import Any

import dagster as dg
import pyarrow as pa

from assets import MONTHS, OWNERS
from assets.checks import build_check
from assets.details import DETAILS
from assets.placement import (
    definition_time_settings,
    failing_without_retry,
    final_failure,
    gpu_tags,
    retry_of_lost_steps,
)
from assets.rendering import markdown_table, report_address
from pipeline.engine import shutdown
from pipeline.engine.priority import lower_priority
from pipeline.engine.progress import (
    Event,
    Listener,
    Notice,
    Outcome,
    StageAdvanced,
    StageClock,
    listening,
)
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import CiteloomError, TransientFailure
from pipeline.report import page_of_month
from pipeline.settings import Settings
from pipeline.tables import TABLES
from pipeline.text import text_digest

# A minute between tries: a server that restarts or a rate limit is over after a few of them.
SECONDS_BETWEEN_RETRIES = 60
PREVIEW_ROWS = 5


class StageConfig(dg.Config):
    """What a run can set for one asset."""

    force: bool = False
    """Compute the month again although it is up to date."""
    retries: int = 3
    """Retries after a failure that may pass, such as a server that does not answer."""


def month_asset(stage: Stage) -> dg.AssetsDefinition:
    """The Dagster asset of a stage. The months of a disabled stage are empty, and its description
    says why.

    The settings of the time at which it is defined say which stages are disabled, where a step
    runs, and with which settings its rows are made.
    """
    settings = definition_time_settings()
    disabled = _disabled_reason(stage)
    description = f"{stage.description}\n\nA row is {stage.table.row}."
    tags = {"citeloom/resource": stage.pool or "cpu"}
    if disabled:
        tags["citeloom/disabled"] = ""
        way_out = "Its months are empty. To enable it, change that and restart `citeloom ui`."
        description += f"\n\nDisabled, since {disabled}. {way_out}"

    @dg.asset(
        name=stage.name,
        deps=sorted(stage.waits_for),
        partitions_def=MONTHS,
        kinds=set(stage.kinds),
        owners=OWNERS,
        tags=tags,
        description=description,
        metadata={
            "dagster/uri": f"{settings.data_root}/{stage.name}",
            "dagster/column_schema": dg.TableSchema(
                [
                    dg.TableColumn(name, kind, description=text)
                    for name, kind, text in stage.table.describe_columns()
                ]
            ),
            "dagster/code_references": _code_references(stage),
            "documentation": f"docs/reference/tables.md#{stage.name}",
        },
        code_version=_code_version(stage, settings),
        # A cluster hands out its GPUs itself.
        pool=None if stage.pool == "gpu" and settings.on_cluster else stage.pool,
        op_tags=gpu_tags(settings) if stage.pool == "gpu" else {},
        retry_policy=retry_of_lost_steps(settings),
    )
    def _asset(
        context: dg.AssetExecutionContext,
        config: StageConfig,
        workspace: dg.ResourceParam[Workspace],
    ) -> dg.MaterializeResult[None]:
        outcome = _run(context, stage, workspace, context.partition_key, config)
        with failing_without_retry():  # the store of the data root may be gone by now
            metadata = _outcome_metadata(stage, workspace, outcome)
            version = _data_version(stage.name, workspace, outcome.month)
        return dg.MaterializeResult(metadata=metadata, data_version=version)

    return _asset


def month_checks(stage: Stage) -> list[dg.AssetChecksDefinition]:
    """The checks of a stage's month; none of a disabled stage, which has nothing to check."""
    checks = () if _disabled_reason(stage) else stage.checks
    return [build_check(stage, check, definition_time_settings()) for check in checks]


def _disabled_reason(stage: Stage) -> str:
    """Why the settings do not ask for a stage; empty where they do, or are invalid."""
    try:
        return stage.disabled_reason(definition_time_settings())
    except CiteloomError:
        return ""


def _code_references(stage: Stage) -> dg.CodeReferencesMetadataValue:
    """The place of the stage's class."""
    file = inspect.getsourcefile(type(stage))
    line = inspect.getsourcelines(type(stage))[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        place = dg.LocalFileCodeReference(file_path=str(file), line_number=line, label=stage.name)
        return dg.CodeReferencesMetadataValue(code_references=[place])


def _code_version(stage: Stage, settings: Settings) -> str:
    """The versions of table and stage, and a digest of the settings that change its rows.

    So a month is out of date in Dagster after a changed setting, as in `citeloom status`.
    """
    try:
        values = {**stage.setting_values(settings), **stage.part_settings(settings)}
    # Each run names the invalid setting; the UI opens all the same.
    except CiteloomError as error:
        values = {"invalid": str(error)}
    digest = text_digest(json.dumps(values, sort_keys=True, default=str))
    return f"{stage.table.version}.{stage.version}.{digest[:8]}"


def materialization(
    stage: Stage, workspace: Workspace, outcome: Outcome, instance: dg.DagsterInstance
) -> dg.AssetMaterialization:
    """The same materialization as an event, for a month that was computed outside any run of
    Dagster.

    Its tags are those that Dagster itself gives a materialization, from which it tells whether a
    month is out of date: of each input the data version, and the event that recorded it.
    """
    tags = {"dagster/code_version": _code_version(stage, workspace.settings)}
    version = _data_version(stage.name, workspace, outcome.month)
    if version is not None:
        tags["dagster/data_version"] = version.value
    for name in sorted(stage.waits_for):
        input_version = _data_version(name, workspace, outcome.month)
        records = instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(name), asset_partitions=[outcome.month]), limit=1
        ).records
        if input_version is not None:
            tags[f"dagster/input_data_version/{name}"] = input_version.value
            tags[f"dagster/input_event_pointer/{name}"] = (
                str(records[0].storage_id) if records else "NULL"
            )
    return dg.AssetMaterialization(
        asset_key=stage.name,
        partition=outcome.month,
        metadata=_outcome_metadata(stage, workspace, outcome),
        tags=tags,
    )


def _data_version(table: str, workspace: Workspace, month: str) -> dg.DataVersion | None:
    """The digest of a month's rows, so that Dagster's staleness agrees with the engine's."""
    provenance = workspace.root.provenance(TABLES[table], month)
    return dg.DataVersion(provenance.rows_sha256) if provenance and provenance.rows_sha256 else None


def _run(
    context: dg.AssetExecutionContext,
    stage: Stage,
    workspace: Workspace,
    month: str,
    config: StageConfig,
) -> Outcome:
    """Run the stage's month, and say by the kind of exception whether Dagster is to try again."""
    shutdown.end_with_parent()
    lower_priority()
    try:
        with (
            listening(_log_progress(context.log)),
            shutdown.fenced(lambda: _reason_run_is_lost(context)),
            shutdown.draining(),
        ):
            outcome = run_stage(stage, workspace, month, force=config.force)
    except shutdown.Interrupted as error:
        raise dg.DagsterExecutionInterruptedError from error
    except TransientFailure as error:
        if context.retry_number >= config.retries:
            raise final_failure(str(error)) from error
        context.log.warning(f"{error}\nTrying again in {SECONDS_BETWEEN_RETRIES} s.")
        raise dg.RetryRequested(config.retries, SECONDS_BETWEEN_RETRIES) from error
    except CiteloomError as error:
        raise final_failure(str(error)) from error
    # An error of the code is not a lost node, for which alone a cluster's step is retried.
    except Exception as error:
        raise final_failure(f"{type(error).__name__}: {error}") from error
    if shutdown.requested():  # the month is in place; the rest of the run is not to begin
        raise dg.DagsterExecutionInterruptedError
    action = "skipped, up to date" if outcome.skipped else f"computed in {outcome.seconds:.1f} s"
    context.log.info(f"{stage.name} {month}: {outcome.rows} rows, {action}")
    return outcome


def _reason_run_is_lost(context: dg.AssetExecutionContext) -> str:
    """Why the step's run was lost, as after a termination in the UI; empty where it was not."""
    run = context.instance.get_run_by_id(context.run_id)
    if run is None or run.is_finished:
        reason = run.status.value.lower() if run else "it was deleted"
        return f"run {context.run_id} was ended from outside ({reason})"
    return ""


def _log_progress(log: dg.DagsterLogManager) -> Listener:
    """A listener that logs messages for the user, and every half minute how far a stage is."""
    clock = StageClock()

    def log_event(event: Event) -> None:
        match event:
            case StageAdvanced(stage, month, done, total):
                if clock.is_due():
                    log.info(f"{stage} {month}: {clock.describe(done, total)}")
            case Notice(message):
                log.info(message)

    return log_event


def _outcome_metadata(stage: Stage, workspace: Workspace, outcome: Outcome) -> dict[str, Any]:
    """The figures of an outcome, each under a name that the UI can plot over time; the month's
    first rows, and the stage's own details.
    """
    metadata: dict[str, Any] = {
        "dagster/row_count": outcome.rows,
        "path": dg.MetadataValue.path(str(workspace.root.file(stage.table, outcome.month))),
        "seconds": round(outcome.seconds, 3),
        "bytes": outcome.bytes,
        "skipped": outcome.skipped,
        "left_out": sum(outcome.left_out.values()),
    }
    for reason, count in outcome.left_out.items():
        metadata[f"left_out/{reason}"] = count
    if page_of_month(workspace.root, outcome.month).is_file():
        metadata["report"] = report_address(workspace, outcome.month)
    for name, value in {**outcome.notes, **outcome.measured}.items():
        if isinstance(value, Mapping | list):
            metadata[name] = dg.MetadataValue.json(value)
        else:
            metadata[name] = round(value, 3) if isinstance(value, float) else value
    # Of the first rows; markup in them is escaped.
    columns = [column.name for column in stage.table.schema if is_readable(column)]
    rows = workspace.root.read(stage.table, outcome.month, columns).slice(0, PREVIEW_ROWS)
    table = markdown_table(columns, (list(row.values()) for row in rows.to_pylist()))
    metadata["preview"] = dg.MetadataValue.md(table)
    if stage.name in DETAILS:
        metadata |= DETAILS[stage.name](workspace, outcome.month)
    return metadata


def is_readable(column: pa.Field) -> bool:
    """Whether a column says something in a narrow cell: no digests, no nested rows, no vectors."""
    texts = pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type)
    return (texts or not pa.types.is_nested(column.type)) and not column.name.endswith("_sha256")
