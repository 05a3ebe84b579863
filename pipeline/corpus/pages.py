"""Chunks of pages as rows of `papers`: read, parsed, graded. Runs in worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pipeline.arxiv.person_names import count_differences
from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.corpus.parse.paper import Author, PageError, Paper
from pipeline.corpus.quality import Quality, apply_error_policy, grade
from pipeline.engine.process_pool import time_limit
from pipeline.storage.writing import Row
from pipeline.tables import PAPERS

Parse = Callable[[bytes, Sequence[str]], Paper]
"""From a page's bytes and the names of its authors, as metadata has them, to its Paper."""
LeftOut = tuple[str, str, str]
"""Identifier, reason and detail of a page that gave no row."""


@dataclass(frozen=True, slots=True)
class SelectedPage:
    """A page to be parsed, and what metadata says of its paper."""

    member: Member
    title: str | None
    abstract: str | None
    categories: tuple[str, ...]
    primary_category: str | None
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParseJob:
    """How the pages of a month are parsed.

    page_errors: the policy CITELOOM_PAGE_ERRORS. page_seconds: processor time that one page may take to parse.
    year: of the month.
    """

    dump_dir: Path | str
    parse: Parse
    page_errors: str
    page_seconds: float
    year: int


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """The result of a chunk.

    rows: record batches of `papers` as an Arrow stream. bytes_read: packed bytes, as in the zips. parsing_seconds:
    processor time from a page's bytes to its Paper.
    """

    rows: bytes
    left_out: tuple[LeftOut, ...]
    pages: int
    bytes_read: int
    parsing_seconds: float

    def batches(self) -> list[pa.RecordBatch]:
        """The rows, in the order of the chunk."""
        return list(pa.ipc.open_stream(self.rows))


def parse_pages(job: ParseJob, chunk: Sequence[SelectedPage]) -> ParsedChunk:
    """Read the pages of a chunk in the order in which they lie in their zips; rows come in the order of the chunk.

    Raises MissingInput where a zip is gone, TransientFailure where a store does not answer.
    """
    rows: dict[str, Row] = {}
    left_out: list[LeftOut] = []
    parsing_seconds = 0.0
    in_file_order = sorted(chunk, key=lambda page: (page.member.zip, page.member.offset))
    with MemberReader(job.dump_dir) as reader:
        reader.plan(page.member for page in in_file_order)
        for page in in_file_order:
            try:
                content = reader.read(page.member)
                started = time.process_time()
                try:
                    paper = _parse(job, content, page.authors)
                finally:
                    parsing_seconds += time.process_time() - started
                rows[page.member.arxiv_id] = _row(page, apply_error_policy(job.page_errors, paper), grade(paper), job)
            except (MemberError, PageError) as error:
                left_out.append(_left_out(page, error.reason, error.detail))
            except MemoryError:
                detail = "it needs more memory than a worker may take; on another machine it may succeed"
                left_out.append(_left_out(page, "out_of_memory", detail))
    batches, errors = _to_batches([rows[page.member.arxiv_id] for page in chunk if page.member.arxiv_id in rows])
    refused = [page for page in chunk if page.member.arxiv_id in errors]
    left_out += [_left_out(page, "parser_error", errors[page.member.arxiv_id]) for page in refused]
    count = sum(batch.num_rows for batch in batches)
    return ParsedChunk(_as_stream(batches), tuple(sorted(left_out)), count, reader.bytes_read, parsing_seconds)


def _parse(job: ParseJob, content: bytes, authors: Sequence[str]) -> Paper:
    """The paper of a page; ends this worker where a page takes too long. Raises PageError or MemoryError, only."""
    try:
        with time_limit(job.page_seconds):
            return job.parse(content, authors)
    except (PageError, MemoryError):
        raise
    except Exception as error:
        raise PageError("parser_error", _describe(error)) from error


def _row(page: SelectedPage, paper: Paper, quality: Quality, job: ParseJob) -> Row:
    """A row of `papers`: what the page says, and metadata where it says nothing."""
    title, abstract = paper.title or page.title, paper.abstract or page.abstract
    authors = paper.authors or tuple(map(Author, page.authors))
    return {
        **paper.as_row(),
        "arxiv_id": page.member.arxiv_id,
        "subset": page.member.subset,
        "title": title,
        "title_source": "heading" if paper.title else "metadata" if title else "none",
        "authors": [author.as_row() for author in authors],
        "authors_source": "page" if paper.authors else "metadata" if authors else "none",
        "authors_differ": count_differences([author.name for author in authors], page.authors),
        "abstract": abstract,
        "abstract_source": "page" if paper.abstract else "metadata" if abstract else "none",
        "categories": page.categories,
        "primary_category": page.primary_category,
        "year": job.year,
        "grade": quality.grade,
        "grade_reasons": quality.reasons,
    }


def _to_batches(rows: list[Row]) -> tuple[list[pa.RecordBatch], dict[str, str]]:
    """Rows as record batches; errors, by identifier, of rows that Arrow refuses, as it does text that is not Unicode.

    0.07 ms a page; columns built from flat lists by hand took 0.05, parsing takes 2 to 4.
    """
    try:
        return ([pa.RecordBatch.from_pylist(rows, PAPERS.schema)] if rows else []), {}
    except Exception:
        batches, errors = [], {}
        for row in rows:
            try:
                batches.append(pa.RecordBatch.from_pylist([row], PAPERS.schema))
            except Exception as error:
                errors[row["arxiv_id"]] = _describe(error)
        return batches, errors


def _as_stream(batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, PAPERS.schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _left_out(page: SelectedPage, reason: str, detail: str) -> LeftOut:
    return page.member.arxiv_id, reason, f"{page.member.place}: {detail}"


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
