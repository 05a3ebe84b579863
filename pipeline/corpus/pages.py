"""A chunk of pages as rows of `papers`: read, parsed, graded. Runs in a worker process, so it knows no stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from upath import UPath

from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.corpus.error_policy import apply_policy
from pipeline.corpus.paper import PageError, Paper
from pipeline.corpus.quality import Quality, grade
from pipeline.engine.process_pool import time_limit
from pipeline.storage.writing import Row
from pipeline.tables import PAPERS

Parse = Callable[[bytes], Paper]
LeftOut = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A page to be read, and what metadata says of its paper."""

    member: Member
    title: str | None
    abstract: str | None
    categories: tuple[str, ...]
    primary_category: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """How pages are read. `page_seconds`: processor time that one page may take to parse. `year`: of the month."""

    dump_dir: Path | UPath
    parse: Parse
    page_errors: str
    page_seconds: float
    year: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """What came of a chunk.

    rows: record batches of `papers` as an Arrow stream. left_out: (identifier, reason, detail) of each page that gave
    no row. bytes_read: as they lie in the zips. parsing_seconds: processor time from a page's bytes to its Paper.
    """

    rows: bytes
    left_out: tuple[LeftOut, ...]
    pages: int
    bytes_read: int
    parsing_seconds: float

    def batches(self) -> list[pa.RecordBatch]:
        """The rows, in the order of the chunk."""
        return list(pa.ipc.open_stream(self.rows))


@dataclass(frozen=True, slots=True)
class _Graded:
    """A paper as it goes on, with the grade of its page."""

    page: Wanted
    paper: Paper
    quality: Quality


def parse_pages(reading: Reading, chunk: Sequence[Wanted]) -> Parsed:
    """Read the pages of a chunk in the order in which they lie in their zips; rows come in the order of the chunk.

    Raises MissingInput where a zip is gone, TransientFailure where a store does not answer.
    """
    parse = _Stopwatch(reading.parse, reading.page_seconds)
    found: dict[str, _Graded] = {}
    left_out: list[LeftOut] = []
    in_file_order = sorted(chunk, key=lambda page: (page.member.zip, page.member.offset))
    with MemberReader(reading.dump_dir) as reader:
        reader.plan(page.member for page in in_file_order)
        for page in in_file_order:
            try:
                paper = parse(reader.read(page.member))
                found[page.member.arxiv_id] = _graded(page, paper, reading.page_errors)
            except (MemberError, PageError) as error:
                left_out.append(_left_out(page, error.reason, error.detail))
            except MemoryError:
                left_out.append(
                    _left_out(
                        page,
                        "out_of_memory",
                        "a worker may not take as much as it needs; on another machine it may go well",
                    )
                )
        bytes_read = reader.bytes_read
    in_order = [found[page.member.arxiv_id] for page in chunk if page.member.arxiv_id in found]
    stream, refused = _as_stream(in_order, reading.year)
    return Parsed(stream, tuple(sorted(left_out + refused)), len(found) - len(refused), bytes_read, parse.seconds)


@dataclass(slots=True)
class _Stopwatch:
    """A parser that counts the processor time it takes, ends its worker where one page takes too much, and raises
    nothing but PageError and MemoryError."""

    parse: Parse
    most_seconds: float
    seconds: float = 0.0

    def __call__(self, content: bytes) -> Paper:
        started = time.process_time()
        try:
            with time_limit(self.most_seconds):
                return self.parse(content)
        except (PageError, MemoryError):
            raise
        except Exception as error:
            raise PageError("parser_error", _in_words(error)) from error
        finally:
            self.seconds += time.process_time() - started


def _graded(page: Wanted, paper: Paper, policy: str) -> _Graded:
    """A paper with the grade of its page. Raises PageError where the policy on errors drops it."""
    return _Graded(page, apply_policy(policy, paper), grade(paper))


def _as_stream(found: Sequence[_Graded], year: int) -> tuple[bytes, list[LeftOut]]:
    """Papers as an Arrow stream, and those that Arrow cannot take, because their text is no Unicode, say."""
    refused: list[LeftOut] = []
    try:
        batches = [_batch(found, year)] if found else []
    except Exception:
        batches = []
        for one in found:
            try:
                batches.append(_batch([one], year))
            except Exception as error:
                refused.append(_left_out(one.page, "parser_error", _in_words(error)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, PAPERS.schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return sink.getvalue().to_pybytes(), refused


def _batch(found: Sequence[_Graded], year: int) -> pa.RecordBatch:
    """Rows of `papers`. 0.07 ms a page; columns built from flat lists by hand took 0.05, parsing takes 2 to 4."""
    rows = [{**one.paper.as_row(), **_told(one, year)} for one in found]
    return pa.RecordBatch.from_pylist(rows, PAPERS.schema)


def _told(one: _Graded, year: int) -> Row:
    """The columns of `papers` that the page alone does not decide."""
    page, paper = one.page, one.paper
    title, abstract = paper.title or page.title, paper.abstract or page.abstract
    return {
        "arxiv_id": page.member.arxiv_id,
        "subset": page.member.subset,
        "title": title,
        "title_source": "heading" if paper.title else "metadata" if title else "none",
        "abstract": abstract,
        "abstract_source": "page" if paper.abstract else "metadata" if abstract else "none",
        "categories": page.categories,
        "primary_category": page.primary_category,
        "year": year,
        "grade": one.quality.grade,
        "grade_reasons": one.quality.reasons,
    }


def _left_out(page: Wanted, reason: str, detail: str) -> LeftOut:
    return page.member.arxiv_id, reason, f"{page.member.place}: {detail}"


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
