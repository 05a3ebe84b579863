"""A synthetic month of 10,000 pages, from zips to passages: speed with 1 and 2 workers, and memory
that stays flat.

    python -m benchmarks.corpus [--quick] [--pages N]

Pages: for every 10, three real ones of ../shared/data/dump (620 KB each) and seven of the sample
corpus (57 KB), 226 KB on average, in three zips laid out as ar5iv's; the sample's alone where the
real ones are not there. Every run is a process of its own; its memory is that of the process and
its workers together, sampled from /proc. The contender is a plain loop over pages in one process,
with BeautifulSoup and mwparserfromhtml as in the arXivBot report.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Claim, argument_parser, report

PROJECT = Path(__file__).resolve().parent.parent
REAL_DUMP = PROJECT.parent / "shared" / "data" / "dump"
SAMPLE_DUMP = PROJECT / "examples" / "dump"
MONTH = "2024-03"
ZIPS = {
    "no-problem": "ar5iv-04-2024-no-problem.zip",
    "warning": "ar5iv-04-2024-warnings.zip",
    "error": "ar5iv-04-2024-errors.zip",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page to be repeated: its bytes, packed once."""

    subset: str
    content: bytes
    packed: bytes
    crc32: int


def read_pages(folder: Path) -> list[Page]:
    """The pages of a folder's zips; none where there is no such folder."""
    found = []
    for name in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(name) as archive:
            for member in archive.namelist():
                if member.endswith(".html"):
                    content = archive.read(member)
                    deflater = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
                    packed = deflater.compress(content) + deflater.flush()
                    found.append(
                        Page(member.partition("/")[0], content, packed, zlib.crc32(content))
                    )
    return found


def mixed(count: int) -> Iterator[tuple[str, Page]]:
    """(identifier, page) of a synthetic month: 3 real pages in 10."""
    real, sample = read_pages(REAL_DUMP), read_pages(SAMPLE_DUMP)
    reals, samples = itertools.cycle(real or sample), itertools.cycle(sample)
    for number in range(1, count + 1):
        yield f"2403.{number:05d}", next(reals) if number % 10 in (0, 3, 6) else next(samples)


class ZipOut:
    """A zip that takes packed members: packing 2 GB anew would take longer than all else."""

    def __init__(self, file: Path) -> None:
        self._out = file.open("wb")
        self._directory: list[bytes] = []

    def add(self, name: str, page: Page) -> None:
        """Write one member."""
        encoded, offset = name.encode(), self._out.tell()
        facts = (20, 0, 8, 0, 0, page.crc32, len(page.packed), len(page.content), len(encoded), 0)
        self._out.write(struct.pack("<4s5H3L2H", b"PK\3\4", *facts) + encoded + page.packed)
        entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, *facts, 0, 0, 0, 0, offset)
        self._directory.append(entry + encoded)

    def close(self) -> None:
        """Write the directory."""
        start, content, count = self._out.tell(), b"".join(self._directory), len(self._directory)
        self._out.write(
            content + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(content), start, 0)
        )
        self._out.close()


def build_month(folder: Path, count: int) -> int:
    """Zips and a snapshot for a month of so many pages; the pages' bytes, unpacked."""
    (folder / "dump").mkdir(parents=True)
    zips = {subset: ZipOut(folder / "dump" / name) for subset, name in ZIPS.items()}
    size = 0
    with (folder / "snapshot.jsonl").open("w") as snapshot:
        for arxiv_id, page in mixed(count):
            zips[page.subset].add(f"{page.subset}/2403/{arxiv_id}.html", page)
            record = {
                "id": arxiv_id,
                "title": "A Paper",
                "abstract": "Of words.",
                "categories": "cs.CL cs.IR",
            }
            snapshot.write(json.dumps({**record, "authors": "A. Author", "versions": []}) + "\n")
            size += len(page.content)
    for written in zips.values():
        written.close()
    return size


def run_month(folder: Path, workers: int) -> None:
    """Run the stages on a month, in this process; prints what was measured as one line of JSON."""
    from pipeline.corpus.stages import PAPERS
    from pipeline.engine.run import run_stage
    from pipeline.engine.stage import Workspace
    from pipeline.settings import load_settings
    from pipeline.stages import STAGES

    settings = load_settings(
        dump_dir=folder / "dump",
        metadata_snapshot=folder / "snapshot.jsonl",
        data=folder / "data",
        arxiv_api=False,
        workers=workers,
    )
    stages = [
        stage
        for stage in STAGES
        if stage.name in ("dump_members", "metadata", PAPERS.name, "passages")
    ]
    seconds, processor = {}, {}
    figures: dict[str, Any] = {"rows": {}}
    for stage in stages:
        before = processor_seconds()
        outcome = run_stage(stage, Workspace(settings), MONTH, force=True)
        seconds[stage.name], processor[stage.name] = outcome.seconds, processor_seconds() - before
        figures["rows"][stage.name] = outcome.rows
        if stage is PAPERS:
            figures["parsing_seconds"] = outcome.measured["parsing_seconds"]
    figures["packing_seconds"] = packing_seconds(Workspace(settings).root.file(PAPERS.table, MONTH))
    sys.stdout.write(json.dumps({**figures, "seconds": seconds, "processor": processor}) + "\n")


def packing_seconds(file: Path) -> float:
    """Processor time from papers to passages for a month, by some ten of its row groups."""
    import pyarrow.parquet as pq

    from pipeline.corpus.passages.stages import PAPER_COLUMNS, pack_batch

    with pq.ParquetFile(file) as parquet:
        count = parquet.num_row_groups
        some = range(0, count, max(1, count // 10))
        batches = [
            batch
            for group in some
            for batch in parquet.iter_batches(row_groups=[group], columns=PAPER_COLUMNS)
        ]
    started = time.process_time()
    for batch in batches:
        pack_batch(batch)
    return (time.process_time() - started) * count / len(some)


def processor_seconds() -> float:
    """Processor time of this process, of its children, and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ended = sum(one.ru_utime + one.ru_stime for one in used)
    return ended + sum(map(processor_seconds_of, children_of(os.getpid())))


def processor_seconds_of(process: int) -> float:
    """Processor time of a process that runs, to a hundredth of a second."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class MemoryWatch:
    """Samples the resident memory of a process with its children; keeps the highest, in bytes."""

    def __init__(self, process: int) -> None:
        self._process, self._done = process, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.highest = 0

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            family = [self._process, *children_of(self._process)]
            self.highest = max(self.highest, sum(resident_bytes(process) for process in family))


def children_of(process: int) -> list[int]:
    """The processes that any thread of a process started."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    try:
        return [int(child) for file in listed for child in file.read_text().split()]
    except OSError:
        return []


def resident_bytes(process: int) -> int:
    """Resident memory of a process; 0 where it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize()


def measure(folder: Path, workers: int) -> dict[str, Any]:
    """One run of a month in a fresh process, with its peak memory in MB."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.corpus",
        "--run",
        str(folder),
        "--workers",
        str(workers),
    ]
    child = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE)
    with MemoryWatch(child.pid) as memory:
        told, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"the run with {workers} workers failed")
    return {**json.loads(told.splitlines()[-1]), "peak_mb": memory.highest / 1e6}


def report_way(pages: Sequence[Page]) -> float:
    """Pages a second of a user's plain loop from zip bytes to passages, in one process."""
    from pipeline.corpus.parse import reference
    from pipeline.corpus.passages.packing import pack

    started = time.perf_counter()
    for page in pages:
        paper = reference.parse(zlib.decompress(page.packed, -zlib.MAX_WBITS))
        pack({**paper.as_row(), "arxiv_id": "2403.00001", "categories": ["cs.CL"], "year": 2024})
    return len(pages) / (time.perf_counter() - started)


def taken(run: dict[str, Any]) -> float:
    """Seconds of papers and passages."""
    return float(run["seconds"]["papers"] + run["seconds"]["passages"])


def not_parsing(run: dict[str, Any]) -> float:
    """The part of papers' and passages' processor time that is not page → Paper → passages."""
    processor = run["processor"]["papers"] + run["processor"]["passages"]
    return 1 - (run["parsing_seconds"] + run["packing_seconds"]) / processor


def speed_figures(
    name: str, runs: Sequence[dict[str, Any]], count: int, megabytes: float
) -> dict[str, object]:
    """Pages and MB a second over papers and passages, and seconds by stage: medians of the runs."""
    seconds = statistics.median(map(taken, runs))
    figures: dict[str, object] = {
        f"{name}, pages/s": round(count / seconds, 1),
        f"{name}, MB/s": round(megabytes / seconds, 1),
    }
    for stage in runs[0]["seconds"]:
        figures[f"{name}, {stage}, s"] = round(
            statistics.median(run["seconds"][stage] for run in runs), 2
        )
    return figures


def processor_figures(run: dict[str, Any]) -> dict[str, object]:
    """Where the processor time of papers and passages goes."""
    stages, parts = ("papers", "passages"), ("parsing_seconds", "packing_seconds")
    return {
        "processor seconds of papers, passages": [
            round(run["processor"][stage], 1) for stage in stages
        ],
        "of these page to paper, paper to passages": [round(run[part], 1) for part in parts],
    }


def compare(folder: Path, count: int, rounds: int) -> tuple[dict[str, object], list[Claim]]:
    """Figures and claims from runs of a month of `count` pages and of a tenth (at least 200)."""
    size, fewer = build_month(folder / "whole", count), max(count // 10, 200)
    build_month(folder / "fewer", fewer)
    one, two = [], []
    for _ in range(rounds):
        one.append(measure(folder / "whole", 1))
        two.append(measure(folder / "whole", 2))
    peak, small_peak = max(run["peak_mb"] for run in two), measure(folder / "fewer", 2)["peak_mb"]
    contender = report_way([page for _, page in mixed(60)])
    speedup = statistics.median(taken(a) / taken(b) for a, b in zip(one, two, strict=True))
    figures: dict[str, object] = {"pages": count, "megabytes": round(size / 1e6), "rounds": rounds}
    figures |= {"passages": two[0]["rows"]["passages"]}
    figures |= speed_figures("1 worker, 1 core", one, count, size / 1e6) | speed_figures(
        "2 workers", two, count, size / 1e6
    )
    figures["the report's way, pages/s"] = round(contender, 1)
    figures["times the report's way, 1 worker"] = round(
        count / statistics.median(map(taken, one)) / contender, 1
    )
    figures |= {f"peak memory of {count:,} pages, MB": round(peak)}
    figures |= {f"peak memory of {fewer:,} pages, MB": round(small_peak)} | processor_figures(
        two[0]
    )
    return figures, [
        Claim(
            "times as fast with two workers on two cores as with one on one", round(speedup, 2), 1.8
        ),
        Claim(
            "peak memory, times that of a tenth of the pages",
            round(peak / small_peak, 2),
            1.2,
            at_most=True,
        ),
        Claim(
            "share of the time that does not go to parsing",
            round(statistics.median(map(not_parsing, two)), 3),
            0.2,
            True,
        ),
    ]


def main() -> None:
    """Measure, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="500 pages")
    arguments.add_argument("--pages", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument(
        "--run", type=Path, help="run one month that lies in this folder, and nothing else"
    )
    arguments.add_argument("--workers", type=int, default=1)
    given = arguments.parse_args()
    if given.run:
        if given.workers == 1:
            # Beside one worker the main process would take a part of a second core: one core is one
            # core.
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        run_month(given.run, given.workers)
        return
    with tempfile.TemporaryDirectory() as folder:
        report("corpus", *compare(Path(folder), 500 if given.quick else given.pages, given.rounds))


if __name__ == "__main__":
    main()
