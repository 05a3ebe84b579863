"""What a scan over all codes of a large collection costs: nearest of several queries, from a file.

    python -m benchmarks.scan_codes [--quick] [--vectors 100000000] [--bits 2] [--folder FOLDER]

A file of the size that the codes of so many vectors have, 1,024 dimensions of 2 or 4 bits each. Its
codes are drawn at random: neither recall nor a real vector is in it. Each process, one for each
core, decodes its part block by block with numpy and keeps the best 150 of each query. The system's
cache of the file is emptied before. It is a bound, and no search of this product: a graph visits a
few thousand codes of a shard and not all.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.harness import Claim, argument_parser, report

DIMENSIONS, QUERIES, BEST = 1_024, 8, 150
VECTORS, QUICK_VECTORS = 100_000_000, 200_000
# As many decoded ones stay in a core's cache.
BLOCK = 512
# The codes of so many vectors are drawn, and written again and again.
DRAWN = 262_144

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Part:
    """What one process scans. seconds_of_reading are of its `seconds`; memory is its own, MB."""

    best: Scores
    seconds_of_reading: float
    memory: float


def write_codes(file: Path, vectors: int, bytes_each: int) -> None:
    """A file of random codes."""
    drawn = np.random.default_rng(0).integers(0, 256, (DRAWN, bytes_each), np.uint8)
    with file.open("wb") as out:
        for start in range(0, vectors, DRAWN):
            out.write(drawn[: vectors - start].data)
        out.flush()
        os.fsync(out.fileno())
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def levels_of_bytes(bits: int) -> Scores:
    """The values that each of the 256 bytes stands for: a row of 4 (2 bits) or 2 (4 bits)."""
    levels = np.linspace(-1, 1, 1 << bits, dtype=np.float32)
    shifts = np.arange(0, 8, bits)
    return levels[(np.arange(256)[:, None] >> shifts) & ((1 << bits) - 1)]


def scan(file: Path, bits: int, bounds: tuple[int, int]) -> Part:
    """The scores of the best vectors from one number to another, for each query."""
    queries = np.random.default_rng(1).standard_normal((DIMENSIONS, QUERIES), np.float32)
    levels, best = levels_of_bytes(bits), np.full((BEST, QUERIES), -np.inf, np.float32)
    reading = 0.0
    for codes, seconds in blocks(file, DIMENSIONS * bits // 8, bounds):
        reading += seconds
        scores = np.take(levels, codes, axis=0).reshape(-1, DIMENSIONS) @ queries
        found = scores[(scores > best[0]).any(axis=1)]
        best = np.sort(np.concatenate([best, found]), axis=0)[-BEST:]
    return Part(best, reading, psutil.Process().memory_info().rss / 1e6)


def blocks(
    file: Path, bytes_each: int, bounds: tuple[int, int]
) -> Iterator[tuple[NDArray[np.uint8], float]]:
    """The codes of a part, block by block, each with the seconds that it took to read."""
    with file.open("rb", buffering=0) as source:
        source.seek(bounds[0] * bytes_each)
        for start in range(*bounds, BLOCK):
            began = time.perf_counter()
            read = source.read(min(BLOCK, bounds[1] - start) * bytes_each)
            seconds = time.perf_counter() - began
            yield np.frombuffer(read, np.uint8).reshape(-1, bytes_each), seconds


def main() -> None:
    """Write the file, scan it, print the figures."""
    parser = argument_parser(__doc__, f"{QUICK_VECTORS:,} vectors")
    parser.add_argument("--vectors", type=int, default=0)
    parser.add_argument("--bits", type=int, choices=(2, 4), default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where the file is made")
    options = parser.parse_args()
    vectors = options.vectors or (QUICK_VECTORS if options.quick else VECTORS)
    bytes_each, cores = DIMENSIONS * options.bits // 8, os.cpu_count() or 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = Path(folder, "codes")
        began = time.perf_counter()
        write_codes(file, vectors, bytes_each)
        writing = time.perf_counter() - began
        size = file.stat().st_size
        edges = [vectors * number // cores for number in range(cores + 1)]
        began = time.perf_counter()
        with get_context("spawn").Pool(cores) as pool:
            parts = pool.map(partial(scan, file, options.bits), pairwise(edges))
        seconds = time.perf_counter() - began
    reading = max(part.seconds_of_reading for part in parts)
    figures = {
        "vectors, bits, gigabytes": f"{vectors:,}, {options.bits}, {size / 1e9:.1f}",
        "queries at once": QUERIES,
        "to write the file, s": round(writing, 1),
        "to scan it, s": round(seconds, 1),
        "of these waiting for the file, s": round(reading, 1),
        "memory of all processes, MB": round(sum(part.memory for part in parts)),
    }
    best = np.sort(np.concatenate([part.best for part in parts]), axis=0)[-BEST:]
    claim = Claim("best vectors kept of each query", int(np.isfinite(best).all(axis=1).sum()), BEST)
    report("scan_codes", figures, [claim])


if __name__ == "__main__":
    main()
