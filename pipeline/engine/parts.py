"""Stages whose months have parts, such as one per writer; only changed parts are computed again.

The fingerprint of each part is in the notes of the month's file. A part whose fingerprint is still
the same is copied from that file with its entries in the ledger; the others are built; parts that
are no longer wanted are left out.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.engine.run_stats import StageTiming, note_timing
from pipeline.engine.stage import FAILED_REQUESTS, Job, MonthPart, Stage, Workspace
from pipeline.errors import MissingInput
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import Row
from pipeline.system_names import name_in_digests
from pipeline.text import text_digest


def fingerprint_of(part: MonthPart, workspace: Workspace, month: str) -> str:
    """SHA-256 of everything that the rows of a part depend on. Raises MissingInput without a table
    that it reads.
    """
    digests = {}
    for table, name in part.reads:
        provenance = workspace.root.provenance(table, month)
        if provenance is None:
            raise MissingInput(
                f"{table.name} of {month} is not in {workspace.root.path}: "
                f"run citeloom run --months {month} --until {table.name}"
            )
        digest = provenance.rows_sha256
        if name is not None:
            parts = provenance.notes.get("parts", {})
            digest = str(parts.get(name, {}).get("rows_sha256", "absent"))
        digests[f"{table.name} {name or ''}"] = digest
    basis = [
        name_in_digests(part.name),
        part.version,
        dict(part.settings),
        dict(part.inputs),
        digests,
    ]
    return text_digest(json.dumps(basis, sort_keys=True, default=str))


def failed_requests(written: Provenance) -> Counter[str]:
    """How many requests to language models a month and its parts had no answer to, by kind."""
    notes = [written.notes, *(part["notes"] for part in written.notes.get("parts", {}).values())]
    return sum((Counter(each.get(FAILED_REQUESTS, {})) for each in notes), Counter[str]())


def _earlier(job: Job) -> Mapping[str, Mapping[str, Any]]:
    stage = job.stage
    provenance = job.workspace.root.provenance(stage.table, job.month)
    if provenance is None or (provenance.schema_version, provenance.stage_version) != (
        stage.table.version,
        stage.version,
    ):
        return {}
    parts: Mapping[str, Mapping[str, Any]] = provenance.notes.get("parts", {})
    return parts


class PartedStage(Stage):
    """A stage whose months are built of parts, in place of settings and inputs, and of upstream
    tables where only some parts read them.
    """

    def parts(self, workspace: Workspace, month: str) -> list[MonthPart]:
        """The parts of a month, in the order of their rows."""
        raise NotImplementedError

    def fingerprints(self, workspace: Workspace, month: str) -> dict[str, str]:
        """Name of a part → its fingerprint. Raises MissingInput as `fingerprint_of` does."""
        parts = self.parts(workspace, month)
        return {part.name: fingerprint_of(part, workspace, month) for part in parts}

    def build(self, job: Job) -> Iterator[Row | pa.RecordBatch]:
        """The rows of all parts; those of unchanged parts are copied."""
        earlier = {} if job.force else _earlier(job)
        entries = _earlier_entries(job, earlier)
        records: dict[str, Mapping[str, Any]] = {}
        job.notes["parts"] = records
        for part in self.parts(job.workspace, job.month):
            fingerprint = fingerprint_of(part, job.workspace, job.month)
            before = earlier.get(part.name)
            if (
                part.columns is not None
                and before is not None
                and before["fingerprint"] == fingerprint
                and not before["notes"].get(FAILED_REQUESTS)
            ):
                records[part.name] = before
                job.ledger += entries[part.name]
                yield from _batches_of(part, job)
            else:
                record: dict[str, Any] = {"fingerprint": fingerprint}
                records[part.name] = record
                yield from _build(job, part, record)


def _earlier_entries(job: Job, earlier: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Row]]:
    """Name of a part → its entries in the ledger of the month's file: those whose subject ends with
    the name, of two names that fit with the longer.
    """
    entries: dict[str, list[Row]] = {name: [] for name in earlier}
    if not entries:
        return {}
    for row in job.workspace.root.ledger(job.stage.name, job.month).to_pylist():
        names = [name for name in entries if row["subject"].endswith(f" {name}")]
        if names:
            entries[max(names, key=len)].append(row)
    return entries


def _batches_of(part: MonthPart, job: Job) -> Iterator[pa.RecordBatch]:
    condition = None
    for column, value in (part.columns or {}).items():
        same = pc.field(column).is_null() if value is None else pc.field(column) == value
        condition = same if condition is None else condition & same
    for batch in job.workspace.root.batches(job.stage.table, job.month):
        rows = pa.Table.from_batches([batch]).filter(condition) if condition is not None else batch
        yield from rows.to_batches()


def _build(job: Job, part: MonthPart, record: dict[str, Any]) -> Iterator[Row]:
    """Build a part's rows; file what the build notes, measures and leaves out under its name."""
    digest, rows, started = hashlib.sha256(), 0, time.perf_counter()
    own = replace(job, ledger=[], notes={}, measured={})
    for row in part.build(own):
        digest.update(json.dumps(row, sort_keys=True).encode())
        rows += 1
        yield row
    record |= {"rows": rows, "rows_sha256": digest.hexdigest(), "notes": own.notes}
    job.ledger += [{**entry, "subject": f"{entry['subject']} {part.name}"} for entry in own.ledger]
    job.measure(own.measured)
    timing = StageTiming(record["fingerprint"], time.perf_counter() - started, own.measured)
    name = statistics_name(job.stage.name, part.name)
    job.afterwards.append(partial(note_timing, job.workspace.root, name, job.month, timing))


def statistics_name(stage: str, part: str) -> str:
    """The name under which `run_stats` keeps the figures of a part."""
    return f"{stage}/{quote(part, safe='@')}"
