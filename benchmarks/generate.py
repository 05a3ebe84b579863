"""ChatCite for 32 tasks of 10 references on an endpoint of fixed latency: the stages against one
call after another.

    python -m benchmarks.generate [--quick]

The endpoint (benchmarks/scripted_endpoint.py) is a process of its own. The stages `key_elements`
and `summaries` run as `citeloom run` runs them, with default settings, on papers of 5,000 made-up
words, three
times: samples by `n`; from an endpoint that refuses `n`; and with a limit so high that the critical
path is the bound.
Against them stands a plain loop with the package openai that sends the same requests one after
another: a part of them is timed, and times their number is what all would take. Processor time is
that of our process, imports, tables and cache included, over the completions that were asked for.
Never how good the sections are.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Claim, argument_parser, report
from benchmarks.scripted_endpoint import MODEL, ask, prose, serving
from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.settings import load_settings
from pipeline.storage.writing import Row

MONTH = "2024-05"
STAGES = (KEY_ELEMENTS, SUMMARIES)
PAPER_WORDS, SECTIONS = 5_000, 10
# Requests of the plain loop that are timed, out of each kind.
TIMED = 24


@dataclass(frozen=True, slots=True)
class Size:
    """How much is asked, and how long the endpoint takes for a request, in seconds."""

    tasks: int
    references: int
    latency: float
    limit: int
    """Completions in flight at once."""
    high_limit: int

    @property
    def critical_path(self) -> float:
        """The least seconds of one task: elements, then a draft and a vote for each reference."""
        return (1 + 2 * self.references) * self.latency


FULL = Size(tasks=32, references=10, latency=1.0, limit=128, high_limit=1024)
QUICK = Size(tasks=4, references=3, latency=0.2, limit=16, high_limit=128)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of the stages, its rerun, and what the endpoint saw."""

    seconds: float
    processor: float
    again: float
    """Seconds of a rerun that finds every answer kept."""
    again_processor: float
    asked_again: int
    recorded: Mapping[str, int]

    @property
    def calls(self) -> int:
        return self.recorded["completions"]

    def milliseconds(self) -> float:
        """Of processor time for a call."""
        return 1000 * self.processor / self.calls

    def bound(self, size: Size, limit: int) -> float:
        """The least seconds: the longer of the critical path and all calls over the limit."""
        return max(size.critical_path, self.calls / limit * size.latency)

    def times_bound(self, size: Size, limit: int) -> float:
        """How many times as long as the bound it took."""
        return self.seconds / self.bound(size, limit)


def paper(chance: random.Random, title: str) -> str:
    """A paper's text as prompts have it, in sections."""
    sections = (
        f"## Section {i}\n\n{prose(chance, PAPER_WORDS // SECTIONS)}"
        for i in range(1, SECTIONS + 1)
    )
    return "\n\n".join([f"# {title}", *sections])


def task_rows(size: Size) -> Iterator[Row]:
    """Tasks whose references bring their texts along, so that no table of papers is needed."""
    chance = random.Random(2403)
    for number in range(1, size.tasks + 1):
        references = [
            {
                "number": i,
                "arxiv_id": None,
                "key": f"b{i}",
                "title": f"Reference {number}-{i}",
                "year": 2023,
                "source": "full_text",
                "text": paper(chance, f"Reference {number}-{i}"),
            }
            for i in range(1, size.references + 1)
        ]
        yield {
            "task_id": f"2405.{number:05}#S2",
            "arxiv_id": f"2405.{number:05}",
            "title": f"Target {number}",
            "description": paper(chance, f"Target {number}"),
            "section_title": "Related work",
            "references": references,
            "outside": 0,
            "gold": prose(chance, 400),
        }


def make_place(folder: Path, size: Size, url: str, limit: int) -> Workspace:
    """A data root that holds the tasks and nothing else."""
    settings = load_settings(
        data=folder,
        llm_url=url,
        llm_model=MODEL,
        llm_concurrency=limit,
        systems="chatcite",
        _env_file=None,
    )
    place = Workspace(settings)
    tasks = Stage()
    tasks.table, tasks.build = tables.RELATED_WORK_TASKS, lambda job: task_rows(size)
    run_stage(tasks, place, MONTH)
    return place


def timed(place: Workspace, *, force: bool = False) -> tuple[float, float]:
    """Seconds and processor seconds of the stages."""
    started, spent = time.perf_counter(), time.process_time()
    for stage in STAGES:
        run_stage(stage, place, MONTH, force=force)
    return time.perf_counter() - started, time.process_time() - spent


def measure(size: Size, limit: int, *, one: bool = False) -> tuple[Measured, list[dict[str, Any]]]:
    """A run and its rerun against a fresh endpoint in an empty data root, and their requests."""
    with tempfile.TemporaryDirectory() as folder, serving(size.latency, one=one) as url:
        place = make_place(Path(folder), size, url, limit)
        first = timed(place)
        recorded = ask(url, "/recorded")
        again = timed(place, force=True)
        bodies = ask(url, "/bodies")
        return Measured(*first, *again, len(bodies) - recorded["requests"], recorded), bodies


def one_after_another(size: Size, bodies: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of one request in a plain loop: median of a sample spread evenly over these."""
    import openai

    chosen = bodies[:: max(len(bodies) // TIMED, 1)]
    with serving(size.latency) as url, openai.OpenAI(base_url=url, api_key="none") as client:
        seconds = []
        for body in chosen:
            started = time.perf_counter()
            given: Any = client.chat.completions.create(**body)
            assert given.choices[0].message.content
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def figures_of(name: str, run: Measured, size: Size, limit: int) -> dict[str, object]:
    """What is shown of one run."""
    recorded = run.recorded
    return {
        f"{name}: requests, completions": f"{recorded['requests']:,}, {run.calls:,}",
        f"{name}: most in flight, of {limit}": recorded["at_once"],
        f"{name}: seconds": round(run.seconds, 2),
        f"{name}: times the bound": round(run.times_bound(size, limit), 3),
        f"{name}: CPU ms for a call, for a request": (
            f"{run.milliseconds():.2f}, {1000 * run.processor / recorded['requests']:.2f}"
        ),
        f"{name}: rerun, requests": run.asked_again,
        f"{name}: rerun, seconds": round(run.again, 2),
        f"{name}: rerun, CPU ms for a call": round(1000 * run.again_processor / run.calls, 2),
    }


def main() -> None:
    """Measure, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="4 tasks of 3 references, 0.2 s for a request")
    size = QUICK if arguments.parse_args().quick else FULL
    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        del os.environ[name]
    by_n, asked = measure(size, size.limit)
    by_one, asked_singly = measure(size, size.limit, one=True)
    unlimited, _ = measure(size, size.high_limit)
    plain, plain_singly = one_after_another(size, asked), one_after_another(size, asked_singly)
    figures: dict[str, object] = {
        "tasks, references of each": f"{size.tasks}, {size.references}",
        "seconds of a request at the endpoint": size.latency,
        **figures_of("samples by n", by_n, size, size.limit),
        **figures_of("n refused", by_one, size, size.limit),
        **figures_of("critical path", unlimited, size, size.high_limit),
        "plain loop, seconds of a request with n, without": f"{plain:.3f}, {plain_singly:.3f}",
        "plain loop, all with n, seconds": round(plain * len(asked)),
        "plain loop, all without n, seconds": round(plain_singly * len(asked_singly)),
    }
    report(
        "generate",
        figures | prefix_figures(by_n, by_one),
        claims(size, by_n, by_one, unlimited, plain, asked),
    )


def prefix_figures(by_n: Measured, by_one: Measured) -> dict[str, object]:
    """Shares of prompt tokens in common prefixes, apart for what the claim puts together."""
    seen = by_n.recorded
    return {
        "prompt tokens of all completions": seen["prompt_tokens"],
        "share in common prefixes, drafts and votes alone": _share(seen, "search_"),
        "share in common prefixes, n refused": _share(by_one.recorded),
    }


def _share(recorded: Mapping[str, int], kind: str = "") -> float:
    return round(recorded[f"{kind}shared_tokens"] / recorded[f"{kind}prompt_tokens"], 3)


def claims(
    size: Size,
    by_n: Measured,
    by_one: Measured,
    unlimited: Measured,
    plain: float,
    asked: Sequence[object],
) -> list[Claim]:
    """What the benchmark is to show."""
    runs = (by_n, by_one, unlimited)
    bounds = (by_n.times_bound(size, size.limit), by_one.times_bound(size, size.limit))
    faster = plain * len(asked) / by_n.seconds
    return [
        Claim(
            "times as long as the endpoint's latency and limit of requests allow",
            round(max(bounds), 3),
            1.3,
            at_most=True,
        ),
        Claim(
            "times as long as the longest chains of calls allow, without that limit",
            round(unlimited.times_bound(size, size.high_limit), 3),
            1.3,
            at_most=True,
        ),
        Claim("times as fast as one request after another", round(faster, 1), 20),
        Claim("share of prompt tokens that are common prefixes", _share(by_n.recorded), 0.6),
        Claim(
            "processor ms of a call, worst run",
            round(max(run.milliseconds() for run in runs), 2),
            5.0,
            at_most=True,
        ),
        Claim("requests of a rerun", max(run.asked_again for run in runs), 0, at_most=True),
    ]


if __name__ == "__main__":
    main()
