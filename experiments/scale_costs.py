"""What each stage takes for all of ar5iv, by arithmetic on benchmarks/results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
HOUR = 3_600.0


def _option(value: float, basis: str) -> Any:
    return field(default=value, metadata={"basis": basis})


@dataclass(frozen=True, slots=True)
class Assumed:
    """What no result tells, and what it rests on. Each is an option of the script."""

    category_share: float = _option(
        0.35,
        "pages of computer science among all, cross-lists included; the same share of the bytes",
    )
    passages_no_problem: float = _option(
        34, "passages of a page; 28 in the benchmark's month, 56 in 21 real papers"
    )
    passages_others: float = _option(
        49, "the same of pages with warnings or errors, which are 3.5 times as long"
    )
    snapshot_records: float = _option(2_700_000, "papers in arXiv's snapshot")
    bytes_passage: float = _option(
        1_500, "bytes of a passage in `papers`, `passages` and its sparse vector, compressed"
    )
    segment_points: float = _option(
        12_000, "points that a segment of Qdrant holds on average while it is filled"
    )
    llm_read: float = _option(
        20_000, "tokens a second that an 8B model reads on one H200, many requests at once"
    )
    llm_written: float = _option(3_000, "tokens a second that it writes")
    laptop_read: float = _option(
        600, "tokens a second that the bundled 135M model reads, as `citeloom estimate` takes it"
    )
    laptop_written: float = _option(150, "tokens a second that it writes")
    written: float = _option(200, "tokens of one answer of a model")
    cores: float = _option(16, "cores of the H200 machine, and of each node")
    nodes: float = _option(4, "nodes of the cluster, each an H200 machine")
    node_doubling: float = _option(1.7, "times the speed of twice the nodes")
    gpu_hour: float = _option(4.0, "price of an hour of one such machine, cores and disk included")
    price_read: float = _option(0.15, "price of a million tokens that a hosted model reads")
    price_written: float = _option(0.60, "price of a million tokens that it writes")


@dataclass(frozen=True, slots=True)
class Part:
    """Pages of the data set, as its own page states them: their number, GB of zips, GB of HTML."""

    pages: int
    zipped: float
    html: float


NO_PROBLEM = Part(366_232, 20, 155)
OTHERS = Part(1_304_052 + 500_515, 216 + 82, 2_000 + 753)
# As scale.md found it: microseconds that taking a point in costs for each point that its segment
# holds already.
POSTING_MICROSECONDS = 0.028
# Of 50,000 points were the segments whose graphs were timed; shards are to have 1.5 million.
GRAPH_GROWTH = math.log(1_500_000) / math.log(50_000)
PACE_SECONDS, IDS_A_REQUEST, DIMENSIONS = 3, 100, 1_024


@cache
def _figures(result: str) -> Mapping[str, Any]:
    figures: Mapping[str, Any] = json.loads((RESULTS / f"{result}.json").read_text())["figures"]
    return figures


_read: list[tuple[str, str]] = []


def number(result: str, figure: str, place: int = 0) -> float:
    """A figure of a result, or one of several that stand in it with commas between; that it was
    read is noted.

    Raises KeyError with the file's name where it has none of this name.
    """
    if figure not in _figures(result):
        raise KeyError(f"benchmarks/results/{result}.json has no figure {figure!r}")
    _read.append((result, figure))
    value = _figures(result)[figure]
    return (
        float(value.split(", ")[place].replace(",", "")) if isinstance(value, str) else float(value)
    )


def sources_read() -> str:
    """What was read since this was asked last."""
    told = "; ".join(
        f"{result}.json: {figure} = {_figures(result)[figure]}"
        for result, figure in dict.fromkeys(_read)
    )
    _read.clear()
    return told


@dataclass(frozen=True, slots=True)
class Corpus:
    """What there is to do: counts of everything that a stage is slow by."""

    pages: float
    zipped: float
    html: float
    passages: float
    papers: float

    @staticmethod
    def of(whole: bool, assumed: Assumed) -> Corpus:
        """no_problem, or the whole dump."""
        parts = [
            (NO_PROBLEM, assumed.passages_no_problem),
            *([(OTHERS, assumed.passages_others)] if whole else []),
        ]
        share = assumed.category_share
        return Corpus(
            pages=sum(part.pages for part, _ in parts),
            zipped=sum(part.zipped for part, _ in parts),
            html=sum(part.html for part, _ in parts) * share,
            passages=sum(part.pages * passages for part, passages in parts) * share,
            papers=sum(part.pages for part, _ in parts) * share,
        )


@dataclass(frozen=True, slots=True)
class Machine:
    """What works: nodes with cores and GPUs, and what one of the nodes costs an hour; nothing where
    it is one's own.
    """

    name: str
    cores: float
    gpus: float
    nodes: float = 1
    doubling: float = 2.0
    hour: float | None = None

    @property
    def speed_of_nodes(self) -> float:
        return float(self.doubling ** math.log2(self.nodes))

    @property
    def speed_of_cores(self) -> float:
        """Times one core: what was measured from one core to two, for each doubling."""
        claims = json.loads((RESULTS / "corpus.json").read_text())["claims"]
        return float(claims[0]["value"] ** math.log2(self.cores)) * self.speed_of_nodes


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage takes: seconds of one core that others share, of one alone; of a CPU's or a
    GPU's model; GB left.
    """

    name: str
    cores: float = 0.0
    alone: float = 0.0
    laptop: float = 0.0
    gpu: float = 0.0
    disk: float = 0.0
    counted: bool = True
    how: str = ""

    def hours(self, machine: Machine) -> float:
        model = self.gpu / machine.speed_of_nodes if machine.gpus else self.laptop
        return (self.cores / machine.speed_of_cores + self.alone + model) / HOUR


def corpus_costs(corpus: Corpus, assumed: Assumed) -> Iterator[Cost]:
    """The stages from the zips to the index, one after another."""
    yield from _finding(corpus.pages, corpus.zipped, assumed)
    yield from _reading(corpus, assumed)
    yield _embedding(corpus.passages)
    yield _indexing(corpus.passages, assumed)


def _finding(pages: float, zipped: float, assumed: Assumed) -> Iterator[Cost]:
    """Which pages there are, and of what."""
    listing = number("dump", "index anew, s") / number("dump", "entries")
    rows = number("corpus", "1 worker, 1 core, dump_members, s") / number("corpus", "pages")
    yield Cost(
        "dump listing",
        cores=pages * rows,
        alone=pages * listing,
        disk=zipped,
        how="pages: the zips' directories once, in one process; then a row for each",
    )
    yield Cost(
        "metadata, snapshot",
        cores=pages / number("metadata", "our rows of a month, records/s of one core"),
        alone=assumed.snapshot_records
        / number("metadata", "our conversion, plain, records/s of one core"),
        disk=assumed.snapshot_records * number("metadata", "bytes on disk, a record") / 1e9,
        how="the snapshot's records once, in one process; then the pages' rows",
    )
    yield Cost(
        "or by arXiv's API",
        alone=pages / IDS_A_REQUEST * PACE_SECONDS,
        counted=False,
        how=(
            f"pages: {IDS_A_REQUEST} ids a request, one request in {PACE_SECONDS} s, however many"
            " machines"
        ),
    )


def _reading(corpus: Corpus, assumed: Assumed) -> Iterator[Cost]:
    """What the pages say."""
    parsing = number("corpus", "1 worker, 1 core, papers, s") / number("corpus", "megabytes")
    yield Cost(
        "papers", cores=corpus.html * 1e3 * parsing, how="MB of HTML of papers that are kept"
    )
    packing = number("corpus", "1 worker, 1 core, passages, s") / number("corpus", "passages")
    yield Cost(
        "passages",
        cores=corpus.passages * packing,
        disk=corpus.passages * assumed.bytes_passage / 1e9,
        how="passages; the disk is that of `papers` too",
    )
    items = corpus.papers * number("references", "items read") / number("parse", "pages")
    resolving = 1 / number("references", "items read, a second")
    resolving += 1 / number("references", "items resolved by title, a second")
    titles = number("references", "seconds to make the catalogue of 24 months") / number(
        "references", "titles"
    )
    yield Cost(
        "references",
        alone=items * resolving + corpus.pages * titles,
        how=(
            "items, so many a paper, read and looked for; titles to look among; one process, oldest"
            " month first"
        ),
    )


def _embedding(passages: float) -> Cost:
    tokens = passages * number("embed", "tokens") / number("embed", "passages")
    return Cost(
        "embeddings",
        laptop=tokens / number("embed", "ours, tokens/s"),
        gpu=tokens / number("gpu", "months: embeddings, tokens/s"),
        disk=passages * 2 * DIMENSIONS / 1e9,
        how="tokens: at the rate of two cores, or of the whole stage on one H200",
    )


def _indexing(passages: float, assumed: Assumed) -> Cost:
    # Two cores, which were taken to be busy to the end.
    building = (
        2
        * number("load", "ours, until all graphs are built, s")
        / number("load", "points")
        * GRAPH_GROWTH
    )
    filling = POSTING_MICROSECONDS * 1e-6 * assumed.segment_points
    point = number("search", "int8, disk, segments, bytes a point")
    return Cost(
        "index",
        cores=passages * (building + filling),
        disk=passages * point / 1e9,
        how=(
            f"points: two cores for as long as measured, {GRAPH_GROWTH:.2f} times for larger"
            f" shards, and {POSTING_MICROSECONDS} µs for each point that a segment holds"
        ),
    )


@dataclass(frozen=True, slots=True)
class Calls:
    """What a thousand sections or answers ask a model: completions, tokens that each reads, and the
    share of these that a server spares, since it has read the same beginning before.
    """

    name: str
    completions: float
    read: float
    how: str
    spared: float = 0.0

    def cost(self, assumed: Assumed) -> Cost:
        slower = number("generate", "samples by n: times the bound")
        read, written = (
            self.completions * self.read * (1 - self.spared),
            self.completions * assumed.written,
        )
        return Cost(
            self.name,
            laptop=slower * (read / assumed.laptop_read + written / assumed.laptop_written),
            gpu=slower * (read / assumed.llm_read + written / assumed.llm_written),
            how=f"{self.how}; **rates are assumed**",
        )

    def hosted(self, assumed: Assumed) -> float:
        """What they cost at a service, every prompt paid for in full."""
        priced = self.read * assumed.price_read + assumed.written * assumed.price_written
        return self.completions * priced / 1e6


def calls() -> Iterator[Calls]:
    """A thousand sections by ChatCite, ten references each, and a thousand answers by arXivBot."""
    tasks = number("generate", "tasks, references of each")
    completions = number("generate", "n refused: requests, completions", 1)
    read = number("generate", "prompt tokens of all completions") / completions
    spared = number("generate", "share in common prefixes, n refused")
    how = "tokens of all prompts, less what a server keeps of common beginnings, and of all texts"
    yield Calls("1,000 summaries", 1_000 * completions / tasks, read, how, spared)
    questions = number("answer", "questions, systems")
    asked = number("answer", "arxivbot: requests, longest chain, second hops")
    yield Calls(
        "1,000 answers",
        1_000 * asked / questions,
        read,
        "the same, prompts taken to be as long and all read",
    )


def machines(assumed: Assumed) -> tuple[Machine, Machine, Machine]:
    """The class of machine that was measured, one with an H200, and a cluster of those."""
    cores, hour = assumed.cores, assumed.gpu_hour
    return (
        Machine("two cores", cores=2, gpus=0),
        Machine("H200 machine", cores=cores, gpus=1, hour=hour),
        Machine(
            f"{assumed.nodes:.0f} of these",
            cores=cores,
            gpus=assumed.nodes,
            nodes=assumed.nodes,
            doubling=assumed.node_doubling,
            hour=hour,
        ),
    )
