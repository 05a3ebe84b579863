"""What the scripts share: interleaved timing, and the result as a table and one line of JSON."""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import platform
import socket
import statistics
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that is to be at least `target`, or at most."""

    claim: str
    value: float
    target: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target


def argument_parser(doc: str | None, quick: str) -> argparse.ArgumentParser:
    """What every script takes: `--quick`, with what it means, and `--json`, which changes nothing.

    doc: the script's, which `--help` shows.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help="JSON is the last line in any case")
    return parser


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, list[float]]:
    """CPU seconds of each contender in each round, by turns: a slow minute hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            started = time.process_time()
            work()
            seconds[name].append(time.process_time() - started)
    return seconds


def apart(work: Callable[..., Any], *arguments: object) -> Any:
    """Run something in a fresh process, which may have children of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def compile_modules() -> None:
    """Compile the product's modules, as an installation does: a process that has to compile them
    first takes a second of processor time more.
    """
    for package in ("pipeline", "assets", "resources", "sensors", "citeloom"):
        compileall.compile_dir(PROJECT / package, quiet=1)


def median_ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Median over the rounds of how many times as long the first takes."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def read_pages(folder: Path) -> list[bytes]:
    """Every page of a folder's zips, in memory."""
    pages = []
    for file in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.endswith(".html")]
            pages += [archive.read(name) for name in names]
    return pages


def percent(part: int, whole: int) -> float:
    """A share in percent, to one digit."""
    return round(100 * part / max(whole, 1), 1)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Seconds of processor time that some work takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens; taken together, so that they differ."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def machine(accelerator: str = "no GPU used") -> str:
    """The machine's class in words, without a name of its own."""
    return (
        f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()},"
        f" {accelerator}"
    )


def report(
    benchmark: str,
    figures: Mapping[str, object],
    claims: Sequence[Claim],
    accelerator: str = "no GPU used",
) -> dict[str, object]:
    """Print the figures, and as the last line one JSON object, which is returned."""
    for name, value in figures.items():
        sys.stdout.write(f"{name:<44} {value}\n")
    for claim in claims:
        verdict, bound = (
            "holds" if claim.holds else "FAILS",
            "at most" if claim.at_most else "at least",
        )
        sys.stdout.write(f"{verdict:<6} {claim.claim}: {claim.value} ({bound} {claim.target})\n")
    stated = [{**asdict(claim), "holds": claim.holds} for claim in claims]
    result = {
        "benchmark": benchmark,
        "machine": machine(accelerator),
        "figures": dict(figures),
        "claims": stated,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return result
