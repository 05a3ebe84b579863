"""What failed and has not been mended since: one file for each stage and month, and what a run of the
month was to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

FOLDER = "failures"
_NAME = re.compile(r"(?P<stage>.+)-(?P<month>\d{4}-\d\d)")
# The other name under which a stage may be kept: it is done, and a blocking check of it did not hold.
CHECK = "check-"

_MAY_PASS = "may pass: a rerun may clear it"  # noqa: S105 - no password
_MEND = "stays until what it names is mended: a rerun alone clears nothing"
_UNFORESEEN = "unforeseen: a rerun shows whether it comes again"


@dataclass(frozen=True, slots=True)
class Failure:
    """One stage of one month that failed, and its message."""

    stage: str
    month: str
    message: str
    kind: str
    """Whether a rerun can clear it, in words."""

    @property
    def of(self) -> str:
        """The stage, where the failure is of its check too."""
        return self.stage.removeprefix(CHECK)


def kind_of(error: BaseException) -> str:
    """Whether a rerun can clear an error, in words."""
    if isinstance(error, TransientFailure):
        return _MAY_PASS
    return _MEND if isinstance(error, PermanentFailure | SettingError) else _UNFORESEEN


def failure_file(root: DataRoot, stage: str, month: str) -> DataPath:
    """Where the failure of a stage's month is kept."""
    return root.path / FOLDER / f"{stage}-{month}.json"


def kept_failure(root: DataRoot, stage: str, month: str) -> Failure | None:
    """The failure of a stage's month, or None."""
    return _read(failure_file(root, stage, month), stage, month)


def kept_failures(root: DataRoot) -> list[Failure]:
    """All failures that are kept, month by month."""
    files = (root.path / FOLDER).glob("*.json")
    named = ((file, match) for file in files if (match := _NAME.fullmatch(file.stem)) is not None)
    found = (_read(file, match["stage"], match["month"]) for file, match in named)
    return sorted(filter(None, found), key=lambda failure: (failure.month, failure.stage))


def _read(file: DataPath, stage: str, month: str) -> Failure | None:
    try:
        told = json.loads(file.read_bytes())
        return Failure(stage, month, str(told["message"]), str(told.get("kind", _UNFORESEEN)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Failure(stage, month, f"it failed, and {file}, which should say why, is damaged", _UNFORESEEN)


def note_asked(root: DataRoot, month: str, stages: Iterable[str]) -> None:
    """Keep which stages a run of a month was to do, that came to no good end."""
    write_whole(_asked_file(root, month), json.dumps(list(stages)).encode())


def forget_asked(root: DataRoot, month: str) -> None:
    """Drop it: a run of the month ended well."""
    _asked_file(root, month).unlink(missing_ok=True)


def asked(root: DataRoot, month: str) -> Sequence[str]:
    """The stages that the month's last run was to do; none where that is not known."""
    try:
        return [str(name) for name in json.loads(_asked_file(root, month).read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def _asked_file(root: DataRoot, month: str) -> DataPath:
    return root.path / FOLDER / "asked" / f"{month}.json"
