"""Failures that no run has cleared since: one file for each stage and month."""

from __future__ import annotations

import json
import re
import traceback
from contextlib import suppress
from dataclasses import dataclass

from pipeline.engine.stage import Workspace
from pipeline.errors import (
    CiteloomError,
    PermanentFailure,
    SettingError,
    TransientFailure,
    unexpected,
)
from pipeline.storage.data_root import DataRoot
from pipeline.storage.read_cache import forget, is_active, once
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole
from pipeline.tables import TABLES

RUN = "run"
"""Stands for the stage where the status of a month cannot be read."""

_FOLDER = "failures"
_FILE_NAME = re.compile(r"(?P<stage>.+)-(?P<month>\d{4}-\d\d)")
_CHECK = "check-"

_TRANSIENT = "may be temporary: a retry may succeed"
_PERMANENT = "permanent: fix the cause first, a retry alone fails again"
_UNEXPECTED = "unexpected error: see its traceback, and retry to see whether it occurs again"


@dataclass(frozen=True, slots=True)
class Failure:
    """A month that failed in a stage or in a check of it. kind: whether a rerun can clear it, in
    words.
    """

    stage: str
    month: str
    message: str
    kind: str

    @property
    def stage_name(self) -> str:
        """The stage, also where it is a check of it that failed."""
        return self.stage.removeprefix(_CHECK)

    def describe(self) -> str:
        """The message, and whether a rerun can clear it."""
        return f"{self.message} ({self.kind})"


def check_name(stage: str) -> str:
    """The name under which a failed blocking check of a stage is recorded."""
    return f"{_CHECK}{stage}"


def record_failure(workspace: Workspace, stage: str, month: str, error: Exception) -> str:
    """Record that a month failed, until it succeeds; returns the message for the user.

    An unexpected error is named as such, with the file that holds its traceback.
    """
    file = _failure_file(workspace.root, stage, month)
    message = str(error) if isinstance(error, CiteloomError) else unexpected(error, file)
    trace = "".join(traceback.format_exception(error))
    record = {
        "stage": stage,
        "month": month,
        "message": message,
        "kind": kind_of(error),
        "traceback": trace,
    }
    # The disk or the store may be what failed: the message is returned all the same.
    with suppress(CiteloomError, OSError):
        write_whole(file, json.dumps(record).encode())
    return message


def kind_of(error: BaseException) -> str:
    """Whether a rerun can clear an error, in words."""
    if isinstance(error, TransientFailure):
        return _TRANSIENT
    return _PERMANENT if isinstance(error, PermanentFailure | SettingError) else _UNEXPECTED


def forget_failure(workspace: Workspace, stage: str, month: str) -> None:
    """Remove the record of a failure: the month succeeded."""
    if _may_exist(workspace.root, stage, month):
        file = _failure_file(workspace.root, stage, month)
        file.unlink(missing_ok=True)
        forget(file)


def read_failure(workspace: Workspace, stage: str, month: str) -> str | None:
    """The message of a month's last failure and whether a rerun can clear it, or None."""
    if not _may_exist(workspace.root, stage, month):
        return None
    failure = _read(_failure_file(workspace.root, stage, month), stage, month)
    return None if failure is None else failure.describe()


def all_failures(root: DataRoot) -> list[Failure]:
    """All recorded failures, by month and stage; without those of stages that no longer exist."""
    stages = {*TABLES, RUN}
    failures = []
    for file in (root.path / _FOLDER).glob("*.json"):
        match = _FILE_NAME.fullmatch(file.stem)
        failure = None if match is None else _read(file, match["stage"], match["month"])
        if failure is not None and failure.stage_name in stages:
            failures.append(failure)
    return sorted(failures, key=lambda failure: (failure.month, failure.stage))


def _may_exist(root: DataRoot, stage: str, month: str) -> bool:
    """Whether a failure may be recorded; within `read_cache` by one listing of the folder."""
    if not is_active():
        return True
    folder = root.folder(_FOLDER)
    names = once("names", lambda: {file.name for file in folder.glob("*.json")}, folder)
    return _file_name(stage, month) in names


def _read(file: DataPath, stage: str, month: str) -> Failure | None:
    try:
        record = json.loads(file.read_bytes())
        return Failure(stage, month, str(record["message"]), str(record.get("kind", _UNEXPECTED)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Failure(
            stage, month, f"it failed, and {file}, which should say why, is damaged", _UNEXPECTED
        )


def _failure_file(root: DataRoot, stage: str, month: str) -> DataPath:
    return root.folder(_FOLDER) / _file_name(stage, month)


def _file_name(stage: str, month: str) -> str:
    return f"{stage}-{month}.json"
