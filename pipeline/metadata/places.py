"""Where the line of each paper lies in a file of JSON lines, found in one pass and kept by month.

One SQLite file: a row is a few thousand lines of one month, its identifiers, positions and digests packed, so that a
pass spends its time on reading and a month's question reads a few rows.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from filelock import FileLock
from xxhash import xxh3_128_digest

from pipeline.arxiv.identifiers import folder_month, month_of, strip_version
from pipeline.errors import CiteloomError, PermanentFailure
from pipeline.storage.writing import move_into_place

# The id is the first key of every line that arXiv writes. Finding just it is nine times as fast as parsing the line.
_LEADING_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]+)"')
_VERSION = "6"
# Tells whether a line changed, not who wrote it: xxh3 does that at five times the speed of blake2b.
_digest = xxh3_128_digest
_DIGEST_BYTES = 16
# 200,000 lines wait in 50 MB of memory, of any number of months; arXiv's 2.7 M lines become some 900 rows.
_LINES_HELD = 200_000
_AFTER_9 = ord("9") + 1
_FACTS = ("lines", "broken_lines", "first_broken")

Answer = TypeVar("Answer")

# Without a journal: a build that is killed leaves a .tmp that the next one removes, and nothing to roll back into it.
_SCHEMA = """
pragma journal_mode = off;
pragma synchronous = off;
create table facts (name text primary key, value text) without rowid;
create table places (
    month text, number integer, ids blob, positions blob, lengths blob, digests blob, seal blob,
    primary key (month, number)
);
"""


class Damaged(CiteloomError):
    """What was kept does not fit the file it was made of; making it anew mends that."""


class Place(NamedTuple):
    """Where a line lies, in bytes from the start of the file, and a digest of it without the white space around it."""

    position: int
    length: int
    digest: bytes

    def read(self, stream: BinaryIO) -> bytes:
        """The line. Raises Damaged where another one is there."""
        stream.seek(self.position)
        line = stream.read(self.length).strip()
        if _digest(line) != self.digest:
            raise Damaged(f"byte {self.position:,} begins another line")
        return line


class Places:
    """The places of all lines, in `file`. One process at a time makes it; the others wait and then read it.

    `state` tells the file with the lines from another one, and `fill` reads it; both may raise what concerns it.
    """

    def __init__(self, file: Path, state: Callable[[], str], fill: Callable[[Scan], None]) -> None:
        self._file, self._state, self._fill = file, state, fill

    def find(self, wanted: Collection[str]) -> dict[str, Place]:
        """Where the lines of those identifiers lie; of several lines of one the last."""
        chosen = frozenset(wanted)
        months = sorted({month_of(arxiv_id) or "" for arxiv_id in chosen})
        return self._ask(lambda index: {name: place for name, place in _places(index, months) if name in chosen})

    def identifiers(self, month: str) -> list[str]:
        """The identifiers of a month that any line bears, sorted."""
        return self._ask(lambda index: sorted({name for name, _ in _places(index, [month])}))

    def facts(self) -> dict[str, int]:
        """Counts of the last pass: `lines`, `broken_lines`, and the number of the first broken line or 0."""
        query = "select name, value from facts where name in (?, ?, ?)"
        return self._ask(lambda index: {name: int(value) for name, value in index.execute(query, _FACTS)})

    def forget(self) -> None:
        """Make it anew at the next question."""
        with self._exclusive():
            self._file.unlink(missing_ok=True)

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What the index answers. Damage may show in any page of it, hence at any question, and is mended once."""
        self._prepare()
        try:
            return self._answer(question)
        except (sqlite3.DatabaseError, Damaged):
            self.forget()
        self._prepare()
        return self._answer(question)

    def _answer(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        with contextlib.closing(sqlite3.connect(self._file)) as index:
            return question(index)

    def _exclusive(self) -> FileLock:
        return FileLock(self._file.with_suffix(".lock"))

    def _prepare(self) -> None:
        if not self._is_current():
            with self._exclusive():
                if not self._is_current():
                    self._build()

    def _is_current(self) -> bool:
        state = self._state()
        if not self._file.exists():
            return False
        query = "select value from facts where name = 'state'"
        try:
            return self._answer(lambda index: bool(index.execute(query).fetchone() == (f"{_VERSION} {state}",)))
        except sqlite3.DatabaseError:
            return False

    def _build(self) -> None:
        staged = self._file.with_suffix(".tmp")
        try:
            staged.unlink(missing_ok=True)
            with contextlib.closing(sqlite3.connect(staged)) as index:
                index.executescript(_SCHEMA)
                self._fill_from_pass(index)
            move_into_place(staged, self._file)
        except (sqlite3.Error, OSError) as error:
            raise PermanentFailure(
                f"{staged}, where the lines of the metadata snapshot are found again, cannot be written ({error}): "
                "make room there, or name another data root in CITELOOM_DATA"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                staged.unlink(missing_ok=True)

    def _fill_from_pass(self, index: sqlite3.Connection) -> None:
        scan = Scan(index)
        self._fill(scan)
        facts = dict(zip(_FACTS, map(str, (scan.lines, scan.broken, scan.first_broken)), strict=True))
        facts["state"] = f"{_VERSION} {self._state()}"
        index.executemany("insert into facts values (?, ?)", facts.items())
        index.commit()


class Scan:
    """One pass over JSON lines: where each lies, how many are broken, and whether any is of an arXiv paper."""

    def __init__(self, index: sqlite3.Connection) -> None:
        self._index = index
        self._held: dict[bytes, list[tuple[bytes, int, int, bytes]]] = {}
        self._rows = 0
        self.lines = self.broken = self.first_broken = 0
        self.is_arxivs = False

    def read(self, stream: Iterable[bytes]) -> None:
        """Take every line of a file."""
        # One loop without a call of ours per line: 2.7 M lines pass here, and each call would cost a tenth of it.
        position = waiting = 0
        held, match, digest = self._held, _LEADING_ID.match, _digest
        for number, line in enumerate(stream, start=1):
            bare = line.strip()
            found = match(bare)
            arxiv_id = found[1] if found and bare[-1:] == b"}" else self._identify(bare, number)
            if arxiv_id is not None:
                # `0704.0001` begins with its month; all others (`math.GT/0309136`) are sorted when they are written.
                key = arxiv_id[:4] if arxiv_id[4:5] == b"." and arxiv_id[0] < _AFTER_9 else b""
                place = (arxiv_id, position, len(line), digest(bare))
                try:
                    held[key].append(place)
                except KeyError:
                    held[key] = [place]
                waiting += 1
                if waiting >= _LINES_HELD:
                    self.flush()
                    waiting = 0
            position += len(line)
        self.flush()

    def flush(self) -> None:
        """Write what is held."""
        for key, places in self._held.items():
            told = [(folder_month(key.decode("latin-1")) or "", places)] if key else _by_month(places)
            for month, of_month in told:
                self._write(month, of_month)
        self._held.clear()

    def _write(self, month: str, places: list[tuple[bytes, int, int, bytes]]) -> None:
        self._rows += 1
        self.lines += len(places)
        names, positions, lengths, digests = zip(*places, strict=True)
        ids = [_plain_id(name) for name in names]
        self.is_arxivs = self.is_arxivs or any(map(month_of, ids))
        numbers = (array("Q", column).tobytes() for column in (positions, lengths))
        packed = ("\n".join(ids).encode(), *numbers, b"".join(digests))
        row = (month, self._rows, *packed, _digest(b"".join(packed)))
        self._index.execute("insert into places values (?, ?, ?, ?, ?, ?, ?)", row)

    def _identify(self, line: bytes, number: int) -> bytes | None:
        """The identifier of a line that does not begin with it; None where it is empty or broken."""
        if not line:
            return None
        try:
            content = json.loads(line)
            if content["id"] and isinstance(content["id"], str):
                return content["id"].encode()
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        self.lines += 1
        self.broken += 1
        self.first_broken = self.first_broken or number
        return None


def _plain_id(name: bytes) -> str:
    # Only a name with a v may end in a version; an id with a line break in it would shift all that follow.
    text = " ".join(name.decode(errors="replace").split("\n"))
    return strip_version(text) if "v" in text else text


def _by_month(places: list[tuple[bytes, int, int, bytes]]) -> Iterator[tuple[str, list[tuple[bytes, int, int, bytes]]]]:
    months: dict[str, list[tuple[bytes, int, int, bytes]]] = {}
    for place in places:
        months.setdefault(month_of(_plain_id(place[0])) or "", []).append(place)
    yield from months.items()


def _places(index: sqlite3.Connection, months: list[str]) -> Iterator[tuple[str, Place]]:
    query = "select ids, positions, lengths, digests, seal from places where month = ? order by number"
    for month in months:
        for *packed, seal in index.execute(query, (month,)):
            yield from _unpacked(packed, seal)


def _unpacked(packed: list[bytes], seal: bytes) -> Iterator[tuple[str, Place]]:
    if _digest(b"".join(packed)) != seal:
        raise Damaged("a row of it is not as it was written")
    ids, digests = packed[0].decode().split("\n"), packed[3]
    positions, lengths = array("Q", packed[1]), array("Q", packed[2])
    for number, (name, position, length) in enumerate(zip(ids, positions, lengths, strict=True)):
        yield name, Place(position, length, digests[number * _DIGEST_BYTES : (number + 1) * _DIGEST_BYTES])
