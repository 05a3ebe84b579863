"""The table `changes`: a month's papers as a refresh left them, compared with the refresh before.

The table also holds what the next comparison needs, so that the report and its basis are one file, whole or absent. It
is not a stage of `citeloom run`: changes are counted from refresh to refresh, however many runs lie between.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pipeline import tables
from pipeline.engine.failures import forget_failure
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import CiteloomError
from pipeline.ops.refresh.compare import DIGEST_BYTES, Counts, PaperState, compare
from pipeline.ops.refresh.plan import out_of_date
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import Row

# Two years of monthly refreshes.
_MOST_HISTORY = 24
_DESCRIBED = (
    "title", "authors", "abstract", "categories", "primary_category", "doi", "journal_ref", "comment", "status",
)  # fmt: skip


def _build(job: Job, *, baseline: bool = False) -> Iterator[Row]:
    """Rows of `changes`. Where no paper and no vector changed, the last rows stay, since a reader wants to see the last
    change, and only what is out of date is determined again. baseline: compare the month with itself."""
    from pipeline.ops.refresh.page import write_month_page

    previous = _previous(job)
    vectors = _vectors(job)
    now, withdrawn = _states_now(job)
    before = now if baseline else _states_before(job) if previous else {}
    same_model = baseline or (previous is not None and previous.notes.get("vectors") == vectors)
    counts = Counts()
    rows: list[Row] = []
    for row in compare(before, now, withdrawn, same_model=same_model):
        counts.add(row)
        rows.append(row)
    if previous is not None and not counts.any_change:
        job.notes |= previous.notes
        rows = list(job.rows(tables.CHANGES))
    else:
        job.notes |= {"vectors": vectors, **_refresh_notes(counts, previous, baseline=baseline)}
    job.notes["out_of_date"] = out_of_date(job.workspace, job.month)
    job.afterwards.append(lambda: write_month_page(job.workspace, job.month))
    yield from rows


def _refresh_notes(counts: Counts, previous: Provenance | None, *, baseline: bool) -> dict[str, Any]:
    notes = {"refreshed_at": datetime.now(UTC).isoformat(timespec="microseconds"), **asdict(counts)}
    history = [*(previous.notes["history"] if previous else []), *([] if baseline else [notes])]
    return {**notes, "history": history[-_MOST_HISTORY:]}


def _previous(job: Job) -> Provenance | None:
    """The provenance of the last refresh; None where there was none, or another version of citeloom made it."""
    try:
        written = read_provenance(job.workspace.root.file(tables.CHANGES, job.month))
    except CiteloomError:
        return None
    return written if written and written.schema_version == tables.CHANGES.version else None


def _states_before(job: Job) -> dict[str, PaperState]:
    columns = ["arxiv_id", "version", "html_sha256", "metadata_sha256", "passages_sha256", "texts_sha256"]
    return {
        row["arxiv_id"]: PaperState(*(row[name] for name in columns[1:]))
        for row in job.iterate(tables.CHANGES, columns)
        if row["html_sha256"] is not None
    }


def _states_now(job: Job) -> tuple[dict[str, PaperState], set[str]]:
    """The papers of the month, and those that arXiv calls withdrawn."""
    described = {
        row["arxiv_id"]: (row["version"], _digest_of(row), row["status"])
        for row in job.iterate(tables.METADATA, ["arxiv_id", "version", *_DESCRIBED])
    }
    passages, texts = _passages(job)
    states = {}
    for row in job.iterate(tables.PAPERS, ["arxiv_id", "html_sha256"]):
        name = row["arxiv_id"]
        version, digest, _ = described.get(name, (None, "", ""))
        states[name] = PaperState(version, row["html_sha256"], digest, bytes(passages[name]), bytes(texts[name]))
    return states, {name for name, (_, _, status) in described.items() if status == "withdrawn"}


def _digest_of(described: Mapping[str, Any]) -> str:
    fields = [described[name] for name in _DESCRIBED]
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False).encode()).hexdigest()


def _passages(job: Job) -> tuple[Mapping[str, bytearray], Mapping[str, bytearray]]:
    """By paper: digests of its passages, and of their texts; 24 bytes a passage, 24 MB for a month of 1,000,000."""
    passages: dict[str, bytearray] = defaultdict(bytearray)
    texts: dict[str, bytearray] = defaultdict(bytearray)
    for row in job.iterate(tables.PASSAGES, ["arxiv_id", "passage_id", "text_sha256"]):
        both = f"{row['passage_id']} {row['text_sha256']}".encode()
        passages[row["arxiv_id"]] += hashlib.sha256(both).digest()[:DIGEST_BYTES]
        texts[row["arxiv_id"]] += bytes.fromhex(row["text_sha256"])[:DIGEST_BYTES]
    return passages, texts


def _vectors(job: Job) -> str:
    """What the month's vectors are made by: while it is the same, vectors of unchanged texts are reused."""
    written = read_provenance(job.workspace.root.file(tables.EMBEDDINGS, job.month))
    if written is None:
        return ""
    made = (written.notes.get("model", ""), written.inputs.get("vectors", ""), str(written.stage_version))
    return "; ".join(made)


def _has_page(workspace: Workspace, month: str, written: Provenance) -> bool:
    from pipeline.ops.refresh.page import has_page

    return has_page(workspace, month)


def _out_of_date(workspace: Workspace, month: str) -> Mapping[str, str]:
    return _marks(out_of_date(workspace, month))


def _marks(stale: Iterable[str]) -> Mapping[str, str]:
    return {"out of date": ", ".join(sorted(stale))}


CHANGES = Stage(
    table=tables.CHANGES,
    build=_build,
    upstream=(tables.METADATA, tables.PAPERS, tables.PASSAGES, tables.EMBEDDINGS, tables.INDEX_RECEIPTS),
    inputs=_out_of_date,
    outputs_exist=_has_page,
)


def is_stale(workspace: Workspace, month: str, out_of_date: Iterable[str]) -> bool:
    """Whether a month of `changes` is there and out of date. out_of_date: the month's tables of language models that
    are, which the caller already knows: finding them takes longer than everything else."""
    with_known_inputs = replace(CHANGES, inputs=lambda workspace, month: _marks(out_of_date))
    return state(with_known_inputs, workspace, month) is State.STALE


def is_whole(workspace: Workspace, month: str) -> bool:
    """Whether a month has all the tables that are compared."""
    return all(workspace.root.file(table, month).exists() for table in CHANGES.upstream)


def take_baseline(workspace: Workspace, months: Sequence[str]) -> None:
    """Record the present state of months that no refresh has compared yet, before they are run again: otherwise all of
    their papers would count as new. A month that is not whole has nothing to be compared with."""
    for month in months:
        if is_whole(workspace, month) and not workspace.root.file(tables.CHANGES, month).exists():
            try:
                run_stage(replace(CHANGES, build=partial(_build, baseline=True)), workspace, month)
            except CiteloomError:
                forget_failure(workspace, CHANGES.name, month)
