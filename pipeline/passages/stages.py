"""The stage `passages`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from pipeline import tables
from pipeline.engine.process_pool import LostItem, count_workers, map_chunks
from pipeline.engine.stage import Job, Stage
from pipeline.errors import TransientFailure
from pipeline.passages.batch import passages_of_chunk
from pipeline.passages.pack import FEWEST_WORDS, MOST_WORDS


def _build(job: Job) -> Iterator[pa.RecordBatch]:
    kinds: Counter[str] = Counter()
    lengths: Counter[str] = Counter(under_20_words=0, over_300_words=0)
    for passages in _packed(job):
        words = passages["words"].to_pylist()
        kinds.update(passages["kind"].to_pylist())
        lengths["under_20_words"] += sum(count < FEWEST_WORDS for count in words)
        lengths["over_300_words"] += sum(count > MOST_WORDS for count in words)
        yield passages
    job.notes.update(kinds=dict(sorted(kinds.items())), **lengths)


def _packed(job: Job) -> Iterator[pa.RecordBatch]:
    """The passages of each row group of papers, in order.

    A month of one row group is packed here: 100 papers take 0.1 s, no longer than a worker takes to start. Workers
    read their groups themselves: handed over, 100 papers are 10 MB to pickle and back.
    """
    root, workers = job.workspace.root, count_workers(job.settings.workers)
    groups = range(root.count_groups(tables.PAPERS, job.month))
    pack_chunk = partial(passages_of_chunk, root, job.month, job.settings.embedded_form)
    if len(groups) < 2 or workers == 1:
        yield from (pack_chunk([group]) for group in groups)
        return
    for chunk, passages in map_chunks(pack_chunk, ([group] for group in groups), workers):
        if isinstance(passages, LostItem):
            begins = root.group(tables.PAPERS, job.month, chunk[0], ["arxiv_id"])["arxiv_id"]
            raise TransientFailure(
                f"the worker that packed {len(begins)} papers of {job.month}, {begins[0]} first, did not end its "
                f"work ({passages.detail}): run again, with fewer CITELOOM_WORKERS if memory is short"
            )
        yield passages


PASSAGES = Stage(table=tables.PASSAGES, build=_build, upstream=(tables.PAPERS,), settings=("embedded_form",), version=3)
