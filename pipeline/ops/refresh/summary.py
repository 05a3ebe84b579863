"""The summary of a refresh: what changed in its months, and what is out of date.

The folder `refreshes` of the data root has one JSON file for each refresh, named after the time of
its start. Beside it lie the keys that its months had before they were run
(`<time>.before.<month>.parquet`), until the next refresh starts. A refresh that was killed has no
summary: the next one continues under its name, and its summary covers both.
"""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import tables
from pipeline.engine.failures import forget_failure
from pipeline.engine.run_stats import read_timings
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.llm.budget import is_budget_reached
from pipeline.ops.refresh.plan import stale_of
from pipeline.stages import LLM_STAGE_NAMES
from pipeline.storage.data_root import DataRoot
from pipeline.storage.reading import read_table
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

_FOLDER = "refreshes"
# What is compared of a month: (table, key, value).
_COMPARED: Mapping[str, tuple[tables.Table, str, str]] = {
    "page": (tables.PAPERS, "arxiv_id", "html_sha256"),
    "version": (tables.METADATA, "arxiv_id", "version"),
    "status": (tables.METADATA, "arxiv_id", "status"),
    "passage": (tables.PASSAGES, "passage_id", "text_sha256"),
}

Keys = dict[str, dict[str, str]]
"""What is compared → its keys, each with its value, empty for an unknown one; without what could
not be read."""


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """The changes of a month.

    papers_revised: those of another version or with another page. papers_removed: those whose page
    or category left. passages_changed: those with another text in the same place. vectors_made:
    those that were computed, not reused.
    """

    papers_new: int = 0
    papers_revised: int = 0
    papers_withdrawn: int = 0
    papers_removed: int = 0
    passages_added: int = 0
    passages_changed: int = 0
    passages_removed: int = 0
    vectors_made: int = 0


@dataclass(slots=True)
class RefreshSummary:
    """The summary of a refresh.

    started: its name, the time of its start in UTC; empty where it ran nothing. months: those that
    were run. out_of_date: month → table of a language model that no longer matches its inputs → its
    rows. not_made: month → tables of a language model that the settings ask for and that were never
    made. over_budget: (stage, month) that the budget ended; they are among those two, and the next
    refresh continues there. failures: (stage, month, message).
    """

    started: str = ""
    months: dict[str, ChangeCounts] = field(default_factory=dict)
    out_of_date: dict[str, dict[str, int]] = field(default_factory=dict)
    not_made: dict[str, list[str]] = field(default_factory=dict)
    over_budget: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def changes(self) -> ChangeCounts:
        """The changes of all months together."""
        totals = Counter[str]()
        for changes in self.months.values():
            totals.update(asdict(changes))
        return ChangeCounts(**totals)


def record_keys(workspace: Workspace, months: Iterable[str]) -> None:
    """Record the keys of months before a refresh runs them, where it has not done so yet."""
    folder, started = workspace.root.path / _FOLDER, unfinished_refresh(workspace.root)
    for month in months:
        if not started:
            started = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
            for file in folder.glob("*.before.*.parquet"):
                file.unlink()
        file = _keys_file(workspace.root, started, month)
        if not file.exists():
            write_whole(file, _as_parquet(_read_keys(workspace.root, month)))


def last_refresh(root: DataRoot) -> str:
    """The name of the last refresh that ran any month; empty where there is none."""
    return max((_name_and_month(file)[0] for file in _key_files(root)), default="")


def unfinished_refresh(root: DataRoot) -> str:
    """The name of the last refresh where it has no summary yet, else empty."""
    name = last_refresh(root)
    return "" if name and summary_file(root, name).exists() else name


def months_of_refresh(root: DataRoot, name: str) -> list[str]:
    """The months that the last refresh runs, or ran."""
    names_and_months = map(_name_and_month, _key_files(root))
    return [month for refresh, month in names_and_months if refresh == name]


def summary_file(root: DataRoot, name: str) -> DataPath:
    """Where the summary of a refresh lies."""
    return root.path / _FOLDER / f"{name}.json"


def summarize(
    workspace: Workspace,
    name: str,
    deferred: Mapping[str, Sequence[Stage]],
    failures: Iterable[tuple[str, str, str]],
) -> RefreshSummary:
    """Compare the months of a refresh with what they were before, and write its summary unless it
    ran nothing.

    name: of the last refresh; empty where nothing was run. deferred: the stages that the refresh
    leaves out of date in each month. A summary that is there is replaced, since further runs of
    the refresh may have ended.
    """
    summary = RefreshSummary(name)
    for month in months_of_refresh(workspace.root, name):
        before = _from_parquet(_keys_file(workspace.root, name, month))
        summary.months[month] = _compare(before, _read_keys(workspace.root, month))
    for stage, month, message in failures:
        if stage in LLM_STAGE_NAMES and is_budget_reached(message):
            # As planned: answers are saved, and the month is reported as out of date, not as
            # failed.
            forget_failure(workspace, stage, month)
            summary.over_budget.append((stage, month))
        else:
            summary.failures.append((stage, month, message))
    for month, stages in deferred.items():
        stale = stale_of(workspace, month, stages)
        missing = [
            stage.name
            for stage in stages
            if stage.name in LLM_STAGE_NAMES and stage.name not in stale
        ]
        if stale:
            summary.out_of_date[month] = stale
        if missing:
            summary.not_made[month] = missing
    if name:
        write_whole(
            summary_file(workspace.root, name), json.dumps(as_json(summary), indent=1).encode()
        )
    return summary


def as_json(summary: RefreshSummary) -> dict[str, Any]:
    """The summary as its file has it."""
    return {
        "started": summary.started or None,
        "changes": asdict(summary.changes),
        "months": {month: asdict(changes) for month, changes in summary.months.items()},
        "out_of_date": summary.out_of_date,
        "not_made": summary.not_made,
        "over_budget": [{"stage": stage, "month": month} for stage, month in summary.over_budget],
        "failures": [
            {"stage": stage, "month": month, "message": message}
            for stage, month, message in summary.failures
        ],
    }


def _key_files(root: DataRoot) -> list[DataPath]:
    return sorted((root.path / _FOLDER).glob("*.before.*.parquet"), key=str)


def _keys_file(root: DataRoot, name: str, month: str) -> DataPath:
    return root.path / _FOLDER / f"{name}.before.{month}.parquet"


def _name_and_month(keys_file: DataPath) -> tuple[str, str]:
    name, _, month = keys_file.stem.partition(".before.")
    return name, month


def _read_keys(root: DataRoot, month: str) -> Keys:
    keys: Keys = {}
    for what, (table, key, value) in _COMPARED.items():
        with suppress(MissingInput, PermanentFailure):
            rows = root.read(table, month, [key, value]).to_pylist()
            keys[what] = {row[key]: str(row[value] or "") for row in rows}
    runs = read_timings(root, tables.EMBEDDINGS.name, month)
    keys["embedding run"] = {
        f"{run.fingerprint} {run.seconds}": str(run.measured.get("encoded", 0)) for run in runs
    }
    return keys


def _as_parquet(keys: Keys) -> bytes:
    rows = [
        {"what": what, "key": key, "value": value}
        for what, values in keys.items()
        for key, value in values.items()
    ]
    file = io.BytesIO()
    schema = pa.schema([(name, pa.string()) for name in ("what", "key", "value")])
    pq.write_table(pa.Table.from_pylist(rows, schema), file, compression="zstd")
    return file.getvalue()


def _from_parquet(file: DataPath) -> Keys:
    keys: Keys = defaultdict(dict)
    for row in read_table(file).to_pylist():
        keys[row["what"]][row["key"]] = row["value"] or ""
    return keys


def _differences(before: Keys, now: Keys, what: str) -> tuple[set[str], set[str], set[str]]:
    """The keys that were added, changed and removed; an unknown value counts as unchanged."""
    if what not in now:  # the run failed above it
        return set(), set(), set()
    old, new = before.get(what, {}), now[what]
    both = old.keys() & new.keys()
    changed = {key for key in both if old[key] and new[key] and old[key] != new[key]}
    return new.keys() - old.keys(), changed, old.keys() - new.keys()


def _compare(before: Keys, now: Keys) -> ChangeCounts:
    new, with_other_page, removed = _differences(before, now, "page")
    revised = with_other_page | _differences(before, now, "version")[1]
    added, changed, left = _differences(before, now, "passage")
    status, runs = now.get("status", {}), now["embedding run"]
    withdrawn = sum(status.get(paper) == "withdrawn" for paper in removed)
    return ChangeCounts(
        papers_new=len(new),
        papers_revised=len(revised & now.get("page", {}).keys()),
        papers_withdrawn=withdrawn,
        papers_removed=len(removed) - withdrawn,
        passages_added=len(added),
        passages_changed=len(changed),
        passages_removed=len(left),
        vectors_made=sum(int(runs[run]) for run in _differences(before, now, "embedding run")[0]),
    )
