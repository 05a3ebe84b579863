"""arXiv's public metadata snapshot (JSON lines, plain or gzip) and its Parquet conversion.

Its form: https://www.kaggle.com/datasets/Cornell-University/arxiv. The first use converts the file
once, into row groups of few months; a month then reads its own row groups alone. The lines are
stored as they are, a third of their size, and parsed when their month is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from xxhash import xxh3_128_digest

from pipeline.arxiv.record import Record, fold, is_day, parse_day, with_status
from pipeline.engine import shutdown
from pipeline.engine.locks import file_lock
from pipeline.engine.progress import Notice, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.identity.identifiers import group_by_month, month_of, plain_doi, strip_version
from pipeline.identity.people import split_author_line
from pipeline.storage.reading import open_parquet, read_table, row_groups_with, text_array
from pipeline.storage.writing import move_into_place
from pipeline.text import number_of, one_line, text_digest

# Raised when the columns change: files of another version are then made again.
_VERSION = 2
_SCHEMA = pa.schema(
    [
        ("month", pa.string()),  # "" for an identifier that is not arXiv's, or none
        ("arxiv_id", pa.string()),
        ("number", pa.int64()),  # of the line in the file, from 1
        ("updated", pa.string()),
        ("digest", pa.binary(16)),
        ("line", pa.binary()),
    ]
)
_FACTS = b"citeloom.snapshot"
# 20,000 lines are 30 MB; arXiv's 2.7 million lines become 540 row groups.
_LINES_PER_BATCH, _ROWS_PER_GROUP = 20_000, 5_000
# Up to so many papers lie in few row groups of a month: 20 ms for one paper, 100 ms for all 18,000.
_FEW_PAPERS = 200
_NOTED_BYTES = 100_000_000
# Raised by a line that is JSON of another shape than the snapshot's.
_OTHER_SHAPE = (
    TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError
)  # fmt: skip
# The longest line of arXiv's snapshot, of a paper with 5,000 authors, has 400 KB.
_LONGEST_LINE = 10_000_000
# Stands for a longer line: it is no JSON, so the line counts as unreadable.
_TOO_LONG = b"too long"
_HIGHEST_VERSION = 10_000
_WAY_OUT = (
    "set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot (JSON lines, plain or .gz), or to nothing"
    " to use the API alone"
)


class Snapshot:
    """A snapshot file and its conversion in `cache`, made again when size or time change.

    A line that is no JSON or names no paper is skipped; of several lines of a paper the last
    counts. Every method but `of` raises MissingInput where the file is missing, PermanentFailure
    where it cannot be read or converted, or holds no line of arXiv's.
    """

    def __init__(self, file: Path, cache: Path) -> None:
        self._file, self._cache = file, cache
        self._name = text_digest(str(file.resolve()))[:16]

    @classmethod
    def of(cls, workspace: Workspace) -> Snapshot | None:
        """The snapshot that the settings name, if any."""
        file = workspace.settings.metadata_snapshot
        return cls(file, workspace.cache("snapshot")) if file else None

    def find(self, ids: Collection[str]) -> dict[str, Record]:
        """The records of those identifiers that the snapshot holds; skips malformed lines."""
        records: dict[str, Record] = {}
        for row in self._rows(ids, "line"):
            with contextlib.suppress(*_OTHER_SHAPE):
                records[row["arxiv_id"]] = parse_record(orjson.loads(row["line"]))
        return records

    def update_days(self, ids: Collection[str]) -> dict[str, str]:
        """The day of each paper's last change (`YYYY-MM-DD`, as OAI-PMH's datestamp), or ""."""
        return {row["arxiv_id"]: row["updated"] for row in self._rows(ids, "updated")}

    def line_numbers(self, ids: Collection[str]) -> dict[str, int]:
        """The number, from 1, of each paper's newest line, readable or not."""
        return {row["arxiv_id"]: row["number"] for row in self._rows(ids)}

    def licences(self, ids: Collection[str]) -> dict[str, str]:
        """The address of each paper's licence, of its newest version, where its line has one."""
        licences: dict[str, str] = {}
        for row in self._rows(ids, "line"):
            with contextlib.suppress(*_OTHER_SHAPE):
                licences[row["arxiv_id"]] = orjson.loads(row["line"])["license"].strip()
        return licences

    @property
    def version(self) -> str:
        """Size and time of the file, as text: equal while the file is the same."""
        return self._target().stem

    def months(self) -> list[str]:
        """The months that it has papers of, oldest first."""
        months = read_table(self._converted(), ["month"])["month"].unique().to_pylist()
        return sorted(month for month in months if month)

    def identifiers(self, month: str) -> list[str]:
        """The papers of a month, sorted."""
        return sorted(set(self._month(month, ["arxiv_id"])["arxiv_id"].to_pylist()))

    def digest(self, ids: Collection[str]) -> str:
        """SHA-256 of the lines of those identifiers."""
        total = hashlib.sha256()
        for row in sorted(self._rows(ids, "digest"), key=lambda row: row["arxiv_id"]):
            total.update(row["arxiv_id"].encode() + b"\0" + row["digest"])
        return total.hexdigest()

    def facts(self) -> dict[str, Any]:
        """`lines`, `broken_lines` (no JSON, or no paper's), and `bytes` of the conversion."""
        file = self._converted()
        facts = json.loads(pq.read_metadata(file).metadata[_FACTS])
        return {**facts, "bytes": file.stat().st_size}

    def newest_update(self) -> str | None:
        """The newest day on which a record of the snapshot changed, `YYYY-MM-DD`.

        Invalid and future days do not count: one wrong line of millions would make the harvest
        begin too late.
        """
        days = read_table(self._converted(), ["updated"])["updated"].unique().to_pylist()
        today = datetime.now(UTC).date().isoformat()
        return max((day for day in days if is_day(day) and day <= today), default=None)

    def _rows(self, ids: Collection[str], *columns: str) -> Iterator[dict[str, Any]]:
        """A row for each of those identifiers that has any: of its last line."""
        for month, names in sorted(group_by_month(ids).items()):
            table = self._month(month, ["arxiv_id", "number", *columns], names)
            rows: dict[str, dict[str, Any]] = {}
            for row in table.to_pylist():
                name, earlier = row["arxiv_id"], rows.get(row["arxiv_id"])
                if name in names and (earlier is None or row["number"] > earlier["number"]):
                    rows[name] = row
            yield from rows.values()

    def _month(
        self, month: str, columns: list[str], ids: Collection[str] | None = None
    ) -> pa.Table:
        """Columns of a month's lines; of those of some papers alone where they are few.

        A damaged conversion is made again, once.
        """
        try:
            return self._read_month(month, columns, ids)
        except (OSError, pa.ArrowInvalid):
            self._converted().unlink(missing_ok=True)
        return self._read_month(month, columns, ids)

    def _read_month(self, month: str, columns: list[str], ids: Collection[str] | None) -> pa.Table:
        with open_parquet(self._converted()) as parquet:
            numbers = set(row_groups_with(parquet, "month", [month]))
            key, values = "month", text_array([month])
            if ids is not None and len(ids) <= _FEW_PAPERS:
                numbers &= set(row_groups_with(parquet, "arxiv_id", ids))
                key, values = "arxiv_id", text_array(ids)
            rows = []
            for number in sorted(numbers):
                group = parquet.read_row_group(number, columns=list({*columns, key}))
                rows.append(group.filter(pc.is_in(group[key], values)).select(columns))
            if not rows:
                return parquet.schema_arrow.empty_table().select(columns)
        return pa.concat_tables(rows)

    def _target(self) -> Path:
        """The conversion's file; its name has the snapshot's size and time."""
        if not self._file.is_file():
            raise MissingInput(f"the metadata snapshot {self._file} is not there: {_WAY_OUT}")
        status = self._file.stat()
        return (
            self._cache / f"{self._name}-{_VERSION}-{status.st_size}-{status.st_mtime_ns}.parquet"
        )

    def _converted(self) -> Path:
        """The conversion, made where it is missing; one process makes it, the others wait."""
        target = self._target()
        if not target.exists():
            with file_lock(self._cache / f"{self._name}.lock", f"the conversion of {self._file}"):
                if not target.exists():
                    self._convert(target)
        return target

    def _convert(self, target: Path) -> None:
        for stale in self._cache.glob(f"{self._name}[-.]*"):
            if stale.suffix != ".lock":
                stale.unlink()
        if self._file.stat().st_size > _NOTED_BYTES:
            publish(
                Notice(
                    f"converting the metadata snapshot {self._file} to Parquet, once, in a minute"
                    " or two"
                )
            )
        staged = target.with_suffix(".tmp")
        try:
            with pq.ParquetWriter(
                staged, _SCHEMA, compression="zstd", use_dictionary=["month", "updated"]
            ) as writer:
                facts = self._write_lines(writer)
                writer.add_key_value_metadata({_FACTS: json.dumps(facts)})
            if self._target() != target:
                raise PermanentFailure(
                    f"the metadata snapshot {self._file} changes while it is read: run again"
                )
            move_into_place(staged, target)
        except (OSError, pa.ArrowException) as error:
            raise PermanentFailure(
                f"{staged}, the conversion of {self._file}, cannot be written ({error}): free some"
                " disk space, or name another data root in CITELOOM_DATA"
            ) from error
        finally:
            staged.unlink(missing_ok=True)

    def _write_lines(self, writer: pq.ParquetWriter) -> dict[str, Any]:
        """Write all lines, in batches sorted by month, and return the facts.

        Raises PermanentFailure where no line is arXiv's.
        """
        numbered = ((number, line) for number, line in enumerate(self._lines(), 1) if line)
        count, unreadable, is_arxivs = 0, [], False
        while True:
            batch = list(islice(numbered, _LINES_PER_BATCH))
            if not batch:
                break
            by_number = {number: _row(number, line) for number, line in batch}
            rows = sorted(row for row in by_number.values() if row)
            if rows:
                columns = [
                    pa.array(column, field.type)
                    for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
                ]
                table = pa.Table.from_arrays(columns, schema=_SCHEMA)
                writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
            shutdown.end_if_asked()
            count += len(batch)
            unreadable += [number for number, row in by_number.items() if row is None]
            is_arxivs = is_arxivs or any(month for month, *_ in rows)
        broken = ""
        if unreadable:
            broken = f", of which {len(unreadable):,} cannot be read (first: line {unreadable[0]})"
        if not is_arxivs:
            raise PermanentFailure(
                f"the metadata snapshot {self._file} holds no line of arXiv's metadata"
                f" ({number_of(count, 'line')}{broken}): {_WAY_OUT}"
            )
        if unreadable:
            publish(
                Notice(
                    f"the metadata snapshot {self._file} has {count:,} lines{broken}; their papers"
                    " count as missing from it"
                )
            )
        return {"lines": count, "broken_lines": len(unreadable)}

    def _lines(self) -> Iterator[bytes]:
        """The lines without the white space around them; `_TOO_LONG` for a longer one."""
        # isal inflates 1.2 GB/s on one core, the standard library 0.3 GB/s.
        from isal import igzip, isal_zlib

        damage = cast("type[Exception]", isal_zlib.error)
        try:
            open_file = igzip.open if self._file.suffix == ".gz" else open
            with cast(BinaryIO, open_file(self._file, "rb")) as stream:
                while line := stream.readline(_LONGEST_LINE):
                    is_whole = len(line) < _LONGEST_LINE or line.endswith(b"\n")
                    yield line.strip() if is_whole else _TOO_LONG
                    while len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                        line = stream.readline(_LONGEST_LINE)
        except (OSError, EOFError, damage) as error:
            raise PermanentFailure(
                f"the metadata snapshot {self._file} cannot be read ({error}): download it again,"
                " or set CITELOOM_METADATA_SNAPSHOT to another file"
            ) from error


def _row(number: int, line: bytes) -> tuple[str, str, int, str, bytes, bytes] | None:
    """A row of the conversion; None for a line that is no JSON or names no paper."""
    try:
        paper = orjson.loads(line)
        name, updated = paper["id"], str(paper.get("update_date") or "")
    except _OTHER_SHAPE:
        return None
    if not (name and isinstance(name, str)):
        return None
    arxiv_id = strip_version(name)
    return month_of(arxiv_id) or "", arxiv_id, number, updated, xxh3_128_digest(line), line


def parse_record(content: Mapping[str, Any]) -> Record:
    """A line of the snapshot as a record, white space folded, null where the line has null.

    Raises TypeError, ValueError, AttributeError or KeyError for a line of another shape.
    """
    categories = content.get("categories") or ""
    if not isinstance(categories, str):
        categories = " ".join(categories)  # copies of 2020 and before hold a list of one string
    categories = tuple(categories.split())
    if not categories:
        # arXiv's records all have one, so it is truncated. Accepted, it would put its paper among
        # those of other subjects; refused, the next source is asked.
        raise ValueError("it has no category")
    parsed_authors = content.get("authors_parsed")
    if parsed_authors:
        authors = tuple(filter(None, map(_name, parsed_authors)))
    else:
        authors = split_author_line(content.get("authors") or "")
    versions = content.get("versions") or []
    number = None
    if versions:
        newest = versions[-1]
        text = newest if isinstance(newest, str) else newest["version"]
        number = int(text.removeprefix("v"))
        if not 0 < number < _HIGHEST_VERSION:
            raise ValueError(f"there is no version {number}")
    record = Record(
        arxiv_id=strip_version(content["id"]),
        version=number,
        title=fold(content.get("title")),
        authors=authors,
        abstract=fold(content.get("abstract")),
        categories=categories,
        primary_category=categories[0],
        published=_date(versions[0]) if versions else None,
        updated=_date(versions[-1]) if versions else None,
        doi=plain_doi(fold(content.get("doi"))),
        journal_ref=fold(content.get("journal-ref")),
        comment=fold(content.get("comments")),
        source="snapshot",
    )
    return with_status(record)


def _date(version: Mapping[str, str] | str) -> str | None:
    created = None if isinstance(version, str) else version.get("created")
    return parse_day(created) if created else None


def _name(parts: list[str]) -> str:
    """A name in reading order from [family, given, suffix, affiliation, …]."""
    family, given, suffix = [*parts, "", "", ""][:3]
    return one_line(f"{given} {family} {suffix}")
