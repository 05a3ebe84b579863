"""What a corpus of many months costs: loading, and every operation over it, at several sizes.

    python -m benchmarks.scale [--months 12,100,424] [--papers 4] [--records 0] [--quick]
                               [--folder FOLDER]

A synthetic corpus (benchmarks.synthetic_corpus) grows month by month in one data root: pages are
parsed, packed, given perturbed vectors and loaded into the in-process index by the product's
stages. All months are of the same pages. At each size every operation is run as a user runs it, as
a process of its own: seconds of wall and of processor time, peak memory, bytes that the process
read. Memory is compared without mapped files, which the system takes back when it needs room. From
the sizes follows an exponent: 0 for what does not depend on the months, 1 for what grows with them,
2 with their square.

    exponent of an operation    slope of log(seconds) over log(months), first to last size
    exponent of a load          1 + slope of log(seconds a month) over log(months in the middle of
                                the load), first to last load

Up to each size all months but one are loaded by commands of at most 50, the last by one of its own.
Each figure is written to FOLDER when it is known, and a second call with the same arguments goes on
after the last one: a command that did not end is measured anew.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psutil

from benchmarks.harness import Claim, argument_parser, compile_modules, report
from benchmarks.serve import COMMAND, environment_of, serving
from benchmarks.synthetic_corpus import (
    PerturbedEmbedder,
    SyntheticCorpus,
    months_until,
    sample_texts,
)
from pipeline import tables
from pipeline.embedding.stages import EMBEDDINGS, Embeddings
from pipeline.engine.progress import Event, StageFailed, StageFinished, listening
from pipeline.engine.stage import Stage, Workspace
from pipeline.ops.run_months import run_months
from pipeline.ops.services import release_services
from pipeline.settings import PROJECT, load_settings
from pipeline.stages import STAGES

SIZES, QUICK_SIZES = (12, 100, 424), (6, 12)
PAPERS = 4
DRAFT = PROJECT / "examples" / "draft" / "draft.tex"
# Requests of each kind to one server, after its first search.
SEARCHES = 20
# Months before the first load that counts: they also load libraries and models.
WARM_UP = 2
MONTHS_OF_COMMAND = 50
MOST_OF_LOAD, MOST_OF_SEARCH = 1.1, 0.2
MOST_OF_MEMORY = 1.2
# Own memory for each point of the in-process index, whose segment is not full. The processes that
# hold the index are held to this: a search and an audit do not stay below MOST_OF_MEMORY.
MOST_KB_OF_POINT = 2.5
# Operations of one server, whose memory is that of all of them.
SERVER = "search"
WITH_INDEX = ("audit", "search, a process", SERVER)
QUERIES = (
    "test collection for passage retrieval",
    "how do judges agree on relevance",
    "dense retrieval with section headings",
    "limits of sparse attention in long documents",
    "related work generation from references",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operation cost. peak_mb: most memory, mapped files included. own_mb: without them.
    read_mb: bytes that its process read from files, cached or not. open_files: the most that it had
    open at once, sockets included.
    """

    seconds: float
    processor_seconds: float = 0.0
    peak_mb: float = 0.0
    own_mb: float = 0.0
    read_mb: float = 0.0
    open_files: int = 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Grow the corpus, measure at each size, print the figures."""
    parser = argument_parser(__doc__, "12 months of four papers")
    parser.add_argument("--months", default="", help="sizes, ascending, such as 12,100,424")
    parser.add_argument("--papers", type=int, default=PAPERS, help="papers of a month, 999 at most")
    parser.add_argument("--records", type=int, default=0, help="records of other archives")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args(arguments)
    default_sizes = QUICK_SIZES if options.quick else SIZES
    sizes = [int(size) for size in options.months.split(",") if size] or list(default_sizes)
    if len(set(sizes)) < 2:
        parser.error("--months: an exponent needs two sizes or more")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        Measurement(folder, sizes, options.papers, options.records).run()


class Measurement:
    """One growing data root in a folder."""

    def __init__(self, folder: Path, sizes: Sequence[int], papers: int, records: int) -> None:
        self.folder, self.sizes, self.papers, self.records = folder, sizes, papers, records
        self.corpus = SyntheticCorpus(months_until(max(sizes)), papers)
        self.dump, self.snapshot = folder / "dump", folder / "snapshot.jsonl"
        self.loads_file, self.costs_file = folder / "loads.jsonl", folder / "costs.jsonl"
        self.workspace = Workspace(
            load_settings(
                _env_file=None,
                data=folder / "data",
                dump_dir=self.dump,
                metadata_snapshot=self.snapshot,
                arxiv_api=False,
            )
        )

    def run(self) -> None:
        """Load up to each size, and measure there."""
        compile_modules()
        self.dump.mkdir(parents=True, exist_ok=True)
        if not self.snapshot.exists():
            self.corpus.write_snapshot(self.snapshot, self.records)
        stages = self._stages()
        self._compute(self.corpus.months[:WARM_UP], stages, force=True)
        for size in sorted(self.sizes):
            self._load(self.corpus.months[:size], stages)
            self._measure(self.corpus.months[:size])
        self._report({size: self._costs(size) for size in sorted(self.sizes)})

    def _stages(self) -> list[Stage]:
        """All stages; that of embeddings takes perturbed vectors."""
        embedder = PerturbedEmbedder(self.workspace.settings, sample_texts())
        perturbed = Embeddings()
        perturbed.embedder = lambda settings: embedder
        return [perturbed if stage is EMBEDDINGS else stage for stage in STAGES]

    def _load(self, months: Sequence[str], stages: Sequence[Stage]) -> None:
        """Load the months that are missing: all but the last by commands of many months, as a user
        loads a corpus, and the last by one of its own, as a new month comes.
        """
        loaded = {month for load in _read_lines(self.loads_file) for month in load["months"]}
        missing = [month for month in months[WARM_UP:] if month not in loaded]
        several = missing[:-1]
        commands = [
            several[start : start + MONTHS_OF_COMMAND]
            for start in range(0, len(several), MONTHS_OF_COMMAND)
        ]
        for command in [*commands, missing[-1:]]:
            if command:
                self._load_by_one_command(command, stages)
        release_services()

    def _load_by_one_command(self, months: Sequence[str], stages: Sequence[Stage]) -> None:
        interrupted = not set(months).isdisjoint(self.workspace.root.months(tables.DUMP_MEMBERS))
        seconds: dict[str, float] = {}
        with listening(partial(_record, seconds)):
            started, processor_started = time.perf_counter(), _processor_seconds()
            self._compute(months, stages, force=interrupted)
            load = {
                "months": list(months),
                "whole": time.perf_counter() - started,
                "processor": _processor_seconds() - processor_started,
                "memory": psutil.Process().memory_info().rss / 2**20,
                "stages": seconds,
            }
        _add_line(self.loads_file, load)

    def _compute(self, months: Sequence[str], stages: Sequence[Stage], *, force: bool) -> None:
        for month in months:
            self.corpus.write_month(self.dump, month)
        run_months(self.workspace, months, stages, force=force)

    def _measure(self, months: Sequence[str]) -> None:
        """Measure the operations that no earlier call has measured at this size."""
        arxiv_id = self._paper_of(months[len(months) // 2])
        exported = str(self.folder / f"export of {len(months)} months")
        commands = {
            "status after a load": ("status", "--json"),
            "status": ("status", "--json"),
            "run with nothing to do": ("run", "--months", "all", "--json"),
            "refresh with nothing new": ("refresh", "--no-harvest", "--json"),
            "audit": ("audit", "--json"),
            "audit again": ("audit", "--json"),
            "export": ("export", "--to", exported, "--json"),
            "check of a draft": ("check", str(DRAFT), "--json"),
            "search, a process": ("search", QUERIES[0], "--json"),
            "paper, a process": ("paper", arxiv_id, "--cited-by", "--json"),
        }
        measured = self._costs(len(months))
        for name, arguments in commands.items():
            if name not in measured:
                self._add_cost(len(months), name, self._command(*arguments))
        if SERVER not in measured:
            with serving(self.workspace) as (url, server):
                costs = _measure_server(url, server, arxiv_id)
            for name, cost in costs.items():
                self._add_cost(len(months), name, cost)

    def _costs(self, size: int) -> dict[str, Cost]:
        """The operations that were measured at a size."""
        lines = _read_lines(self.costs_file)
        return {line["name"]: Cost(**line["cost"]) for line in lines if line["months"] == size}

    def _add_cost(self, size: int, name: str, cost: Cost) -> None:
        _say(f"{size} months, {name}: {cost}")
        _add_line(self.costs_file, {"months": size, "name": name, "cost": asdict(cost)})

    def _paper_of(self, month: str) -> str:
        """The id of the first paper of a month that is in the corpus."""
        rows = self.workspace.root.read(tables.PAPERS, month, ["arxiv_id"])
        return str(rows["arxiv_id"][0])

    def _command(self, *arguments: str) -> Cost:
        """Run a command of citeloom. Raises CalledProcessError where it fails."""
        return cost_of([*COMMAND, *arguments], self._environment())

    def _environment(self) -> Mapping[str, str]:
        return {
            **environment_of(self.workspace),
            "CITELOOM_DUMP_DIR": str(self.dump),
            "CITELOOM_METADATA_SNAPSHOT": str(self.snapshot),
            "CITELOOM_ARXIV_API": "false",
        }

    def _report(self, operations: Mapping[int, Mapping[str, Cost]]) -> None:
        figures: dict[str, object] = {"papers a month": self.papers, "records": self.records}
        exponents = self._load_exponents(figures)
        smallest, largest = min(operations), max(operations)
        for name, first_cost in operations[smallest].items():
            for size, costs in operations.items():
                cost = costs[name]
                figures[f"{name}, {size} months"] = (
                    f"{cost.seconds:.2f} s, {cost.processor_seconds:.2f} s of processor,"
                    f" {cost.peak_mb:.0f} MB ({cost.own_mb:.0f} of its own),"
                    f" {cost.read_mb:.0f} MB read,"
                    f" {cost.open_files} files open"
                )
            last_cost = operations[largest][name]
            if first_cost.processor_seconds:
                exponents[f"{name}, by processor"] = _slope(
                    smallest, first_cost.processor_seconds, largest, last_cost.processor_seconds
                )
                figures[f"{name}, own memory over that of {smallest} months"] = round(
                    last_cost.own_mb / first_cost.own_mb, 2
                )
            exponents[name] = _slope(smallest, first_cost.seconds, largest, last_cost.seconds)
        figures |= {f"exponent of {name}": round(value, 2) for name, value in exponents.items()}
        figures["bytes a passage"] = self._bytes_a_passage()
        claims = _claims(exponents, operations[smallest], operations[largest])
        points_added = self._passages(largest) - self._passages(smallest)
        for name in WITH_INDEX:
            mb_added = operations[largest][name].own_mb - operations[smallest][name].own_mb
            kb_of_point = 1024 * mb_added / points_added
            claim = f"memory of {name}, KB for each point of the index"
            claims.append(Claim(claim, kb_of_point, MOST_KB_OF_POINT, at_most=True))
        report("scale", figures, claims)

    def _load_exponents(self, figures: dict[str, object]) -> dict[str, float]:
        """Write down what a month of the first and of the last load cost, in all and by stage, and
        what one more month cost; the exponents follow.
        """
        end, spans, single_months = WARM_UP, [], []
        for load in _read_lines(self.loads_file):
            months = len(load["months"])
            if months == 1:
                single_months.append((end + 1, load))
            else:
                spans.append((end + months / 2, load))
            end += months
        exponents = {}

        def compare(name: str, cost_of_load: Callable[[dict[str, Any]], float]) -> None:
            (small, first), (large, last) = spans[0], spans[-1]
            costs = [cost_of_load(load) / len(load["months"]) for load in (first, last)]
            figures[f"load, {name} a month, first and last"] = f"{costs[0]:.2f} {costs[1]:.2f}"
            if max(costs) >= 0.05:
                exponents[f"load, {name}"] = 1 + _slope(small, costs[0], large, costs[1])

        compare("s of processor", lambda load: load["processor"])
        compare("s", lambda load: load["whole"])
        for stage in sorted(spans[0][1]["stages"]):
            compare(f"s of {stage}", partial(_seconds_of_stage, stage))
        for name, cost in (("processor", "s of processor"), ("whole", "s"), ("memory", "MB")):
            figures[f"one more month: {cost}"] = ", ".join(
                f"{load[name]:.2f} at {months} months" for months, load in single_months
            )
        (small, first), (large, last) = single_months[0], single_months[-1]
        exponents["one more month, by processor"] = _slope(
            small, first["processor"], large, last["processor"]
        )
        exponents["memory of a load"] = _slope(small, first["memory"], large, last["memory"])
        return exponents

    def _bytes_a_passage(self) -> dict[str, int]:
        """Bytes of each table and of the index, for each passage."""
        root = self.workspace.settings.data_root
        sizes: dict[str, int] = {}
        for file in Path(str(root)).rglob("*"):
            if file.is_file():
                top = file.relative_to(str(root)).parts[0]
                # Blocks, since Edge's files have holes.
                sizes[top] = sizes.get(top, 0) + file.stat().st_blocks * 512
        passages = self._passages(max(self.sizes))
        return {top: size // passages for top, size in sorted(sizes.items())}

    def _passages(self, size: int) -> int:
        """The number of passages of the first `size` months of the corpus."""
        root, months = self.workspace.root, self.corpus.months[:size]
        return sum(sum(root.group_sizes(tables.PASSAGES, month)) for month in months)


def _read_lines(file: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file; none where it does not exist."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def _add_line(file: Path, content: Mapping[str, Any]) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps(content) + "\n")


def _seconds_of_stage(stage: str, load: Mapping[str, Any]) -> float:
    return float(load["stages"].get(stage, 0.0))


def _record(seconds: dict[str, float], event: Event) -> None:
    match event:
        case StageFinished(outcome):
            seconds[outcome.stage] = seconds.get(outcome.stage, 0.0) + outcome.seconds
        case StageFailed(stage, month, message, _):
            raise SystemExit(f"{stage} of {month} failed: {message}")


def _processor_seconds() -> float:
    """The processor time of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def cost_of(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Run a command to its end. Raises CalledProcessError where its exit code is not 0."""
    started = time.perf_counter()
    process = psutil.Popen(
        command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with _watched(process) as peak:
        output = process.communicate()[0]
    seconds = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return replace(peak[0], seconds=seconds)


@contextmanager
def _watched(process: psutil.Process) -> Iterator[list[Cost]]:
    """Poll a process every 20 ms; the list holds what it has used so far."""
    costs, ended = [Cost(0.0)], threading.Event()

    def poll() -> None:
        while not ended.wait(0.02):
            try:
                times, memory = process.cpu_times(), process.memory_info()
                io, open_files = process.io_counters(), process.num_fds()
            except psutil.Error:
                return
            costs[0] = Cost(
                0.0,
                times.user + times.system,
                max(costs[0].peak_mb, memory.rss / 2**20),
                max(costs[0].own_mb, (memory.rss - memory.shared) / 2**20),
                io.read_chars / 2**20,
                max(costs[0].open_files, open_files),
            )

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield costs
    finally:
        ended.set()
        thread.join()


def _measure_server(url: str, server: psutil.Process, arxiv_id: str) -> dict[str, Cost]:
    """Requests to a server that has answered none yet: median seconds, mean processor seconds."""

    def cost_of_requests(path: str, *parameters: Mapping[str, str]) -> Cost:
        seconds, before = [], server.cpu_times()
        for of_request in parameters:
            started = time.perf_counter()
            httpx2.get(f"{url}{path}", params=of_request, timeout=120).raise_for_status()
            seconds.append(time.perf_counter() - started)
        after = server.cpu_times()
        spent = after.user + after.system - before.user - before.system
        return Cost(statistics.median(seconds), spent / len(parameters))

    queries = [{"q": QUERIES[number % len(QUERIES)]} for number in range(SEARCHES)]
    quote = {"q": "annotators read the question and then the passage with its heading"}
    nothing: list[dict[str, str]] = [{}] * SEARCHES
    costs = {
        "first search of a server": cost_of_requests("/api/search", {"q": QUERIES[0]}),
        "search": cost_of_requests("/api/search", *queries),
        "find-quote": cost_of_requests("/api/quotes", quote),
        "paper page": cost_of_requests(f"/paper/{arxiv_id}", *nothing),
        "cited-by": cost_of_requests(f"/api/papers/{arxiv_id}/cited-by", *nothing),
        "find papers by title": cost_of_requests(
            "/api/papers", *[{"title": "Tidepool"}] * SEARCHES
        ),
    }
    memory = server.memory_info()
    peak, own = memory.rss / 2**20, (memory.rss - memory.shared) / 2**20
    return {name: replace(cost, peak_mb=peak, own_mb=own) for name, cost in costs.items()}


def _slope(small: float, first: float, large: float, last: float) -> float:
    return math.log(max(last, 1e-3) / max(first, 1e-3)) / math.log(large / small)


def _claims(
    exponents: Mapping[str, float], smallest: Mapping[str, Cost], largest: Mapping[str, Cost]
) -> list[Claim]:
    idle = ("status", "run with nothing to do", "refresh with nothing new")
    of_load = (
        "load, s of processor",
        "load, s of report",
        *(f"{name}, by processor" for name in idle),
    )
    claims = [
        Claim(f"exponent of {name}", exponents[name], MOST_OF_LOAD, at_most=True)
        for name in of_load
        if name in exponents
    ]
    of_search = ("one more month, by processor", "search, by processor", "paper page, by processor")
    claims += [
        Claim(f"exponent of {name}", exponents[name], MOST_OF_SEARCH, at_most=True)
        for name in (*of_search, "memory of a load")
    ]
    # Of processor: other work on the machine makes every command wait.
    claims += [
        Claim(f"{name}, s of processor", largest[name].processor_seconds, 3.0, at_most=True)
        for name in idle
    ]
    claims += [
        Claim(
            f"memory of {name}, times that of the smallest corpus",
            largest[name].own_mb / smallest[name].own_mb,
            MOST_OF_MEMORY,
            at_most=True,
        )
        for name in (*idle, "export", "check of a draft", "paper, a process", SERVER)
    ]
    return [
        *claims,
        Claim(
            "first search of a server, s of processor",
            largest["first search of a server"].processor_seconds,
            2.0,
            at_most=True,
        ),
    ]


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
