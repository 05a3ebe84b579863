"""The public metadata snapshot of arXiv: one paper per JSON line, plain or gzip.

Its form: https://www.kaggle.com/datasets/Cornell-University/arxiv. The first use reads the file once and keeps where
each paper's line lies, so that a month reads its own lines alone. Not here: what arXiv's API says.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from filelock import FileLock

from pipeline import progress
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.metadata.record import Record, fold, split_version, with_status
from pipeline.tables import move_into_place

# The id is the first key of every line that arXiv writes. Parsing just it reads 5 GB in seconds, not minutes.
_LEADING_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]+)"')
# Loose, as it only tells arXiv's snapshot from other JSON lines; `pipeline.corpus` knows the true form.
_LIKE_ARXIV = re.compile(r"(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?")
_INDEX_VERSION = "2"
_IDS_PER_QUERY = 500
_TO_DO = (
    "set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot (JSON lines, plain or .gz), or to nothing to ask the API alone"
)

Answer = TypeVar("Answer")

# Without a journal: a build that is killed leaves a .tmp that the next one removes, and nothing to roll back into it.
_SCHEMA = """
pragma journal_mode = off;
create table facts (name text primary key, value text) without rowid;
create table lines (arxiv_id text primary key, position integer, length integer, digest blob) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What a snapshot says of the identifiers asked for, and which of their lines could not be read."""

    records: Mapping[str, Record]
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    arxiv_id: str
    position: int
    length: int


class Snapshot:
    """A snapshot file and its index, which lies in `cache` and is made anew when the file's size or time changes, or
    when it is damaged.

    A `.gz` has no way to jump: each `find` unpacks it from its start to the last line wanted. For many months,
    unpack the file once. An identifier with several lines is what its last line says.
    """

    def __init__(self, file: Path, cache: Path) -> None:
        self._file = file
        self._index = cache / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.sqlite"

    def find(self, wanted: Collection[str]) -> Found:
        """The records of those identifiers that the snapshot holds.

        Raises MissingInput where the file is not there, PermanentFailure where it cannot be read or no line of it is
        arXiv's.
        """
        lines = self._ask(lambda index: sorted(_locate(index, wanted), key=lambda line: line.position))
        records: dict[str, Record] = {}
        broken: list[str] = []
        with self._open() as stream:
            for line in lines:
                record = _read(stream, line)
                if record is None:
                    broken.append(line.arxiv_id)
                else:
                    records[line.arxiv_id] = record
        return Found(records, tuple(sorted(broken)))

    def digest(self, wanted: Collection[str]) -> str:
        """SHA-256 over the lines of those identifiers: equal while the snapshot says the same of them."""
        return self._ask(lambda index: _digest(index, wanted))

    def facts(self) -> dict[str, int]:
        """`lines` and `broken_lines` of the file, and `first_broken`, the number of the first broken line, or 0."""
        query = "select name, value from facts where name in (?, ?, ?)"
        return self._ask(lambda index: {name: int(value) for name, value in index.execute(query, _FACTS)})

    @contextlib.contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if not self._file.is_file():
            raise MissingInput(f"the metadata snapshot {self._file} is not there: {_TO_DO}")
        try:
            with gzip.open(self._file) if self._file.suffix == ".gz" else self._file.open("rb") as stream:
                yield cast(BinaryIO, stream)
        except (OSError, EOFError) as error:
            raise PermanentFailure(
                f"the metadata snapshot {self._file} cannot be read ({error}): get it again, or set "
                "CITELOOM_METADATA_SNAPSHOT to another file"
            ) from error

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What the index answers. Damage may show in any page of it, hence at any question, and is mended once."""
        self._prepare()
        try:
            return self._answer(question)
        except sqlite3.DatabaseError:
            self._prepare(anew=True)
        return self._answer(question)

    def _answer(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        with contextlib.closing(sqlite3.connect(self._index)) as index:
            return question(index)

    def _prepare(self, *, anew: bool = False) -> None:
        with FileLock(self._index.with_suffix(".lock")):
            if anew or not self._is_current():
                self._build()

    def _state(self) -> str:
        with self._open():
            status = self._file.stat()
        return f"{_INDEX_VERSION} {status.st_size} {status.st_mtime_ns}"

    def _is_current(self) -> bool:
        state = self._state()
        if not self._index.exists():
            return False
        query = "select value from facts where name = 'state'"
        try:
            return self._answer(lambda index: bool(index.execute(query).fetchone() == (state,)))
        except sqlite3.DatabaseError:
            return False

    def _build(self) -> None:
        staged, state = self._index.with_suffix(".tmp"), self._state()
        staged.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(staged)) as index, self._open() as stream:
            index.executescript(_SCHEMA)
            scan = _Scan()
            index.executemany("insert or replace into lines values (?, ?, ?, ?)", scan.rows(stream))
            index.executemany("insert into facts values (?, ?)", [("state", state), *scan.facts().items()])
            index.commit()
        self._judge(scan)
        move_into_place(staged, self._index)

    def _judge(self, scan: _Scan) -> None:
        """Tell of broken lines. Raises PermanentFailure where no line is arXiv's."""
        first = f", the first is line {scan.first_broken:,}" if scan.broken else ""
        if not scan.is_arxivs:
            raise PermanentFailure(
                f"the metadata snapshot {self._file} holds no line of arXiv's metadata ({scan.lines:,} lines, "
                f"{scan.broken:,} of them broken{first}): {_TO_DO}"
            )
        if scan.broken:
            progress.noted(
                f"the metadata snapshot {self._file}: of its {scan.lines:,} lines {scan.broken:,} are broken{first}; "
                "the papers of broken lines pass for missing from it"
            )


_FACTS = ("lines", "broken_lines", "first_broken")


class _Scan:
    """One pass over a snapshot: where each line lies, how many are broken, and whether any is of an arXiv paper."""

    def __init__(self) -> None:
        self.lines = self.broken = self.first_broken = 0
        self.is_arxivs = False

    def rows(self, stream: Iterable[bytes]) -> Iterator[tuple[str, int, int, bytes]]:
        position = 0
        for number, line in enumerate(stream, start=1):
            if line.strip():
                self.lines += 1
                arxiv_id = _identify(line)
                if arxiv_id is None:
                    self.broken += 1
                    self.first_broken = self.first_broken or number
                else:
                    # Asked until the first yes alone: a pass over 3 M lines takes seconds.
                    self.is_arxivs = self.is_arxivs or _LIKE_ARXIV.fullmatch(arxiv_id) is not None
                    yield arxiv_id, position, len(line), hashlib.blake2b(line.strip(), digest_size=16).digest()
            position += len(line)

    def facts(self) -> dict[str, str]:
        return dict(zip(_FACTS, map(str, (self.lines, self.broken, self.first_broken)), strict=True))


def _identify(line: bytes) -> str | None:
    if not line.rstrip().endswith(b"}"):
        return None
    found = _LEADING_ID.match(line)
    if found:
        return found[1].decode(errors="replace")
    content = _load(line)
    return content["id"] if content else None


def _load(line: bytes) -> dict[str, Any] | None:
    """The object of a line that names a paper; None where the line is no such object."""
    try:
        content = json.loads(line)
    except ValueError:
        return None
    named = isinstance(content, dict) and isinstance(content.get("id"), str) and content["id"]
    return content if named else None


def _locate(index: sqlite3.Connection, wanted: Collection[str]) -> Iterator[_Line]:
    for chunk in _chunks(sorted(wanted)):
        query = f"select arxiv_id, position, length from lines where arxiv_id in ({_marks(chunk)})"  # noqa: S608
        for row in index.execute(query, chunk):
            yield _Line(*row)


def _digest(index: sqlite3.Connection, wanted: Collection[str]) -> str:
    total = hashlib.sha256()
    for chunk in _chunks(sorted(wanted)):
        query = f"select arxiv_id, digest from lines where arxiv_id in ({_marks(chunk)}) order by arxiv_id"  # noqa: S608
        for arxiv_id, digest in index.execute(query, chunk):
            total.update(arxiv_id.encode() + b"\0" + digest)
    return total.hexdigest()


def _chunks(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _IDS_PER_QUERY):
        yield ids[start : start + _IDS_PER_QUERY]


def _marks(ids: list[str]) -> str:
    return ", ".join("?" * len(ids))


def _read(stream: BinaryIO, line: _Line) -> Record | None:
    stream.seek(line.position)
    content = _load(stream.read(line.length))
    try:
        return parse_record(content) if content else None
    except (TypeError, ValueError, AttributeError, KeyError):
        return None  # valid JSON of another shape than the snapshot's; the caller counts it with the broken lines


def parse_record(content: Mapping[str, Any]) -> Record:
    """A line of the snapshot as a record, white space folded, null where the line has null.

    Raises TypeError, ValueError, AttributeError or KeyError for a line of another shape.
    """
    versions, categories = content.get("versions") or [], _categories(content.get("categories"))
    record = Record(
        arxiv_id=split_version(content["id"])[0],
        version=_number(versions[-1]) if versions else None,
        title=fold(content.get("title")),
        authors=_authors(content),
        abstract=fold(content.get("abstract")),
        categories=categories,
        primary_category=categories[0] if categories else None,
        published=_date(versions[0]) if versions else None,
        updated=_date(versions[-1]) if versions else None,
        doi=fold(content.get("doi")),
        journal_ref=fold(content.get("journal-ref")),
        comment=fold(content.get("comments")),
        source="snapshot",
    )
    return with_status(record)


def _categories(value: str | list[str] | None) -> tuple[str, ...]:
    # Copies of 2020 and before hold a list of one string.
    return tuple((value if isinstance(value, str) else " ".join(value or [])).split())


def _number(version: Mapping[str, str] | str) -> int:
    return int((version if isinstance(version, str) else version["version"]).removeprefix("v"))


def _date(version: Mapping[str, str] | str) -> str | None:
    created = None if isinstance(version, str) else version.get("created")
    return parsedate_to_datetime(created).date().isoformat() if created else None


def _authors(content: Mapping[str, Any]) -> tuple[str, ...]:
    parsed = content.get("authors_parsed")
    if parsed:
        return tuple(name for name in map(_name, parsed) if name)
    return split_authors(content.get("authors") or "")


def _name(parts: list[str]) -> str:
    """A name in reading order from [family, given, suffix, …]; what follows the suffix are affiliations."""
    family, given, suffix = [*parts, "", "", ""][:3]
    return " ".join(f"{given} {family} {suffix}".split())


def split_authors(text: str) -> tuple[str, ...]:
    """Names from arXiv's author line: `A. One, B. Two (Lab, City) and C. Three`."""
    bare = re.sub(r"\([^()]*\)", " ", re.sub(r"\([^()]*\)", " ", " ".join(text.split())))
    names = (name.strip() for name in re.split(r",\s*(?:and\s+)?|;\s*|\s+and\s+", bare))
    return tuple(" ".join(name.split()) for name in names if name)
