"""What runs took, and what they were expected to cost: kept beside the tables, for those who read a report.

`<data root>/timings/<stage>/<month>.json` has the figures of each run of the month as its inputs are now; a run that
was killed leaves none. `<data root>/estimates/<month>.json` has the last estimate of each stage that had anything to
pay. Never part of what a table holds, for they differ from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import Place
from pipeline.storage.writing import write_whole

# Somebody who runs a month by force each day need not read how long it took a year ago.
_MOST = 20
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True)
class Timing:
    """One run: wall seconds, and what it measured, such as `llm_requests` and `llm_request_seconds`."""

    fingerprint: str
    seconds: float
    measured: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a stage was expected to take in all: calls and tokens, of answers kept before too; money and seconds of
    what was to be paid then."""

    calls: int
    tokens: int
    money: float
    seconds: float


def note_timing(root: DataRoot, stage: str, month: str, timing: Timing) -> None:
    """Keep a run's figures beside those of earlier runs with the same inputs; others are dropped."""
    same = [each for each in read_timings(root, stage, month) if each.fingerprint == timing.fingerprint]
    _write(_timings_file(root, stage, month), [asdict(each) for each in [*same, timing][-_MOST:]])


def read_timings(root: DataRoot, stage: str, month: str) -> list[Timing]:
    """The runs of a month, oldest first; none where nothing is kept, or what is kept cannot be read."""
    try:
        told = json.loads(_timings_file(root, stage, month).read_bytes())
        return [Timing(str(each["fingerprint"]), float(each["seconds"]), dict(each["measured"])) for each in told]
    except _UNREADABLE:
        return []


def timed_months(root: DataRoot, stage: str) -> list[str]:
    """The months of a stage that have timings, oldest first."""
    return sorted(file.stem for file in (root.path / "timings" / stage).glob("*.json"))


def note_estimates(root: DataRoot, month: str, expected: Mapping[str, Expected]) -> None:
    """Keep what these stages of a month are expected to take; of others, what was expected before stays."""
    kept = {**read_estimates(root, month), **expected}
    _write(_estimates_file(root, month), {stage: asdict(each) for stage, each in sorted(kept.items())})


def read_estimates(root: DataRoot, month: str) -> dict[str, Expected]:
    """Stage → what it was expected to take; none where nothing is kept, or what is kept cannot be read."""
    try:
        told = json.loads(_estimates_file(root, month).read_bytes())
        return {stage: Expected(**each) for stage, each in told.items()}
    except _UNREADABLE:
        return {}


def _timings_file(root: DataRoot, stage: str, month: str) -> Place:
    return root.path / "timings" / stage / f"{month}.json"


def _estimates_file(root: DataRoot, month: str) -> Place:
    return root.path / "estimates" / f"{month}.json"


def _write(file: Place, value: object) -> None:
    write_whole(file, json.dumps(value, default=str).encode())
