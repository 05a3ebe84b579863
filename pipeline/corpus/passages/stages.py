"""The stage `passages`: papers to passages by Arrow batches, a row group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from pipeline.corpus.passages.packing import FEWEST_WORDS, MOST_WORDS, pack, with_ids
from pipeline.corpus.passages.text import Form, embedded_text, text_digest
from pipeline.engine.stage import CheckResult, Job, MonthCheck, Stage, Workspace
from pipeline.errors import TransientFailure
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import PAPERS
from pipeline.tables import PASSAGES as PASSAGES_TABLE

PAPER_COLUMNS = ["arxiv_id", "title", "authors", "abstract", "categories", "blocks"]


def pack_batch(papers: pa.RecordBatch, form: Form = "sections") -> pa.RecordBatch:
    """The passages of papers, in their order: PAPER_COLUMNS of `papers` in, rows of `passages` out.

    form: of the texts that will be embedded, whose digests the rows hold.
    """
    rows = list(chain.from_iterable(_passage_rows(paper, form) for paper in papers.to_pylist()))
    return pa.RecordBatch.from_pylist(rows, PASSAGES_TABLE.schema)


def _passage_rows(paper: Row, form: Form) -> Iterator[Row]:
    arxiv_id, title = paper["arxiv_id"], paper["title"]
    for ordinal, (identifier, passage) in enumerate(with_ids(arxiv_id, pack(paper))):
        yield {
            "passage_id": identifier,
            "arxiv_id": arxiv_id,
            "title": title,
            "ordinal": ordinal,
            "text_sha256": text_digest(
                embedded_text(title, passage.section_path, passage.text, form)
            ),
            **passage._asdict(),
        }


def _build(job: Job) -> Iterator[pa.RecordBatch]:
    kinds: Counter[str] = Counter()
    lengths: Counter[str] = Counter(under_20_words=0, over_300_words=0)
    for passages in _pack_month(job):
        words = passages["words"].to_pylist()
        kinds.update(passages["kind"].to_pylist())
        lengths["under_20_words"] += sum(count < FEWEST_WORDS for count in words)
        lengths["over_300_words"] += sum(count > MOST_WORDS for count in words)
        yield passages
    job.notes.update(kinds=dict(sorted(kinds.items())), **lengths)


def _pack_month(job: Job) -> Iterator[pa.RecordBatch]:
    """The passages of each row group of papers, in order.

    A month of one row group is packed in this process: 100 papers take 0.1 s, no longer than a
    worker takes to start. Workers read their row groups themselves: handed over, 100 papers are 10
    MB to pickle and back.
    """
    from pipeline.engine.process_pool import LostItem, count_workers, map_chunks

    root, workers = job.workspace.root, count_workers(job.settings.workers)
    groups = range(root.count_groups(PAPERS, job.month))
    pack_group = partial(_pack_row_group, root, job.month, job.settings.embedded_form)
    if len(groups) < 2 or workers == 1:
        yield from (pack_group([group]) for group in groups)
        return
    for chunk, passages in map_chunks(pack_group, ([group] for group in groups), workers):
        if isinstance(passages, LostItem):
            papers = root.group(PAPERS, job.month, chunk[0], ["arxiv_id"])["arxiv_id"]
            raise TransientFailure(
                f"a worker died while it packed {len(papers)} papers of {job.month},"
                f" {papers[0]} first ({passages.detail}): run again, with fewer CITELOOM_WORKERS if"
                " memory is short"
            )
        yield passages


def _pack_row_group(root: DataRoot, month: str, form: Form, chunk: Sequence[int]) -> pa.RecordBatch:
    """The passages of one row group of a month of `papers`; `chunk` holds its number."""
    (group,) = chunk
    return pack_batch(root.group(PAPERS, month, group, PAPER_COLUMNS), form)


def _every_paper_has_passages(workspace: Workspace, month: str) -> CheckResult:
    papers = set(workspace.root.read(PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    with_passages = set(
        workspace.root.read(PASSAGES_TABLE, month, ["arxiv_id"])["arxiv_id"].to_pylist()
    )
    return CheckResult(
        papers == with_passages, {"papers": len(papers), "without": sorted(papers - with_passages)}
    )


PASSAGES = Stage(
    table=PASSAGES_TABLE,
    build=_build,
    upstream=(PAPERS,),
    settings=("embedded_form",),
    version=5,
    group="corpus",
    description=(
        "Passages of 20 to 300 words with title and section path: short neighbours of one"
        " section are packed, long ones split at sentence ends."
    ),
    checks=(
        MonthCheck(
            "every_paper_has_passages",
            "Every paper of the month has at least one passage.",
            _every_paper_has_passages,
            blocking=True,
        ),
    ),
)
