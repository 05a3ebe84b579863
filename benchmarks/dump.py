"""Reading the dump: pages of a large zip against bare inflate and zipfile; the directory of the
largest zip.

    python -m benchmarks.dump [--quick]

Pages: the real ones of ../shared/data/dump where they are there, else the sample corpus; repeated
to 500 MB. The
directory is made up: 1.3 M names, as in the dump's zip of warnings, at positions up to 216 GB (a
file with holes). Everything is written below the system's temporary folder.
"""

from __future__ import annotations

import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

from deflate import deflate_decompress

from benchmarks.harness import Claim, argument_parser, interleaved, median_ratio, read_pages, report
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.member import Member
from pipeline.corpus.dump.reader import MemberReader
from pipeline.settings import Settings, load_settings

PROJECT = Path(__file__).resolve().parent.parent
DUMPS = (PROJECT.parent / "shared" / "data" / "dump", PROJECT / "examples" / "dump")
MEGABYTES, QUICK_MEGABYTES = 500, 60
ENTRIES, QUICK_ENTRIES = 1_300_000, 130_000
LARGEST_ZIP = 216 * 10**9
_LOCAL_HEADER = 30


def write_pages(file: Path, megabytes: int) -> None:
    """A zip of so many megabytes of pages in the data set's layout, 1,000 of them a month."""
    content = read_pages(next(folder for folder in DUMPS if folder.is_dir()))
    written = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, page in zip(count(), cycle(content)):
            month, place = f"{1501 + number // 1000:04}", number % 1000
            archive.writestr(f"error/{month}/{month}.{place:05}.html", page)
            written += len(page)
            if written >= megabytes * 1_000_000:
                return


def names(entries: int) -> Iterator[str]:
    """Names of pages, month after month from 2007-04 on, the same number in each."""
    months = [f"{year:02}{month:02}" for year in range(7, 25) for month in range(1, 13)][3:]
    each = -(-entries // len(months))
    for number in range(entries):
        month = months[number // each]
        yield f"warning/{month}/{month}.{number % each:0{4 if month < '1501' else 5}}.html"


def write_directory(file: Path, entries: int) -> None:
    """A zip that is all directory: pages of 100 kB packed, 600 kB unpacked, without content."""
    step = LARGEST_ZIP // ENTRIES
    with file.open("wb") as stream:
        stream.seek(entries * step)
        for number, name in enumerate(names(entries)):
            extra = struct.pack("<2HQ", 1, 8, number * step)
            lengths = (len(name), len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
            stream.write(
                struct.pack(
                    "<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 8, 0, 0, number, 100_000, 600_000, *lengths
                )
            )
            stream.write(name.encode() + extra)
        end, start = stream.tell(), entries * step
        stream.write(
            struct.pack(
                "<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, entries, entries, end - start, start
            )
        )
        stream.write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
        stream.write(
            struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        )


def settings_for(folder: Path) -> Settings:
    """Settings with a dump and a data root of their own."""
    return load_settings(dump_dir=folder, data=folder / "data")


def members_of(settings: Settings) -> list[Member]:
    """Every page of a dump, in file order."""
    dump = read_dump(settings)
    found = [Member(**row) for month in dump.months for row in dump.pages(month).to_pylist()]
    return sorted(found, key=lambda member: member.offset)


def read_ours(dump_dir: Path, members: list[Member]) -> int:
    """Our way: bytes of all pages, sizes and checksums checked."""
    with MemberReader(dump_dir) as reader:
        return sum(len(reader.read(member)) for member in members)


def read_zipfile(file: Path) -> int:
    """The standard library's way; it checks sizes and checksums too."""
    with zipfile.ZipFile(file) as archive:
        return sum(len(archive.read(info)) for info in archive.infolist())


def packed_pages(file: Path, members: list[Member]) -> list[tuple[int, int, int]]:
    """(position of the packed bytes, how many, size unpacked) of each page."""
    with file.open("rb") as stream:
        found = []
        for member in members:
            stream.seek(member.offset + _LOCAL_HEADER - 4)
            name, extra = struct.unpack("<2H", stream.read(4))
            found.append((stream.tell() + name + extra, member.compressed_bytes, member.bytes))
    return found


def inflate_read(descriptor: int, places: list[tuple[int, int, int]]) -> int:
    """Bare inflate of bytes as they are read: positions known, nothing checked."""
    return sum(
        len(deflate_decompress(os.pread(descriptor, packed, start), size))
        for start, packed, size in places
    )


def inflate_held(held: list[tuple[bytes, int]]) -> int:
    """Bare inflate of bytes in memory."""
    return sum(len(deflate_decompress(packed, size)) for packed, size in held)


def compare_reading(
    folder: Path, megabytes: int, rounds: int
) -> tuple[dict[str, object], list[Claim]]:
    """Figures and claims of reading every page of one zip."""
    file = folder / "ar5iv-04-2024-errors.zip"
    write_pages(file, megabytes)
    members = members_of(settings_for(folder))
    places = packed_pages(file, members)
    descriptor = os.open(file, os.O_RDONLY)
    held = [(os.pread(descriptor, packed, start), size) for start, packed, size in places]
    seconds = interleaved(
        {
            "ours": lambda: read_ours(folder, members),
            "bare inflate, bytes read": lambda: inflate_read(descriptor, places),
            "bare inflate, bytes in memory": lambda: inflate_held(held),
            "zipfile": lambda: read_zipfile(file),
        },
        rounds,
    )
    os.close(descriptor)
    total = sum(member.bytes for member in members) / 1e6
    figures: dict[str, object] = {
        "pages": len(members),
        "megabytes": round(total, 1),
        "rounds": rounds,
    }
    for name, values in seconds.items():
        figures[f"{name}, MB/s of one core"] = round(total / statistics.median(values))
    to_held = round(median_ratio(seconds["ours"], seconds["bare inflate, bytes in memory"]), 2)
    to_read = round(median_ratio(seconds["ours"], seconds["bare inflate, bytes read"]), 2)
    to_zipfile = round(median_ratio(seconds["zipfile"], seconds["ours"]), 2)
    figures["times bare inflate of bytes in memory"] = to_held
    return figures, [
        Claim("times as long as bare inflate of the same bytes", to_read, 1.3, at_most=True),
        Claim("times as fast as Python's zipfile", to_zipfile, 2.0),
    ]


_IMPORTS = (
    "from pipeline.corpus.dump.catalogue import read_dump\nfrom pipeline.settings import"
    " load_settings"
)
_INDEX = "read_dump(load_settings(dump_dir=folder, data=folder / 'data')).months"
_PROGRAMS = {
    "index": (
        (
            "from pipeline.corpus.dump.catalogue import read_dump\nfrom pipeline.settings import"
            " load_settings"
        ),
        _INDEX,
    ),
    "zipfile": ("import zipfile", "zipfile.ZipFile(folder / 'warnings.zip').infolist()"),
}


def measure_apart(program: str, folder: Path) -> tuple[float, float]:
    """(seconds, peak resident MB) of a program in a process of its own, without its imports."""
    imports, work = _PROGRAMS[program]
    code = (
        f"{imports}\nimport json, re, sys, time\nfrom pathlib import Path\nfolder ="
        f" Path(sys.argv[1])\nstarted = time.perf_counter()\nkept = {work}\nseconds ="
        " time.perf_counter() - started\npeak = re.search(r'VmHWM:\\s+(\\d+)',"
        " Path('/proc/self/status').read_text())[1]\nprint(json.dumps([seconds, int(peak) /"
        " 1024]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
    )
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def compare_indexing(folder: Path, entries: int) -> tuple[dict[str, object], list[Claim]]:
    """Figures and claims of reading the directory of a large zip, anew and from the cache."""
    write_directory(folder / "warnings.zip", entries)
    first, first_peak = measure_apart("index", folder)
    second, second_peak = measure_apart("index", folder)
    by_zipfile, zipfile_peak = measure_apart("zipfile", folder)
    settings = settings_for(folder)
    started = time.perf_counter()
    read_dump(settings).pages("2024-03")
    month = time.perf_counter() - started
    figures: dict[str, object] = {
        "entries": entries,
        "index anew, s": round(first, 2),
        "index anew, peak resident MB": round(first_peak),
        "index kept before, s": round(second, 4),
        "index kept before, peak resident MB": round(second_peak),
        "one month's pages from the kept index, s": round(month, 4),
        "kept index, MB": round(
            sum(f.stat().st_size for f in (folder / "data" / "cache" / "zips").iterdir()) / 1e6, 1
        ),
        "zipfile, s": round(by_zipfile, 2),
        "zipfile, peak resident MB": round(zipfile_peak),
    }
    return figures, [
        Claim("seconds to index a zip of 1.3 million pages", round(first, 2), 30.0, at_most=True),
        Claim("GB of memory while it is indexed", round(first_peak / 1000, 2), 1.0, at_most=True),
        Claim("seconds to open it again, index kept", round(second, 3), 1.0, at_most=True),
    ]


def main() -> None:
    """Compare, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="a small zip, two rounds")
    quick = arguments.parse_args().quick
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as temporary:
        reading, indexing = Path(temporary) / "reading", Path(temporary) / "indexing"
        reading.mkdir()
        indexing.mkdir()
        figures, claims = compare_reading(
            reading, QUICK_MEGABYTES if quick else MEGABYTES, 2 if quick else 5
        )
        more, others = compare_indexing(indexing, QUICK_ENTRIES if quick else ENTRIES)
    report("dump", {**figures, **more}, [*claims, *others])


if __name__ == "__main__":
    main()
