"""The summary of a refresh: what changed in its months, and what is out of date.

The folder `refreshes` of the data root has one JSON file for each refresh, named after the time of
its start. Beside it lie the keys that its months had before they were run
(`<time>.before.<month>.parquet`), until the next refresh starts. A refresh that was killed has no
summary: the next one continues under its name, and its summary covers both.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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
# The columns of a month that are compared, each as (table, key, value). A missing table is read
# from the next one, so that a deleted file does not turn all its rows into new ones; its values are
# unknown then.
_COMPARED: Mapping[str, Sequence[tuple[tables.Table, str, str | None]]] = {
    "page": ((tables.PAPERS, "arxiv_id", "html_sha256"), (tables.PASSAGES, "arxiv_id", None)),
    "version": ((tables.METADATA, "arxiv_id", "version"),),
    "status": ((tables.METADATA, "arxiv_id", "status"),),
    "passage": (
        (tables.PASSAGES, "passage_id", "text_sha256"),
        (tables.EMBEDDINGS, "passage_id", "text_sha256"),
    ),
}

_KEY_AND_VALUE = pa.schema([("key", pa.string()), ("value", pa.string())])

Keys = Mapping[str, pa.Table]
"""What is compared → its keys and values; without what could not be read."""


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
    keys = {}
    for what, sources in _COMPARED.items():
        readable = (_read_columns(root, month, *source) for source in sources)
        rows = next((rows for rows in readable if rows is not None), None)
        if rows is not None:
            keys[what] = rows
    runs = read_timings(root, tables.EMBEDDINGS.name, month)
    names = [f"{run.fingerprint} {run.seconds}" for run in runs]
    encoded = [str(run.measured.get("encoded", 0)) for run in runs]
    keys["embedding run"] = pa.table([names, encoded], _KEY_AND_VALUE)
    return keys


def _read_columns(
    root: DataRoot, month: str, table: tables.Table, key: str, value: str | None
) -> pa.Table | None:
    """Two columns of a month as texts; None where the month is missing or damaged."""
    try:
        rows = root.read(table, month, [key, value] if value else [key])
    except (MissingInput, PermanentFailure):
        return None
    if value is None:
        keys = rows[key].unique()
        return pa.table([keys, pa.nulls(len(keys), pa.string())], _KEY_AND_VALUE)
    return rows.rename_columns(["key", "value"]).cast(_KEY_AND_VALUE)


def _as_parquet(keys: Keys) -> bytes:
    rows = [
        part.append_column("what", pa.repeat(what, part.num_rows)) for what, part in keys.items()
    ]
    file = io.BytesIO()
    pq.write_table(pa.concat_tables(rows), file, compression="zstd")
    return file.getvalue()


def _from_parquet(file: DataPath) -> Keys:
    rows = read_table(file)
    return {
        what: rows.filter(pc.equal(rows["what"], what)).select(_KEY_AND_VALUE.names)
        for what in rows["what"].unique().to_pylist()
    }


@dataclass(frozen=True, slots=True)
class _Differences:
    """Keys that were added, removed or changed; an unknown value counts as unchanged."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def _differences(before: Keys, now: Keys, what: str) -> _Differences:
    if what not in now:  # the run failed above it
        return _Differences()
    old, new = before.get(what, _KEY_AND_VALUE.empty_table()), now[what]
    both = old.join(new, "key", join_type="inner", right_suffix="_now")
    return _Differences(
        added=_keys_without(new, old),
        changed=both.filter(pc.not_equal(both["value"], both["value_now"]))["key"].to_pylist(),
        removed=_keys_without(old, new),
    )


def _keys_without(rows: pa.Table, others: pa.Table) -> list[str]:
    """The keys that the others do not have."""
    absent = pc.invert(pc.is_in(rows["key"], others["key"].combine_chunks()))
    keys: list[str] = rows["key"].filter(absent).to_pylist()
    return keys


def _compare(before: Keys, now: Keys) -> ChangeCounts:
    pages, passages = _differences(before, now, "page"), _differences(before, now, "passage")
    changed = {*pages.changed, *_differences(before, now, "version").changed}
    papers, status, runs = (_as_mapping(now, what) for what in ("page", "status", "embedding run"))
    withdrawn = sum(status.get(paper) == "withdrawn" for paper in pages.removed)
    return ChangeCounts(
        papers_new=len(pages.added),
        papers_revised=len(changed & papers.keys()),
        papers_withdrawn=withdrawn,
        papers_removed=len(pages.removed) - withdrawn,
        passages_added=len(passages.added),
        passages_changed=len(passages.changed),
        passages_removed=len(passages.removed),
        vectors_made=sum(
            int(runs[run] or 0) for run in _differences(before, now, "embedding run").added
        ),
    )


def _as_mapping(keys: Keys, what: str) -> dict[str, str | None]:
    rows = keys.get(what, _KEY_AND_VALUE.empty_table())
    return dict(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))
