"""Select the pages of a month; read, parse and grade them in worker processes."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.corpus.parse.parsed_page import UNLINKED, Author, PageError, ParsedPage
from pipeline.corpus.passages.text import count_words
from pipeline.engine.process_pool import time_limit
from pipeline.errors import CiteloomError, PermanentFailure
from pipeline.identity.titles import decode_tex, title_words
from pipeline.storage.writing import Row
from pipeline.tables import DUMP_MEMBERS, GRADES, METADATA, PAPERS
from pipeline.text import clip, one_line

if TYPE_CHECKING:
    from pipeline.engine.stage import Job
    from pipeline.settings import Settings

Parse = Callable[[bytes, Sequence[str]], ParsedPage]
"""From a page's bytes and the names of its authors, as metadata has them, to what was parsed."""
LeftOut = tuple[str, str, str]
"""Id or place, reason and detail of a page that gave no row."""

# Where B, C and D begin. A bound that is never reached means that the fact alone cannot lower the
# grade so far.
_FLAWS_PER_1000_WORDS = (1.0, 5.0, 20.0)
_SHARE_OF_CITATIONS_MISSING = (0.05, 0.5, 2.0)
_SHARE_OF_TEXT_LOST = (0.1, 0.25, 0.5)
# Phantoms of a formula come to 36 characters in one real page; a sentence meant for no human reader
# has more than 200.
_HIDDEN_CHARACTERS = (200, float("inf"), float("inf"))
_FEWEST_WORDS = 100
# A page of fewer words and no section is what a failed conversion leaves.
_STUB_WORDS = 20
_LONGEST_MEAN_WORD = 15
# Words that tell what a text is about. Abstracts of two versions of a paper share most of theirs,
# those of two papers under a quarter.
_LONG_WORD, _FEWEST_ABSTRACT_WORDS, _SAME = 4, 10, 0.25


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

    page_seconds: processor time that one page may take to parse. year: of the month.
    """

    dump_dir: Path | str
    parse: Parse
    page_seconds: float
    year: int


def select_pages(job: Job) -> list[SelectedPage]:
    """The pages of a month that become papers, by identifier; every other page goes to the ledger
    with its reason.

    Metadata decides, before any page is read. A month has at most some 25,000 papers, whose
    abstracts are 60 MB.
    """
    columns = [
        "arxiv_id",
        "categories",
        "primary_category",
        "status",
        "title",
        "abstract",
        "authors",
    ]
    metadata = {row["arxiv_id"]: row for row in job.iterate(METADATA, columns)}
    pages = []
    for member in job.iterate(DUMP_MEMBERS):
        row = metadata.get(member["arxiv_id"])
        reason, detail = _objection(row, job.settings)
        if row is None or reason:
            job.leave_out(member["arxiv_id"], reason, detail)
            continue
        page = SelectedPage(
            Member(**member),
            decode_tex(row["title"] or "") or None,
            row["abstract"],
            tuple(row["categories"] or ()),
            row["primary_category"],
            tuple(row["authors"] or ()),
        )
        pages.append(page)
    return pages


def chunk_pages(pages: Iterable[SelectedPage], most_bytes: int) -> Iterator[list[SelectedPage]]:
    """The pages in order, in chunks of `most_bytes` unpacked; a larger page is alone."""
    chunk: list[SelectedPage] = []
    size = 0
    for page in pages:
        if chunk and size + page.member.bytes > most_bytes:
            yield chunk
            chunk, size = [], 0
        chunk.append(page)
        size += page.member.bytes
    if chunk:
        yield chunk


def _objection(metadata: Mapping[str, Any] | None, settings: Settings) -> tuple[str, str]:
    """Why a page is not selected, as (reason, detail); empty where it is selected."""
    from pipeline.arxiv.category_filter import verdict  # loads pydantic, which workers do without

    if metadata is None or metadata["status"] == "absent":
        return "no_metadata", "no source of metadata knows the identifier"
    if metadata["status"] == "withdrawn":
        return "withdrawn", "its authors withdrew it"
    categories = metadata["categories"] or []
    fits, reason = verdict(categories, metadata["primary_category"] or "", settings)
    return ("", "") if fits else (reason, " ".join(categories))


@dataclass(slots=True)
class RowBuilder:
    """Collects the rows of a table, and the pages or papers that give none.

    fault: the reason that is recorded for an unexpected error.
    """

    schema: pa.Schema
    fault: str = "parser_error"
    left_out: list[LeftOut] = field(default_factory=list)
    _batches: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, *rows: Row) -> None:
        """Add the rows of a page. Raises where Arrow refuses one, as for text that is not Unicode.

        0.7 ms for a page of 630 KB, whose parsing takes 17 ms; all rows of a chunk at once took 0.2
        to 0.8 ms.
        """
        self._batches.append(pa.RecordBatch.from_pylist(rows, self.schema))

    @contextmanager
    def leaving_out(self, subject: str, place: str) -> Iterator[None]:
        """Leave out the page if the block raises; a CiteloomError, which concerns all pages, is
        raised on.

        Raises PermanentFailure for a missing package or a failing disk, which would fail every
        other page too.
        """
        try:
            yield
        except CiteloomError:
            raise
        except (ImportError, OSError) as error:
            raise PermanentFailure(
                f"pages cannot be parsed on this machine ({type(error).__name__}:"
                f" {one_line(str(error))}), {place} first: install what is missing, or mend the"
                " disk, and run again"
            ) from error
        except (MemberError, PageError) as error:
            self.left_out.append((subject, error.reason, f"{place}: {error.detail}"))
        except MemoryError:
            detail = (
                "it needs more memory than a worker may take; on another machine it may succeed"
            )
            self.left_out.append((subject, "out_of_memory", f"{place}: {detail}"))
        except Exception as error:
            detail = f"{type(error).__name__}: {one_line(str(error))}"
            self.left_out.append((subject, self.fault, f"{place}: {detail}"))

    def batch(self) -> pa.RecordBatch:
        """The rows in the order in which they were added."""
        return pa.concat_batches([pa.RecordBatch.from_pylist([], self.schema), *self._batches])


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """The result of a chunk.

    rows: of `papers`, by identifier. bytes_read: packed bytes, as in the zips. parsing_seconds:
    processor time from a page's bytes to what was parsed. other_titles: pages whose heading has
    other words than metadata's title. unlinked: pages with affiliations of nobody knows whom.
    """

    rows: pa.RecordBatch
    left_out: tuple[LeftOut, ...]
    bytes_read: int
    parsing_seconds: float
    other_titles: int
    unlinked: int


def parse_pages(job: ParseJob, chunk: Sequence[SelectedPage]) -> ParsedChunk:
    """Read the pages of a chunk in the order in which they lie in their zips.

    Raises MissingInput where a zip is gone, TransientFailure where a store does not answer.
    """
    rows = RowBuilder(PAPERS.schema)
    parsing_seconds = 0.0
    other_titles = unlinked = 0
    in_file_order = sorted(chunk, key=lambda page: (page.member.zip, page.member.offset))
    with MemberReader(job.dump_dir) as reader:
        reader.plan(page.member for page in in_file_order)
        for page in in_file_order:
            with rows.leaving_out(page.member.arxiv_id, page.member.place):
                content = reader.read(page.member)
                started = time.process_time()
                try:
                    with time_limit(job.page_seconds):
                        paper = job.parse(content, page.authors)
                finally:
                    parsing_seconds += time.process_time() - started
                require_text(paper)
                _require_same_document(page, paper)
                rows.add(_row(page, paper, job.year))
                other_titles += _differ(page.title, paper.title)
                unlinked += any(block.anchor == UNLINKED for block in paper.blocks)
    batch = rows.batch().sort_by("arxiv_id")
    return ParsedChunk(
        batch,
        tuple(sorted(rows.left_out)),
        reader.bytes_read,
        parsing_seconds,
        other_titles,
        unlinked,
    )


def _row(page: SelectedPage, paper: ParsedPage, year: int) -> Row:
    """A row of `papers`: title and authors of metadata, and what the page says."""
    quality, reasons = grade(paper)
    title, abstract = (
        page.title or paper.title,
        paper.abstract or decode_tex(page.abstract or "") or None,
    )
    is_heading = bool(paper.title) and not _differ(page.title, paper.title)
    authors = paper.authors or tuple(map(Author, page.authors))
    return {
        **paper.as_row(),
        "arxiv_id": page.member.arxiv_id,
        "subset": page.member.subset,
        "title": title,
        "title_source": "heading" if is_heading else "metadata" if title else "none",
        "authors": [author._asdict() for author in authors],
        "authors_source": "page" if paper.authors else "metadata" if authors else "none",
        "abstract": abstract,
        "abstract_source": "page" if paper.abstract else "metadata" if abstract else "none",
        "categories": page.categories,
        "primary_category": page.primary_category,
        "year": year,
        "grade": quality,
        "grade_reasons": reasons,
    }


def _differ(title: str | None, heading: str | None) -> bool:
    return bool(title and heading) and title_words(title or "") != title_words(heading or "")


def require_text(paper: ParsedPage) -> None:
    """Raise PageError for the page of a failed conversion, which a site serves all the same: words
    such as "See pages 1-last of paper.pdf", without authors, an abstract or a section.
    """
    if paper.authors or paper.abstract or paper.sections:
        return
    text = " ".join(block.text for block in paper.blocks)
    if count_words(text) < _STUB_WORDS:
        raise PageError("failed_conversion", f"all that the page says is {clip(text)!r}")


def _require_same_document(page: SelectedPage, paper: ParsedPage) -> None:
    """Raise PageError where neither the heading nor the abstract of a page is its paper's."""
    shares_title = _shared(page.title, paper.title, 1)
    if shares_title == 0 and _shared(page.abstract, paper.abstract, _FEWEST_ABSTRACT_WORDS) < _SAME:
        raise PageError(
            "other_document",
            f'its heading is "{clip(paper.title or "")}", and its abstract is another than'
            f' arXiv\'s, whose title is "{page.title}"',
        )


def _shared(known: str | None, printed: str | None, fewest: int) -> float:
    """The share of the long words of the shorter of two texts that are in both; 1 where one has
    too few to tell.
    """
    ours, theirs = (
        {word for word in title_words(text or "") if len(word) >= _LONG_WORD}
        for text in (known, printed)
    )
    shorter = min(len(ours), len(theirs))
    return len(ours & theirs) / shorter if shorter >= fewest else 1.0


def grade(paper: ParsedPage) -> tuple[str, tuple[str, ...]]:
    """The grade of a page's text, A (clean) to D (broken), and the facts that lowered it, worst
    first: ltx_errors, unconverted_macros, math_without_tex (counted together), missing_citations,
    text_lost, hidden_text, truncated, hardly_any_text.
    """
    lowered = sorted((fact for fact in _grade_facts(paper) if fact[0]), key=lambda fact: -fact[0])
    worst = lowered[0][0] if lowered else 0
    return GRADES[worst], tuple(reason for _, reason in lowered)


def _grade_facts(paper: ParsedPage) -> Iterator[tuple[int, str]]:
    """(grades below A, name) of every fact."""
    # Nearly the words of `count_words`, in a tenth of the time, but for scripts without spaces.
    words = sum(block.text.count(" ") + 1 for block in paper.blocks)
    if words * _LONGEST_MEAN_WORD < paper.chars_kept:
        words = sum(count_words(block.text) for block in paper.blocks)
    flaws = {
        name: getattr(paper, name)
        for name in ("ltx_errors", "unconverted_macros", "math_without_tex")
    }
    flawed = bisect_right(_FLAWS_PER_1000_WORDS, 1000 * sum(flaws.values()) / max(words, 1))
    yield from ((flawed, name) for name, count in flaws.items() if count)
    cited = sum(len(block.cited_keys) for block in paper.blocks) + paper.missing_citations
    yield (
        bisect_right(_SHARE_OF_CITATIONS_MISSING, paper.missing_citations / max(cited, 1)),
        "missing_citations",
    )
    lost = (paper.chars_seen - paper.chars_kept) / max(paper.chars_seen, 1)
    yield bisect_right(_SHARE_OF_TEXT_LOST, lost), "text_lost"
    yield bisect_right(_HIDDEN_CHARACTERS, paper.losses.get("hidden", 0)), "hidden_text"
    if paper.truncated:
        yield GRADES.index("C"), "truncated"
    if words < _FEWEST_WORDS:
        yield GRADES.index("C"), "hardly_any_text"
