"""Fifty questions by the systems that ask a model, on an endpoint of fixed latency, against one
call after another.

    python -m benchmarks.answer [--quick]

The endpoint (benchmarks/scripted_endpoint.py) is a process of its own. The sample corpus is
embedded and indexed first, which is not timed; then `answers` runs month by month and system by
system, as `citeloom run` runs them, with default settings, on the questions of
examples/questions.jsonl. Searches are real ones. `direct` takes its answers from the
cache: WikiChat sends the same requests before it.
Against them stands a plain loop with the package openai that sends the same requests one after
another: a part of them is timed, and times their number is what all would take; its searches would
come on top. The bound is what calls would take that wait for one another or for the limit, without
any work of our own. Never how good the answers are.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generate import Size as LoopSize
from benchmarks.generate import one_after_another
from benchmarks.harness import Claim, argument_parser, report
from benchmarks.scripted_endpoint import MODEL, ask, serving
from pipeline import tables
from pipeline.answering.answer import answer_of_row
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import SYSTEMS
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.nouns import Answer
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.settings import load_settings

ASKING = tuple(name for name, system in SYSTEMS.items() if system.calls_model)
MONTHS = ("2024-03", "2024-04", "2024-05")
CORPUS = (DUMP_MEMBERS, METADATA, PAPERS, PASSAGES, EMBEDDINGS, INDEX_RECEIPTS, QUESTIONS)


@dataclass(frozen=True, slots=True)
class Size:
    """Questions of a month that are asked, and seconds that the endpoint takes for a request."""

    questions: int
    latency: float
    limit: int = 64
    """Calls in flight at once."""


FULL = Size(questions=1_000, latency=1.0)
QUICK = Size(questions=3, latency=0.2)


@dataclass(frozen=True, slots=True)
class Part:
    """One system's stage of one month: wall and processor seconds, requests, and its answers."""

    system: str
    seconds: float
    processor: float
    requests: int
    answers: Sequence[Answer]

    def bound(self, size: Size) -> float:
        """The least seconds: its longest chain of calls, or all of them over the limit."""
        longest = max((chain(self.system, answer) for answer in self.answers), default=0)
        return max(longest, self.requests / size.limit) * size.latency if self.requests else 0.0


def chain(system: str, answered: Answer) -> int:
    """Calls of an answer that wait for one another: all of arXivBot's; of WikiChat, bullets of
    passages and verdicts on claims are asked side by side, and so are its two branches.
    """
    if system != "wikichat":
        return answered.spent.calls
    stages = {step["stage"] for step in answered.trace["steps"]}
    branches = ({"query", "rank", "bullets"}, {"generate", "split", "verify"})
    return max(len(stages & branch) for branch in branches) + len(stages & {"draft", "refine"})


def place_at(folder: Path, size: Size, url: str) -> Workspace:
    """The workspace; without a limit on the questions of a month."""
    return Workspace(
        load_settings(
            data=folder,
            llm_url=url,
            llm_model=MODEL,
            llm_concurrency=size.limit,
            max_questions=size.questions,
            _env_file=None,
        )
    )


def prepare(place: Workspace) -> int:
    """The sample corpus, indexed, and how many questions are asked of it."""
    for month in MONTHS:
        for stage in CORPUS:
            run_stage(stage, place, month)
    return sum(len(place.root.rows(tables.QUESTIONS, month)) for month in MONTHS)


def parts(place: Workspace, url: str) -> Iterator[Part]:
    """Every system by itself, month by month."""
    for month in MONTHS:
        for system in ASKING:
            alone = Workspace(place.settings.model_copy(update={"answer_systems": (system,)}))
            before = ask(url, "/recorded")["requests"]
            started, spent = time.perf_counter(), time.process_time()
            run_stage(ANSWERS, alone, month, force=True)
            took = time.perf_counter() - started, time.process_time() - spent
            rows = place.root.rows(tables.ANSWERS, month)
            yield Part(
                system,
                *took,
                ask(url, "/recorded")["requests"] - before,
                [answer_of_row(row) for row in rows],
            )


def figures_of(run: Sequence[Part], size: Size, recorded: Mapping[str, int]) -> dict[str, object]:
    """What is shown of the run."""
    seconds, bound = sum(part.seconds for part in run), sum(part.bound(size) for part in run)
    calls = sum(answered.spent.calls for part in run for answered in part.answers)
    by_system = {
        f"{system}: requests, longest chain, second hops": ", ".join(
            map(str, _of_system(run, system))
        )
        for system in ASKING
    }
    return {
        "seconds of a request at the endpoint": size.latency,
        "calls, of which requests": f"{calls:,}, {recorded['requests']:,}",
        **by_system,
        f"most in flight, of {size.limit}": recorded["at_once"],
        "seconds": round(seconds, 2),
        "bound, of which chains of calls alone": f"{bound:.1f}, {_chains(run) * size.latency:.1f}",
        "times the bound": round(seconds / bound, 3),
        "CPU ms for a call, searches included": round(
            1000 * sum(part.processor for part in run) / calls, 2
        ),
    }


def _of_system(run: Sequence[Part], system: str) -> tuple[int, int, int]:
    mine = [part for part in run if part.system == system]
    answers = [answered for part in mine for answered in part.answers]
    longest = max(chain(system, answer) for answer in answers)
    return (
        sum(part.requests for part in mine),
        longest,
        sum(answered.hops > 1 for answered in answers),
    )


def _chains(run: Sequence[Part]) -> int:
    return sum(
        max((chain(part.system, answer) for answer in part.answers), default=0) for part in run
    )


def main() -> None:
    """Measure, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="3 questions of each month, 0.2 s for a request")
    size = QUICK if arguments.parse_args().quick else FULL
    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder, serving(size.latency) as url:
        place = place_at(Path(folder), size, url)
        asked = prepare(place)
        run = list(parts(place, url))
        recorded, bodies = ask(url, "/recorded"), ask(url, "/bodies")
        again = sum(part.requests for part in parts(place, url))
    plain = one_after_another(
        LoopSize(tasks=0, references=0, latency=size.latency, limit=1, high_limit=1), bodies
    )
    figures: dict[str, object] = {
        "questions, systems": f"{asked}, {len(ASKING)}",
        **figures_of(run, size, recorded),
        "plain loop, seconds of a request": round(plain, 3),
        "plain loop, all of them, seconds": round(plain * len(bodies)),
    }
    faster = plain * len(bodies) / sum(part.seconds for part in run)
    claims = [
        Claim("times as fast as one request after another", round(faster, 1), 15),
        Claim("requests of a rerun", again, 0, at_most=True),
    ]
    report("answer", figures, claims)


if __name__ == "__main__":
    main()
