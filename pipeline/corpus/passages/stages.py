"""The stage `passages`: papers to passages by Arrow batches, a row group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipeline.corpus.passages.packing import (
    FEWEST_WORDS,
    MOST_CHARACTERS,
    MOST_WORDS,
    pack,
    with_ids,
)
from pipeline.corpus.passages.text import FORM, embedded_text
from pipeline.engine.stage import CheckResult, Job, MonthCheck, Stage, Workspace
from pipeline.errors import PermanentFailure
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import PAPERS
from pipeline.tables import PASSAGES as PASSAGES_TABLE
from pipeline.text import text_digest

if TYPE_CHECKING:
    from pipeline.corpus.pages import LeftOut

PAPER_COLUMNS = ["arxiv_id", "title", "authors", "abstract", "categories", "blocks"]
# Processor time of one paper, in seconds; 100 papers take 0.1 s.
_PAPER_SECONDS = 10.0
# If so many papers fail and none is packed, the machine or the code is at fault.
_FIRST_PAPERS = 20


class PackedPapers(NamedTuple):
    """Rows of `passages`, and what was left out: papers, and passages that are too long."""

    passages: pa.RecordBatch
    left_out: list[LeftOut]


def pack_batch(papers: pa.RecordBatch) -> PackedPapers:
    """The passages of papers, in their order: PAPER_COLUMNS of `papers` in, rows of `passages` out.

    A fault costs its paper alone; in a worker process, so do too much time and memory.
    """
    from pipeline.corpus.pages import RowBuilder
    from pipeline.engine.process_pool import time_limit

    rows = RowBuilder(PASSAGES_TABLE.schema, "packing_error")
    for number, arxiv_id in enumerate(papers["arxiv_id"].to_pylist()):
        with rows.leaving_out(arxiv_id, "its passages"):
            with time_limit(_PAPER_SECONDS):
                (paper,) = papers.slice(number, 1).to_pylist()
                passages = list(_passage_rows(paper))
            short: list[Row] = []
            too_long: list[LeftOut] = []
            for passage in passages:
                # With the titles above it, which each passage repeats.
                texts = (passage["text"], passage["title"] or "", *passage["section_path"])
                length = sum(map(len, texts))
                if length <= MOST_CHARACTERS:
                    short.append(passage)
                else:
                    detail = f"{passage['anchor']}: {length:,} characters"
                    too_long.append((arxiv_id, "passage_too_long", detail))
            rows.add(*short)
            rows.left_out += too_long
    return PackedPapers(rows.batch(), rows.left_out)


def _passage_rows(paper: Row) -> Iterator[Row]:
    arxiv_id, title = paper["arxiv_id"], paper["title"]
    for ordinal, (identifier, passage) in enumerate(with_ids(arxiv_id, pack(paper))):
        yield {
            "passage_id": identifier,
            "arxiv_id": arxiv_id,
            "title": title,
            "ordinal": ordinal,
            "text_sha256": text_digest(embedded_text(title, passage.section_path, passage.text)),
            **passage._asdict(),
        }


def _pack_month(job: Job) -> Iterator[pa.RecordBatch]:
    """The passages of each row group of papers, in order.

    Workers read their row groups themselves: handed over, 100 papers are 10 MB to pickle and back.
    An item of a chunk is (row group, row), so that a paper that ends its worker is lost alone.
    """
    from pipeline.engine.process_pool import LostItem, count_workers, map_chunks

    root, workers = job.workspace.root, count_workers(job.settings.workers)
    sizes = root.group_sizes(PAPERS, job.month)
    chunks = ([(group, row) for row in range(size)] for group, size in enumerate(sizes))
    pack_rows = partial(_pack_rows, root, job.month)
    packed = 0
    for chunk, answer in map_chunks(pack_rows, chunks, workers):
        if isinstance(answer, LostItem):
            ((group, row),) = chunk
            arxiv_id = root.group(PAPERS, job.month, group, ["arxiv_id"])["arxiv_id"][row].as_py()
            job.leave_out(arxiv_id, answer.reason, answer.describe(_PAPER_SECONDS))
            continue
        for left_out in answer.left_out:
            job.leave_out(*left_out)
        packed += answer.passages.num_rows
        yield answer.passages
    if not packed and len(job.ledger) >= _FIRST_PAPERS:
        first = job.ledger[0]
        raise PermanentFailure(
            f"all {len(job.ledger):,} papers of {job.month} failed, so the fault is not theirs:"
            f" {first['subject']}, {first['reason']}: {first['detail']}"
        )


def _pack_rows(root: DataRoot, month: str, chunk: Sequence[tuple[int, int]]) -> PackedPapers:
    """The passages of some papers of one row group of a month."""
    papers = root.group(PAPERS, month, chunk[0][0], PAPER_COLUMNS)
    return pack_batch(papers.slice(chunk[0][1], len(chunk)))


def every_paper_has_passages(workspace: Workspace, month: str) -> CheckResult:
    """Every paper of the month has a passage, or is in the ledger with its reason."""
    root = workspace.root
    papers = set(root.read(PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    with_passages = set(root.read(PASSAGES_TABLE, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    without = papers - with_passages
    if without:
        ledger = root.ledger(PASSAGES_TABLE.name, month, ["subject"])
        without -= set(ledger["subject"].to_pylist())
    return CheckResult(
        not without and with_passages <= papers,
        {"papers": len(papers), "without": sorted(without)},
    )


class Passages(Stage):
    """Passages of 20 to 300 words with title and section path: short neighbours of one section are
    packed, long ones split at sentence ends.
    """

    table = PASSAGES_TABLE
    upstream = (PAPERS,)
    former_settings = {"embedded_form": FORM}  # noqa: RUF012
    version = 5
    checks = (MonthCheck(every_paper_has_passages, blocking=True),)

    def build(self, job: Job) -> Iterator[pa.RecordBatch]:
        kinds: Counter[str] = Counter()
        lengths: Counter[str] = Counter(under_20_words=0, over_300_words=0)
        for passages in _pack_month(job):
            words = passages["words"].to_pylist()
            kinds.update(passages["kind"].to_pylist())
            lengths["under_20_words"] += sum(count < FEWEST_WORDS for count in words)
            lengths["over_300_words"] += sum(count > MOST_WORDS for count in words)
            yield passages
        job.notes.update(kinds=dict(sorted(kinds.items())), **lengths)


PASSAGES = Passages()
