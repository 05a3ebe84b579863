"""The conversion of the metadata snapshot to Parquet, against what one would write instead; and
what arXiv's API would take for as many papers.

    python -m benchmarks.metadata [--quick]

The snapshot is made for the purpose: the 200 true lines of ../shared/data (else those of the sample
corpus) over and over, each with an identifier of its own, 500,000 lines of 1.4 KB in 100 months;
what arXiv's 2.7 million lines take is
extrapolated from it. All rates are of CPU time, as of one core. What the API takes is computed, not
tried: 3 s for each request, which arXiv asks for, and our parsing as measured here. DuckDB writes
the same columns, with the number of the row for that of the line, which it cannot tell where lines
are blank.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.harness import Claim, argument_parser, interleaved, report
from pipeline.arxiv.api import read_feed
from pipeline.arxiv.rate_limited_client import GAP_SECONDS
from pipeline.arxiv.snapshot import Snapshot

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared" / "data" / "metadata"
LINES = (SHARED / "snapshot_200_lines.jsonl", PROJECT / "examples" / "metadata.jsonl")

# Pages of the data set's part `no_problem`, whose papers need metadata first.
PAPERS = 366_232
# arXiv's snapshot of 2026 has about as many.
SNAPSHOT_LINES = 2_700_000
IDS_PER_REQUEST = 100
MONTHS = 100
_ID = re.compile(rb'"id":\s*"[^"]+"')
_ENTRY = (
    "<entry><id>http://arxiv.org/abs/{}v1</id><title>{}</title><updated>2024-03-05T09:00:00Z</updated><summary>{}</summary><category"
    " term='cs.CL'/><published>2024-03-04T09:00:00Z</published><author><name>A."
    " One</name></author></entry>"
)


def identifiers(lines: int) -> Iterator[str]:
    """As many identifiers as lines, in arXiv's order, evenly over the months from 2015-01 on."""
    for number in range(lines):
        month, place = divmod(number, lines // MONTHS)
        yield f"{15 + month // 12:02}{month % 12 + 1:02}.{place + 1:05}"


def write_snapshot(file: Path, lines: int) -> None:
    """A snapshot of so many lines, plain, and beside it as .gz."""
    from isal import igzip

    source = next(path for path in LINES if path.is_file()).read_bytes().splitlines()
    packed = file.with_suffix(".jsonl.gz")
    with file.open("wb") as plain, igzip.open(packed, "wb", compresslevel=2) as gz:  # type: ignore[no-untyped-call]
        for number, name in enumerate(identifiers(lines)):
            line = (
                _ID.sub(b'"id": "%b"' % name.encode(), source[number % len(source)], count=1)
                + b"\n"
            )
            plain.write(line)
            gz.write(line)


def conversion(file: Path) -> Callable[[], object]:
    """Our conversion, from nothing each time."""

    def work() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(dir=file.parent) as cache:
            return Snapshot(file, Path(cache)).facts()

    return work


def duckdb_conversion(file: Path) -> Callable[[], object]:
    """The same columns by DuckDB alone, sorted by month, on two threads."""
    select = r"""
        select regexp_extract(id, '(?:^|/)(\d{4})', 1) as month,
          regexp_replace(id, '(\d)v\d+$', '\1') as arxiv_id,
            number, md5(line) as digest, line
        from (
            select row_number() over () as number, json::varchar as line, json->>'$.id' as id
            from read_ndjson_objects($file, ignore_errors = true)
        ) order by month, arxiv_id, number"""

    def work() -> None:
        import duckdb

        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            limits = {"threads": 2, "memory_limit": "800MB", "temp_directory": folder}
            with duckdb.connect(config=limits) as connection:
                rows = connection.sql(select, params={"file": str(file)})
                rows.write_parquet(
                    f"{folder}/out.parquet", compression="zstd", row_group_size=10_240
                )

    return work


def bytes_a_record() -> float:
    """Size of the conversion of the true lines; the made snapshot repeats them, so that it is
    packed far too well.
    """
    source = next(path for path in LINES if path.is_file())
    with tempfile.TemporaryDirectory() as cache:
        facts = Snapshot(source, Path(cache)).facts()
    return float(facts["bytes"] / facts["lines"])


def memory_of_conversion(file: Path) -> float:
    """Megabytes that a fresh process holds at most, all of it, when it converts a snapshot."""
    conversion(file)()
    peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(peak[1]) / 1024 if peak else 0.0


def plain_loop(file: Path, parse: Callable[[bytes], Any]) -> Callable[[], object]:
    """A loop that parses line by line and keeps where each line lies; nothing on disk."""

    def work() -> dict[str, int]:
        places, position = {}, 0
        with file.open("rb") as stream:
            for line in stream:
                places[parse(line)["id"]] = position
                position += len(line)
        return places

    return work


def arrow(file: Path) -> Callable[[], object]:
    """pyarrow's reader of JSON lines, on one thread, of the part that is in `file`."""

    def work() -> int:
        import pyarrow.json as reader

        options = reader.ReadOptions(use_threads=False, block_size=1 << 24)
        return int(reader.read_json(file, read_options=options).num_rows)

    return work


def pandas_chunks(file: Path) -> Callable[[], object]:
    """pandas, in chunks, since the whole file as a frame takes several times its size in memory."""

    def work() -> int:
        import pandas

        with pandas.read_json(file, lines=True, chunksize=10_000, dtype=False) as chunks:
            return sum(map(len, chunks))

    return work


def feed(entries: int) -> bytes:
    """An answer of the API with so many entries of a true length."""
    names = (f"2403.{number:05}" for number in range(entries))
    body = "".join(
        _ENTRY.format(name, "On many things, and on some others", "We say. " * 150)
        for name in names
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{body}</feed>'.encode()


def contenders(folder: Path, lines: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Each way to read, with how many records it reads; `rows` are a month's."""
    import orjson

    file, part, some = folder / "snapshot.jsonl", folder / "part.jsonl", lines // 10
    write_snapshot(file, lines)
    with file.open("rb") as stream:
        part.write_bytes(b"".join(islice(stream, some)))
    cache = folder / "cache"
    cache.mkdir()
    snapshot, month = (
        Snapshot(file, cache),
        [name for name in identifiers(lines) if name.startswith("1501.")],
    )
    snapshot.facts()
    return {
        "our conversion, plain": (lines, conversion(file)),
        "our conversion, .gz": (lines, conversion(file.with_suffix(".jsonl.gz"))),
        "DuckDB's conversion, plain": (lines, duckdb_conversion(file)),
        "loop of json.loads": (some, plain_loop(part, json.loads)),
        "loop of orjson.loads": (some, plain_loop(part, orjson.loads)),
        "pyarrow.json": (some, arrow(part)),
        "pandas.read_json": (some, pandas_chunks(part)),
        "our rows of a month": (
            len(month),
            lambda: [one.as_row() for one in snapshot.find(month).values()],
        ),
    }


def rates(folder: Path, lines: int, rounds: int) -> dict[str, float]:
    """Records per second of each way: the median over the rounds, in which all take turns."""
    ways = contenders(folder, lines)
    seconds = interleaved({name: work for name, (_, work) in ways.items()}, rounds)
    return {name: count / statistics.median(seconds[name]) for name, (count, _) in ways.items()}


def sources(rate: Mapping[str, float], rounds: int) -> dict[str, object]:
    """Requests and computed hours for the papers of `no_problem`, from each source."""
    answers = {count: feed(count) for count in (1, IDS_PER_REQUEST)}
    seconds = interleaved(
        {str(count): partial(read_feed, body) for count, body in answers.items()}, 9 * rounds
    )
    told: dict[str, object] = {}
    for count in answers:
        requests = -(-PAPERS // count)
        parsing = requests * statistics.median(seconds[str(count)])
        way = "one id a request" if count == 1 else f"{count} ids a request"
        hours = (requests * GAP_SECONDS + parsing) / 3600
        told[f"{PAPERS:,} papers, {way}"] = (
            f"{requests:,} requests, {hours:,.1f} h, of which {parsing:,.0f} s parsing"
        )
    by_snapshot = (
        SNAPSHOT_LINES / rate["our conversion, plain"] + PAPERS / rate["our rows of a month"]
    )
    told[f"{PAPERS:,} papers, snapshot of {SNAPSHOT_LINES:,}"] = (
        f"0 requests, {by_snapshot:,.0f} s, at the rates above"
    )
    return told


def main() -> None:
    """Measure, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="50,000 lines, one round")
    lines, rounds = (50_000, 1) if arguments.parse_args().quick else (500_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        rate = rates(Path(folder), lines, rounds)
        file = Path(folder) / "snapshot.jsonl"
        size = file.stat().st_size
        with get_context("spawn").Pool(1) as pool:
            peak = pool.apply(memory_of_conversion, (file,))
    figures: dict[str, object] = {"lines": lines, "megabytes": round(size / 1e6), "rounds": rounds}
    figures |= {f"{name}, records/s of one core": round(found) for name, found in rate.items()}
    figures["bytes on disk, a record"] = round(bytes_a_record())
    figures["megabytes of memory, a process that converts"] = round(peak)
    claims = [
        Claim(
            f"processor seconds to convert {SNAPSHOT_LINES:,} records, {kind}",
            round(SNAPSHOT_LINES / rate[f"our conversion, {kind}"]),
            120,
            at_most=True,
        )
        for kind in ("plain", ".gz")
    ]
    claims.append(Claim("MB of memory of the conversion", round(peak), 1_000, at_most=True))
    report("metadata", figures | sources(rate, rounds), claims)


if __name__ == "__main__":
    main()
