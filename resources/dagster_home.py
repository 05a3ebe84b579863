"""Dagster's instance of a data root: its folder, dagster.yaml, opening, and state.

Postgres replaces SQLite where CITELOOM_DAGSTER_PG_URL is set. The URL holds a password, so
dagster.yaml names the variable and never its value, and no message shows it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from filelock import FileLock

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError, TransientFailure, require_packages
from pipeline.ops.doctor.findings import DoctorFinding, ok, problem
from pipeline.settings import PROJECT, Settings
from pipeline.stages import STAGES
from pipeline.storage.writing import write_whole
from pipeline.text import number_of, one_line
from resources.dead_runs import UNFINISHED, end_dead_runs

_VARIABLE = "CITELOOM_DAGSTER_PG_URL"
_SCHEME = "postgresql://"
_POSTGRES = f"""
# {_VARIABLE} is set:
storage:
  postgres:
    postgres_url:
      env: {_VARIABLE}
"""
_NO_STEP_OUTPUT = b"""
# The runs of a command compute nothing, and their steps print nothing.
compute_logs:
  module: dagster.core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def dagster_home(workspace: Workspace) -> Path:
    """The folder of Dagster's instance, with its dagster.yaml; also set as DAGSTER_HOME.

    Raises SettingError where CITELOOM_DAGSTER_PG_URL is not an address of Postgres, or its package
    is not installed.
    """
    home = workspace.local / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    content = (PROJECT / "dagster.yaml").read_bytes()
    if workspace.settings.dagster_pg_url is not None:
        share_postgres(workspace.settings)
        content += _POSTGRES.encode()
    file = home / "dagster.yaml"
    if not file.exists() or file.read_bytes() != content:
        write_whole(file, content)
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def share_postgres(settings: Settings) -> None:
    """Put the address of Postgres, where one is set, into the environment, where Dagster reads it:
    it may have come from .env. Raises SettingError as `dagster_home` does.
    """
    if settings.dagster_pg_url is not None:
        os.environ[_VARIABLE] = _checked_url(settings.dagster_pg_url.get_secret_value())


def _checked_url(url: str) -> str:
    if not url.startswith((_SCHEME, "postgresql+psycopg2://")):
        raise SettingError(
            f"{_VARIABLE} is not an address of Postgres: give"
            " postgresql://user:password@host:5432/database"
        )
    require_packages(_VARIABLE, "postgres", "dagster_postgres")
    # SQLAlchemy 2.1 takes a plain address to be psycopg 3's; dagster-postgres is written for
    # psycopg2, and brings it.
    return url.replace(_SCHEME, "postgresql+psycopg2://")


def open_for_command(home: Path) -> dg.DagsterInstance:
    """The instance at `home` for a process whose output is a command's own: Dagster would redirect
    it, by two more processes, during each step. Raises as `open_instance` does.
    """
    config = home / "command_line.yaml"
    write_whole(config, (home / "dagster.yaml").read_bytes() + _NO_STEP_OUTPUT)
    return open_instance(home, config.name)


def open_instance(home: Path, config: str = "dagster.yaml") -> dg.DagsterInstance:
    """The instance at `home`, whose databases are made where they are missing.

    Two processes that both find them missing would each make them, and one fail: hence the lock.
    config: its file in `home`. Raises TransientFailure where Postgres does not answer, or files of
    SQLite are locked or damaged.
    """
    with FileLock(home / "opening.lock"):
        try:
            instance = dg.DagsterInstance.from_config(str(home), config)
            instance.get_runs(limit=1)
            _make_pools(instance)
        except Exception as error:
            reason = one_line(str(error.__cause__).split("\n(Background")[0])
            # By its module's name, since the package may not be installed.
            if type(error).__module__.startswith("dagster_postgres"):
                message = f"{_VARIABLE}: cannot connect to Postgres: {reason}"
                raise TransientFailure(message) from error
            if isinstance(error.__cause__, sqlite3.Error):
                raise TransientFailure(
                    f"Dagster's storage in {home} cannot be used ({reason}): end the process that"
                    " has it open, or move a damaged file away, and run again"
                ) from error
            raise
        return instance


def _make_pools(instance: dg.DagsterInstance) -> None:
    """Give each pool its limit. Dagster (1.13.27) does so when a step first asks for the pool, and
    on Postgres the second of two steps that ask at once fails with its run.
    """
    events = instance.event_log_storage
    pools = {stage.pool for stage in STAGES if stage.pool}
    for pool in sorted(pools - events.get_concurrency_keys()):
        events.initialize_concurrency_limit_to_default(pool)


@dataclass(frozen=True, slots=True)
class InstanceState:
    """The state of Dagster's instance.

    running: ids of unfinished runs. ended: of those that had no process any more, and were ended.
    pools: the runs that hold slots of each. outdated: stores of an older schema than this
    Dagster's.
    """

    running: tuple[str, ...]
    ended: tuple[str, ...]
    pools: Mapping[str, tuple[str, ...]]
    outdated: tuple[str, ...]


def examine(home: Path) -> InstanceState:
    """The state of the instance at `home`, once runs whose process is gone are ended and the pool
    slots of ended runs are free. Raises as `open_instance` does.
    """
    with open_instance(home) as instance:
        ended = end_dead_runs(instance)
        unfinished = [
            run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=list(UNFINISHED)))
        ]
        events = instance.event_log_storage
        holders = {
            pool: events.get_concurrency_info(pool).active_run_ids
            for pool in events.get_concurrency_keys()
        }
        stores = {
            "runs": instance.run_storage,
            "events": events,
            "schedules": instance.schedule_storage,
        }
        return InstanceState(
            tuple(unfinished),
            tuple(ended),
            {pool: tuple(sorted(runs)) for pool, runs in sorted(holders.items()) if runs},
            tuple(name for name, store in stores.items() if _is_outdated(store)),
        )


def probe_instance(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Findings of `citeloom doctor`. Raises as `dagster_home` and `open_instance` do."""
    home = workspace.local / "dagster"
    if not (home / "dagster.yaml").is_file() and workspace.settings.dagster_pg_url is None:
        yield ok(f"{home} does not exist yet: the first run creates it")
    else:
        yield from describe_state(home, examine(dagster_home(workspace)))


def describe_state(home: Path, state: InstanceState) -> Iterator[DoctorFinding]:
    """The schema of the databases, runs that were ended, active runs and the pools they hold."""
    if state.outdated:
        message = f"its databases have an older schema ({', '.join(state.outdated)})"
        yield problem(
            message, f"DAGSTER_HOME={home} dagster instance migrate, with nothing running"
        )
    if state.ended:
        yield ok(
            f"{number_of(len(state.ended), 'run')} whose process was gone failed, and their pools"
            f" are free: {', '.join(state.ended[:5])}"
        )
    holders = ", ".join(f"{pool} by {', '.join(runs)}" for pool, runs in state.pools.items())
    if not state.outdated:
        pools = f"; pools held: {holders}" if holders else ""
        yield ok(f"{home}: {number_of(len(state.running), 'active run')}{pools}")


def _is_outdated(store: Any) -> bool:
    """Whether a store's schema is older than this Dagster's."""
    version = store.alembic_version() if store is not None else None
    return version is not None and version[0] != version[1]
