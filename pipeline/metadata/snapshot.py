"""The public metadata snapshot of arXiv: one paper per JSON line, plain or gzip.

Its form: https://www.kaggle.com/datasets/Cornell-University/arxiv. The first use reads the file once for all months
(`places`); a month then reads its own lines alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import orjson

from pipeline.arxiv.identifiers import strip_version
from pipeline.engine import progress
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.metadata.names import split_authors
from pipeline.metadata.places import Damaged, Place, Places, Scan
from pipeline.metadata.record import Record, categorised, fold, with_status
from pipeline.storage.writing import move_into_place

_TO_DO = (
    "set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot (JSON lines, plain or .gz), or to nothing to ask the API alone"
)
_DATED = re.compile(rb'"update_date"\s*:\s*"(\d{4}-\d\d-\d\d)"')
# Of a line that is cut, or JSON of another shape than the snapshot's.
_OTHER_SHAPE = (TypeError, ValueError, AttributeError, KeyError)
_CHUNK_BYTES = 1 << 20
_MONTHS = {
    name: f"{number:02}"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Found:
    """What a snapshot says of the identifiers asked for, and which of their lines could not be read.

    `dates` has the day of each record's last change of any kind (`YYYY-MM-DD`, as OAI-PMH's datestamp), where told.
    """

    records: Mapping[str, Record]
    broken: tuple[str, ...]
    dates: Mapping[str, str]


class Snapshot:
    """A snapshot file and what is made of it in `cache`, anew when the file's size or time changes or on damage.

    A `.gz` has no way to jump, so it is unpacked once into `cache` (arXiv's: 4.5 GB; inflating it anew for each of
    400 months would take an hour). An identifier with several lines is what its last line says.
    """

    def __init__(self, file: Path, cache: Path) -> None:
        self._file = file
        name = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]
        self._plain = cache / f"{name}.jsonl" if file.suffix == ".gz" else file
        self._places = Places(cache / f"{name}.sqlite", self._state, self._scan)

    def find(self, wanted: Collection[str]) -> Found:
        """The records of those identifiers that the snapshot holds.

        Raises MissingInput where the file is not there, PermanentFailure where it cannot be read, no line of it is
        arXiv's, or what is made of it cannot be written.
        """
        return self._twice(wanted, self._read)

    def licences(self, wanted: Collection[str]) -> dict[str, str]:
        """The address of the licence of each of those papers whose line names one, as arXiv has it for the paper's
        newest version. Raises as `find` does."""
        return self._twice(wanted, self._read_licences)

    def _twice(self, wanted: Collection[str], read: Callable[[list[tuple[str, Place]]], Answer]) -> Answer:
        """What is read of the lines of those identifiers; where they lie is found anew if that no longer holds."""
        for first in (True, False):
            places = sorted(self._places.find(wanted).items(), key=lambda item: item[1].position)
            try:
                return read(places)
            except Damaged as damage:
                if not first:
                    raise PermanentFailure(f"the metadata snapshot {self._file} changes while it is read") from damage
                self._places.forget()
        raise AssertionError("two tries end in a return or an error")

    def identifiers(self, month: str) -> list[str]:
        """The papers of a month, sorted. Raises as `find` does."""
        return self._places.identifiers(month)

    def digest(self, wanted: Collection[str]) -> str:
        """SHA-256 over the lines of those identifiers: equal while the snapshot says the same of them."""
        total = hashlib.sha256()
        for arxiv_id, place in sorted(self._places.find(wanted).items()):
            total.update(arxiv_id.encode() + b"\0" + place.digest)
        return total.hexdigest()

    def facts(self) -> dict[str, int]:
        """`lines` and `broken_lines` of the file, and `first_broken`, the number of the first broken line, or 0."""
        return self._places.facts()

    def newest(self) -> str | None:
        """The newest day on which a record of the snapshot changed, `YYYY-MM-DD`; reads the whole file.

        What is no day counts for nothing, nor does a day to come: a slip in one of millions of lines would make the
        harvest begin too late.
        """
        self._places.facts()
        with self._open() as stream:
            dated = (day for line in stream if (day := _DATED.search(line, max(line.rfind(b'"update_date"'), 0))))
            days = {day[1].decode() for day in dated}
        today = datetime.now(UTC).date().isoformat()
        return max((day for day in days if is_day(day) and day <= today), default=None)

    def _read(self, places: list[tuple[str, Place]]) -> Found:
        records: dict[str, Record] = {}
        broken: list[str] = []
        dates: dict[str, str] = {}
        with self._open() as stream:
            for arxiv_id, place in places:
                try:
                    content = orjson.loads(place.read(stream))
                    records[arxiv_id] = categorised(parse_record(content))
                    dates[arxiv_id] = str(content.get("update_date") or "")
                except _OTHER_SHAPE:
                    broken.append(arxiv_id)
        return Found(records, tuple(sorted(broken)), dates)

    def _read_licences(self, places: list[tuple[str, Place]]) -> dict[str, str]:
        licences: dict[str, str] = {}
        with self._open() as stream:
            for arxiv_id, place in places:
                with contextlib.suppress(*_OTHER_SHAPE):
                    licences[arxiv_id] = orjson.loads(place.read(stream))["license"].strip()
        return licences

    def _state(self) -> str:
        """What tells this file from another, and the unpacked copy from none."""
        self._refuse_missing()
        status = self._file.stat()
        copied = "" if self._plain is self._file else f" {_size(self._plain)}"
        return f"{status.st_size} {status.st_mtime_ns}{copied}"

    def _scan(self, scan: Scan) -> None:
        """Tell where each line lies. Raises PermanentFailure where no line is arXiv's."""
        self._unpack()
        with self._open() as stream:
            scan.read(stream)
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

    def _unpack(self) -> None:
        if self._plain is self._file:
            return
        staged = self._plain.with_suffix(".jsonl.tmp")
        try:
            with staged.open("wb") as copy:
                for chunk in self._inflated():
                    copy.write(chunk)
            move_into_place(staged, self._plain)
        except OSError as error:
            raise PermanentFailure(
                f"{staged}, the unpacked copy of {self._file}, cannot be written ({error}): make room there, or name "
                "another data root in CITELOOM_DATA"
            ) from error
        finally:
            staged.unlink(missing_ok=True)

    def _inflated(self) -> Iterator[bytes]:
        # isal inflates 1.2 GB/s on one core, the standard library 0.3 GB/s.
        from isal import igzip, isal_zlib

        damage = cast("type[Exception]", isal_zlib.error)
        with _named(self._file, damage), igzip.open(self._file) as packed:  # type: ignore[no-untyped-call]
            while chunk := packed.read(_CHUNK_BYTES):
                yield chunk

    @contextlib.contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        self._refuse_missing()
        with _named(self._file), self._plain.open("rb", buffering=_CHUNK_BYTES) as stream:
            yield stream

    def _refuse_missing(self) -> None:
        if not self._file.is_file():
            raise MissingInput(f"the metadata snapshot {self._file} is not there: {_TO_DO}")


@contextlib.contextmanager
def _named(file: Path, *others: type[Exception]) -> Iterator[None]:
    """Name the snapshot that cannot be read."""
    kinds: tuple[type[Exception], ...] = (OSError, EOFError, *others)
    try:
        yield
    except kinds as error:
        raise PermanentFailure(
            f"the metadata snapshot {file} cannot be read ({error}): get it again, or set "
            "CITELOOM_METADATA_SNAPSHOT to another file"
        ) from error


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def parse_record(content: Mapping[str, Any]) -> Record:
    """A line of the snapshot as a record, white space folded, null where the line has null.

    Raises TypeError, ValueError, AttributeError or KeyError for a line of another shape.
    """
    versions, categories = content.get("versions") or [], _categories(content.get("categories"))
    record = Record(
        arxiv_id=strip_version(content["id"]),
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
    return day_of(created) if created else None


def is_day(text: str) -> bool:
    """Whether the text is a day as `YYYY-MM-DD`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def day_of(created: str) -> str:
    """The day of `Mon, 2 Apr 2007 19:18:42 GMT` as `2007-04-02`. Raises ValueError for what is no date."""
    words = created.split()
    # The form of every true line is read 20 times as fast as by email.utils, which knows all other forms.
    if len(words) == 6 and words[2] in _MONTHS and words[1].isdecimal() and len(words[3]) == 4:
        return f"{words[3]}-{_MONTHS[words[2]]}-{int(words[1]):02}"
    return parsedate_to_datetime(created).date().isoformat()


def _authors(content: Mapping[str, Any]) -> tuple[str, ...]:
    parsed = content.get("authors_parsed")
    if parsed:
        return tuple(name for name in map(_name, parsed) if name)
    return split_authors(content.get("authors") or "")


def _name(parts: list[str]) -> str:
    """A name in reading order from [family, given, suffix, …]; what follows the suffix are affiliations."""
    family, given, suffix = [*parts, "", "", ""][:3]
    return " ".join(f"{given} {family} {suffix}".split())
