"""Run statistics: what runs took, in files beside the tables.

`<data root>/timings/<stage>/<month>.json` has the figures of each run of the month with its present
inputs; a killed run leaves none. They differ from run to run, so they are never part of a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

_MOST_RUNS = 20
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One run: wall seconds, and measures such as `llm_requests` and `llm_request_seconds`."""

    fingerprint: str
    seconds: float
    measured: Mapping[str, Any]


def note_timing(root: DataRoot, stage: str, month: str, timing: StageTiming) -> None:
    """Add a run's figures to those of earlier runs with the same inputs; drop all others."""
    earlier = [
        run for run in read_timings(root, stage, month) if run.fingerprint == timing.fingerprint
    ]
    runs = [asdict(run) for run in [*earlier, timing][-_MOST_RUNS:]]
    write_whole(_timings_file(root, stage, month), json.dumps(runs, default=str).encode())


def read_timings(root: DataRoot, stage: str, month: str) -> list[StageTiming]:
    """The runs of a month, oldest first; empty where the file is missing or damaged."""
    try:
        runs = json.loads(_timings_file(root, stage, month).read_bytes())
        return [
            StageTiming(str(run["fingerprint"]), float(run["seconds"]), dict(run["measured"]))
            for run in runs
        ]
    except _UNREADABLE:
        return []


def _timings_file(root: DataRoot, stage: str, month: str) -> DataPath:
    return root.path / "timings" / stage / f"{month}.json"
