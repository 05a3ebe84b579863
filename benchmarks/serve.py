"""Searches on the page of `citeloom serve` at a fixed rate, the rate at which it breaks, and the
same by the CLI.

    python -m benchmarks.serve [--root FOLDER] [--quick]

root: a data root with an index; by default that of the sample corpus, made in a temporary folder,
which is not timed.
The server is a process of its own. Requests arrive in an open loop: at their times, whether or not
earlier ones are answered, so that waiting counts. Each asks for the page of results of the first
two to twelve words of another sentence of the corpus. The rate doubles, then closes in on the
highest one at which 95 % of the pages come within 150 ms and none fails. Against it stands
`citeloom search`, which starts anew for each query, one after another.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from benchmarks.harness import Claim, argument_parser, free_ports, report
from benchmarks.quotes import paragraphs
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.ops.run_months import known_months, run_months
from pipeline.ops.services import release_services
from pipeline.settings import load_settings
from pipeline.stages import choose_stages

RATE, LONGEST = 20.0, 0.150
SECONDS, QUICK_SECONDS, ROUNDS = 20.0, 5.0, 5
CLI_SEARCHES, QUICK_CLI_SEARCHES = 10, 2
_TIMEOUT = 10.0
_WORDS = (2, 12)
COMMAND = [sys.executable, "-c", "from pipeline.doors.cli import main; main()"]


@dataclass(frozen=True, slots=True)
class Load:
    """Seconds until each page of a load, sorted, and how many requests failed."""

    rate: float
    seconds: list[float]
    failed: int

    def percentile(self, share: float) -> float:
        """Seconds within which this share of the pages came; a failure counts as the longest."""
        padded = [*self.seconds, *[_TIMEOUT] * self.failed]
        return padded[min(int(share * len(padded)), len(padded) - 1)]

    @property
    def holds(self) -> bool:
        return self.failed == 0 and self.percentile(0.95) <= LONGEST


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argument_parser(__doc__, "a few seconds of each rate")
    parser.add_argument("--root", type=Path, default=None)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(
            load_settings(data=options.root or folder, _env_file=None, arxiv_api=False)
        )
        if options.root is None:
            run_months(
                workspace, known_months(workspace, "all"), choose_stages(until="index_receipts")
            )
            release_services()
        measure(workspace, quick=options.quick)


def measure(workspace: Workspace, *, quick: bool) -> None:
    """Load the server at the rate of the claim and then at others, and search by the CLI."""
    months = workspace.root.months(tables.PASSAGES)
    sentences = sorted(
        {sentence for month in months for sentence, _ in paragraphs(workspace, month)}
    )
    draw = random.Random(7)
    draw.shuffle(sentences)
    queries = [" ".join(sentence.split()[: draw.randint(*_WORDS)]) for sentence in sentences]
    seconds = QUICK_SECONDS if quick else SECONDS
    with serving(workspace) as (url, server):
        asyncio.run(load(url, queries, RATE, 3.0))  # the model is loaded by the first search
        before = processor_seconds(server)
        rounds = [asyncio.run(load(url, queries, RATE, seconds)) for _ in range(ROUNDS)]
        spent = processor_seconds(server) - before
        highest, loads = find_highest_rate(url, queries, seconds / 2)
    # Neighbours on a shared machine slow some rounds down.
    at_rate = sorted(rounds, key=lambda load: load.percentile(0.95))[ROUNDS // 2]
    by_cli = [
        search_by_cli(workspace, query)
        for query in queries[: QUICK_CLI_SEARCHES if quick else CLI_SEARCHES]
    ]
    figures: dict[str, object] = {
        "queries to draw from": len(queries),
        **{
            f"{RATE:.0f}/s: {name}": ms(at_rate.percentile(share))
            for name, share in _SHARES.items()
        },
        f"{RATE:.0f}/s: 95 % ms of each round": [ms(load.percentile(0.95)) for load in rounds],
        f"{RATE:.0f}/s: requests": len(at_rate.seconds) + at_rate.failed,
        f"{RATE:.0f}/s: failed": at_rate.failed,
        f"{RATE:.0f}/s: processor ms of the server for a page": ms(
            spent / sum(len(each.seconds) for each in rounds)
        ),
        **{
            f"{load.rate:.0f}/s: 95 %, failed": f"{ms(load.percentile(0.95))}, {load.failed}"
            for load in loads
        },
        "highest rate with 95 % under 150 ms": round(highest, 1),
        "citeloom search: median ms": ms(statistics.median(by_cli)),
        "citeloom search: searches a second": round(1 / statistics.median(by_cli), 2),
    }
    report(
        "serve",
        figures,
        [Claim(f"ms within which 95 % of the pages come at {RATE:.0f} a second",
               ms(at_rate.percentile(0.95)), 1000 * LONGEST, at_most=True)],
    )  # fmt: skip


_SHARES = {"median ms": 0.5, "95 % ms": 0.95, "99 % ms": 0.99}


def ms(seconds: float) -> float:
    """Seconds as milliseconds with one decimal."""
    return round(1000 * seconds, 1)


def find_highest_rate(url: str, queries: Sequence[str], seconds: float) -> tuple[float, list[Load]]:
    """The highest rate that holds, within 10 %, and the loads that were tried."""
    loads: list[Load] = []
    held, broken = RATE / 4, RATE / 4
    while True:
        broken *= 2
        loads.append(asyncio.run(load(url, queries, broken, seconds)))
        if not loads[-1].holds:
            break
        held = broken
    while broken / held > 1.1:
        middle = (held * broken) ** 0.5
        loads.append(asyncio.run(load(url, queries, middle, seconds)))
        held, broken = (middle, broken) if loads[-1].holds else (held, middle)
    return held, loads


async def load(url: str, queries: Sequence[str], rate: float, seconds: float) -> Load:
    """Request pages at a rate for some seconds, at independent times (a Poisson process)."""
    draw = random.Random(rate)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx2.AsyncClient(base_url=url, timeout=_TIMEOUT, limits=limits) as client:
        started = time.perf_counter()
        arrival, requests = 0.0, []
        while arrival < seconds:
            query = queries[len(requests) % len(queries)]
            requests.append(asyncio.create_task(_request(client, query, started + arrival)))
            arrival += draw.expovariate(rate)
        answers = await asyncio.gather(*requests)
    done = sorted(answer for answer in answers if answer is not None)
    return Load(rate, done, len(answers) - len(done))


async def _request(client: httpx2.AsyncClient, query: str, due: float) -> float | None:
    """Seconds from when a page was due to be requested until it is there; None without one."""
    await asyncio.sleep(max(0.0, due - time.perf_counter()))
    try:
        answer = await client.get("/search", params={"q": query})
    except httpx2.HTTPError:
        return None
    return time.perf_counter() - due if answer.status_code == 200 else None


@contextmanager
def serving(workspace: Workspace) -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of a `citeloom serve` over the data root."""
    port = free_ports(1)[0]
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", str(port)], env=environment_of(workspace)
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                httpx2.get(f"{url}/style.css", timeout=5)
                break
            except httpx2.HTTPError:
                time.sleep(0.2)
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def processor_seconds(process: psutil.Process) -> float:
    """The processor time that a process has taken, of all its threads."""
    times = process.cpu_times()
    return float(times.user + times.system)


def search_by_cli(workspace: Workspace, query: str) -> float:
    """Seconds of one `citeloom search`."""
    started = time.perf_counter()
    subprocess.run(
        [*COMMAND, "search", query, "--limit", "30", "--json"],
        env=environment_of(workspace),
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - started


def environment_of(workspace: Workspace) -> dict[str, str]:
    """This process's environment, with the data root of the workspace."""
    return {**os.environ, "CITELOOM_DATA": str(workspace.root.path)}


if __name__ == "__main__":
    main()
