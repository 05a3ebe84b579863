"""The parts of `benchmarks.gpu`, one for each process: `python -m benchmarks.gpu_parts PART …`.

A part writes its figures to a file after each measurement, so that a part that is killed still
reports them.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.embed import (
    BATCH_SIZES,
    BEST,
    DENSE,
    OURS,
    README,
    Encode,
    encode_ours,
    encode_theirs,
    find_batch_size,
    load_sentence_transformers,
    matrix_rate,
    settle,
    share_off_device,
    token_rows,
    weigh,
)
from benchmarks.gpu_corpus import MONTHS, read_texts, write_months
from benchmarks.harness import Claim, cpu_seconds, median_ratio
from benchmarks.random_m3 import make_random_m3
from benchmarks.vector_parity import (
    EXACT,
    HALF,
    TEXTS,
    ReferenceVectors,
    Tolerances,
    compare,
    reference_of,
)
from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.device import pick_precision
from pipeline.embedding.embedder import Vectors
from pipeline.embedding.flag_embedding import FlagBgeM3, make_flag_model
from pipeline.errors import SettingError
from pipeline.storage.data_root import DataRoot

ENGINE = "ours with FlagEmbedding's network"
TASK = "embed&token_classify"
VLLM = f"vLLM, {TASK}"
# FlagEmbedding runs in a device's first; on a GPU that is also ours by default.
PRECISIONS = {"cuda": ("fp16", "bf16", "fp8"), "cpu": ("fp32",)}
# Tokens of a pack, the engine's own first.
BUDGETS = {"cuda": (65_536, 8_192, 131_072), "cpu": (1_024, 256, 8_192)}


@dataclass(frozen=True, slots=True)
class Size:
    """The model's size, and the number of passages of each part."""

    model: str
    months: int
    packs: int
    peers: int
    parity: int


SIZES = {
    "full": Size("full", months=100_000, packs=16_384, peers=4_096, parity=32),
    "tiny": Size("tiny", months=400, packs=64, peers=32, parity=8),
}


@dataclass(frozen=True, slots=True)
class Place:
    """The conditions of a part: folder of model and data root, device, sizes, time limit."""

    folder: Path
    device: str
    size: Size
    seconds: float

    @property
    def model(self) -> Path:
        return self.folder / "random-m3"

    @property
    def root(self) -> DataRoot:
        return DataRoot(self.folder / "data")


@dataclass(slots=True)
class Record:
    """Figures and claims of a part, written to its file as they come."""

    file: Path
    figures: dict[str, object] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    def add(self, name: str, value: object) -> None:
        """Record one figure."""
        self.figures[name] = value
        self._write()

    def claim(self, claim: Claim) -> None:
        """Record one claim."""
        self.claims.append(claim)
        self._write()

    def _write(self) -> None:
        partial_file = self.file.with_suffix(".partial")
        content = {"figures": self.figures, "claims": [asdict(claim) for claim in self.claims]}
        partial_file.write_text(json.dumps(content))
        partial_file.replace(self.file)


def prepare(place: Place, record: Record) -> None:
    """Write the model and the months of passages; record their sizes and the machine."""
    import torch

    started = time.perf_counter()
    make_random_m3(place.model, place.size.model)
    record.add("writing the model, s", round(time.perf_counter() - started, 1))
    started = time.perf_counter()
    write_months(place.root, place.size.months)
    record.add("writing the passages, s", round(time.perf_counter() - started, 1))
    record.add("weights", f"random, {place.size.model} size")
    record.add("passages", place.size.months)
    record.add("torch", torch.__version__)
    if place.device == "cuda":
        free, total = torch.cuda.mem_get_info()
        record.add("GPU", torch.cuda.get_device_name())
        record.add("GPU memory, GB", round(total / 1e9, 1))
        record.add("GPU memory free at the start, GB", round(free / 1e9, 1))


def parity(place: Place, record: Record) -> None:
    """Our vectors in half precision against float32, and against FlagEmbedding's in float32."""
    passages = read_texts(place.root, place.size.parity)
    texts = [*TEXTS.values(), *passages, " ".join(passages) * 8]
    single = BgeM3(str(place.model), place.device, "fp32")
    vectors = single.encode(texts)
    longest = single.max_tokens
    record.add("texts", len(texts))
    record.add(
        "longest text, tokens", max(batch.tokens for batch in single.encode_stream(texts[-1:]))
    )
    for precision in _precisions(place, record):
        if precision != "fp32":
            _compare_precision(place, record, precision, texts, vectors)
    del single
    _free(place)
    if _is_absent("FlagEmbedding", record):
        return
    flag_model = make_flag_model(place.model, place.device, "fp32")
    theirs = [reference_of(flag_model, text, longest) for text in texts]
    _record_parity(record, f"{OURS} in fp32, FlagEmbedding in fp32", vectors, theirs, EXACT)
    del flag_model
    _free(place)
    engine = FlagBgeM3(str(place.model), place.device)
    vectors = engine.encode(texts)
    precision = PRECISIONS[place.device][0]
    bounds = EXACT if precision == "fp32" else HALF
    _record_parity(
        record, f"{ENGINE} in {precision}, FlagEmbedding in fp32", vectors, theirs, bounds
    )


def _precisions(place: Place, record: Record) -> list[str]:
    """The precisions that the device supports; the others are recorded as not measured."""
    available = []
    for precision in PRECISIONS[place.device]:
        try:
            pick_precision(precision, place.device, ())
        except SettingError as error:
            record.add(f"{precision}: not measured", str(error))
        else:
            available.append(precision)
    return available


def _compare_precision(
    place: Place, record: Record, precision: str, texts: Sequence[str], single: Sequence[Vectors]
) -> None:
    vectors = BgeM3(str(place.model), place.device, precision).encode(texts)
    _record_parity(
        record,
        f"{OURS} in {precision} and in fp32",
        vectors,
        [_as_reference(one) for one in single],
        HALF,
        has_claim=precision != "fp8",  # the bounds are those of half precision
    )
    _free(place)


def _record_parity(
    record: Record,
    name: str,
    vectors: Sequence[Vectors],
    references: Sequence[ReferenceVectors],
    bounds: Tolerances,
    *,
    has_claim: bool = True,
) -> None:
    compared = [compare(one, other, bounds) for one, other in zip(vectors, references, strict=True)]
    record.add(
        f"{name}: least cosine of dense vectors", round(min(one.dense for one in compared), 6)
    )
    record.add(
        f"{name}: greatest difference of a weight", round(max(one.weights for one in compared), 6)
    )
    if has_claim:
        within = sum(one.holds for one in compared)
        record.claim(Claim(f"{name}: texts that agree, of {len(compared)}", within, len(compared)))


def _as_reference(vectors: Vectors) -> ReferenceVectors:
    weights = dict(zip(vectors.sparse.ids.tolist(), vectors.sparse.weights.tolist(), strict=True))
    return ReferenceVectors(vectors.dense, weights)


def packs(place: Place, record: Record) -> None:
    """From texts to vectors in the host's memory: rates and GPU memory by size of packs."""
    work = weigh(read_texts(place.root, place.size.packs), place.model)
    record.add("passages", len(work.texts))
    record.add("tokens", work.tokens)
    record.add("operations per token, millions", round(work.operations / work.tokens / 1e6, 1))
    rows = token_rows(place.model)
    record.add(
        "tokenised alone, tokens per CPU second",
        round(work.tokens / cpu_seconds(lambda: rows(work.texts))),
    )
    started = time.perf_counter()
    rows(work.texts)
    record.add("tokenised alone, tokens/s", round(work.tokens / (time.perf_counter() - started)))
    share = 0.0
    for precision in _precisions(place, record):
        # FP8 is compared with fp16's rate, since it replaces fp16.
        rate = matrix_rate(place.device, "fp16" if precision == "fp8" else precision)
        record.add(f"{precision}: rate of torch's matrix product, TFLOP/s", round(rate / 1e12, 3))
        budgets = BUDGETS[place.device]
        if precision != PRECISIONS[place.device][0]:
            budgets = budgets[:1]
        for budget in budgets:
            name = f"{precision}, packs of {budget:,} tokens"
            model = BgeM3(str(place.model), place.device, precision, budget)
            seconds = _time_packs(place, record, name, model, work.texts)
            record.add(f"{name}: tokens/s", round(work.tokens / seconds))
            record.add(f"{name}: passages/s", round(len(work.texts) / seconds, 1))
            record.add(
                f"{name}: share of the matrix product's rate",
                round(work.operations / seconds / rate, 3),
            )
            if precision != "fp8":
                share = max(share, work.operations / seconds / rate)
            del model
            _free(place)
    if place.device == "cuda":
        record.claim(
            Claim(
                "share of the rate of torch's matrix product, best size of packs",
                round(share, 3),
                0.5,
            )
        )
        model = BgeM3(str(place.model), place.device)
        encode_ours(model, work.texts[:32])
        idle = share_off_device(partial(encode_ours, model), work.texts)
        record.add("share of time not on the device, the engine's own packs", round(idle, 3))


def _time_packs(
    place: Place, record: Record, name: str, model: BgeM3, texts: Sequence[str]
) -> float:
    """Seconds for all texts on a warm model; on a GPU its peak memory is recorded."""
    encode_ours(model, texts[:32])
    reset_peak(place)
    started = time.perf_counter()
    encode_ours(model, texts)
    seconds = time.perf_counter() - started
    if place.device == "cuda":
        record.add(f"{name}: peak GPU memory, GB", peak_gb())
    facts = model.last_facts
    if facts is not None and facts.halved:
        record.add(f"{name}: memory did not hold it, halved to", facts.token_budget)
    return seconds


def flagembedding(place: Place, record: Record) -> None:
    """FlagEmbedding, its network on our packs, sentence-transformers and ours on the same texts."""
    if _is_absent("FlagEmbedding", record):
        return
    work = weigh(read_texts(place.root, place.size.peers), place.model)
    record.add("passages", len(work.texts))
    record.add("tokens", work.tokens)
    ours, engine = (kind(str(place.model), place.device) for kind in (BgeM3, FlagBgeM3))
    theirs = make_flag_model(place.model, place.device, PRECISIONS[place.device][0])
    longest = ours.max_tokens
    size = find_batch_size(
        theirs, work.texts[: len(work.texts) // 4], BATCH_SIZES[place.device], longest
    )
    record.add("FlagEmbedding's best batch size", size)
    contenders: dict[str, Encode] = {
        OURS: partial(encode_ours, ours),
        ENGINE: partial(encode_ours, engine),
        BEST: partial(encode_theirs, theirs, {"batch_size": size, "max_length": longest}),
        README: partial(encode_theirs, theirs, {}),
        DENSE: load_sentence_transformers(place.model, place.device),
    }
    seconds = time_by_turns(place, record, contenders, work, rounds=2)
    for peer in (README, BEST):
        record.claim(
            Claim(
                f"times as fast as {peer}",
                round(median_ratio(seconds[peer], seconds[OURS]), 2),
                3.0,
            )
        )


def vllm(place: Place, record: Record) -> None:
    """vLLM's dense and sparse vectors of one pass, and ours, by turns on the same texts."""
    if _is_absent("vllm", record):
        return
    from vllm import LLM
    from vllm.config import PoolerConfig

    work = weigh(read_texts(place.root, place.size.peers), place.model)
    # Half of the memory, so that ours fits beside it.
    model = LLM(
        model=str(place.model),
        runner="pooling",
        hf_overrides={"architectures": ["BgeM3EmbeddingModel"]},
        pooler_config=PoolerConfig(task=TASK),
        dtype="float16",
        gpu_memory_utilization=0.5,
    )
    contenders: dict[str, Encode] = {
        OURS: partial(encode_ours, BgeM3(str(place.model), place.device)),
        VLLM: lambda texts: model.encode(list(texts), pooling_task=TASK, use_tqdm=False),
    }
    seconds = time_by_turns(place, record, contenders, work, rounds=3)
    record.add(f"times as fast as {VLLM}", round(median_ratio(seconds[VLLM], seconds[OURS]), 2))


def time_by_turns(
    place: Place, record: Record, contenders: Mapping[str, Encode], work: Any, rounds: int
) -> dict[str, list[float]]:
    """Wall seconds of each contender in each round, all warm; rates and memory are recorded."""
    for encode in contenders.values():
        encode(work.texts[:8])
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, encode in contenders.items():
            held = reset_peak(place)
            started = time.perf_counter()
            encode(work.texts)
            settle(place.device)
            seconds[name].append(time.perf_counter() - started)
            record.add(f"{name}: tokens/s", round(work.tokens / median(seconds[name])))
            record.add(f"{name}: passages/s", round(len(work.texts) / median(seconds[name]), 1))
            if place.device == "cuda" and name != VLLM:  # vLLM computes in a process of its own
                record.add(
                    f"{name}: peak GPU memory beside all weights, GB", round(peak_gb() - held, 2)
                )
    return seconds


def months(place: Place, record: Record) -> None:
    """The stages embeddings and index_receipts, with Qdrant Edge: rows, rates, memory.

    Starts no further month of embeddings once two thirds of the time are spent, and indexes the
    months that have them.
    """
    from pipeline.embedding.stages import EMBEDDINGS
    from pipeline.engine.run import run_stage
    from pipeline.engine.stage import Workspace
    from pipeline.index.stages import INDEX_RECEIPTS
    from pipeline.settings import load_settings

    settings = {
        "embedder": "bge-m3",
        "embedder_path": str(place.model),
        "embedder_device": place.device,
    }
    workspace = Workspace(
        load_settings(data=place.folder / "data", qdrant_url=None, _env_file=None, **settings)
    )
    began = time.perf_counter()
    embedded: list[str] = []
    spent, rows, tokens = 0.0, 0, 0
    for month in MONTHS:
        if embedded and time.perf_counter() - began > place.seconds * 2 / 3:
            break
        outcome = run_stage(EMBEDDINGS, workspace, month)
        embedded.append(month)
        spent += outcome.seconds
        rows += outcome.rows
        tokens += outcome.measured["tokens"]
        record.add("embeddings, passages", rows)
        record.add("embeddings, s (the model's loading counted)", round(spent, 1))
        record.add(f"embeddings, s of {month}", round(outcome.seconds, 1))
        record.add("embeddings, passages/s", round(rows / spent, 1))
        record.add("embeddings, tokens/s", round(tokens / spent))
        record.add("embeddings, precision", outcome.measured["precision"])
        record.add("embeddings, host's peak memory, MB", _host_peak_mb())
        if place.device == "cuda":
            record.add("embeddings, peak GPU memory, GB", peak_gb())
    spent, points = 0.0, 0
    for month in embedded:
        outcome = run_stage(INDEX_RECEIPTS, workspace, month)
        receipt = workspace.root.rows(INDEX_RECEIPTS.table, month)[0]
        spent += outcome.seconds
        points += receipt["present"]
        record.add("index (Edge), points there and audited", points)
        record.add("index (Edge), s (graphs and audit counted)", round(spent, 1))
        record.add(f"index (Edge), s of {month}", round(outcome.seconds, 1))
        record.add("index (Edge), points/s", round(points / spent))
        record.add("index (Edge), host's peak memory, MB", _host_peak_mb())
    record.claim(Claim("passages embedded, in the index and audited", points, place.size.months))


def reset_peak(place: Place) -> float:
    """Reset the peak of the GPU's memory; returns the GB in use."""
    if place.device != "cuda":
        return 0.0
    import torch

    torch.cuda.reset_peak_memory_stats()
    return float(torch.cuda.memory_allocated() / 1e9)


def peak_gb() -> float:
    """The most GB of the GPU that torch had in use since `reset_peak`."""
    import torch

    return round(torch.cuda.max_memory_allocated() / 1e9, 2)


def _host_peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _free(place: Place) -> None:
    """Release the GPU's memory of models that are no longer referenced."""
    if place.device == "cuda":
        import torch

        gc.collect()
        torch.cuda.empty_cache()


def _is_absent(module: str, record: Record) -> bool:
    """Whether a peer cannot be imported; if so, the reason is recorded."""
    try:
        import_module(module)
    except ImportError as error:
        record.add(module, f"not installable here: {error}")
        return True
    return False


PARTS: Mapping[str, Callable[[Place, Record], None]] = {
    "prepare": prepare,
    "parity": parity,
    "packs": packs,
    "flagembedding": flagembedding,
    "vllm": vllm,
    "months": months,
}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument(
        "--folder", type=Path, required=True, help="folder of the model and the data root"
    )
    parser.add_argument("--figures", type=Path, required=True, help="file of the figures")
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--size", choices=list(SIZES), required=True)
    parser.add_argument(
        "--seconds", type=float, required=True, help="after which the part is killed"
    )
    options = parser.parse_args()
    place = Place(options.folder, options.device, SIZES[options.size], options.seconds)
    PARTS[options.part](place, Record(options.figures))
    sys.stdout.write(f"{options.part}: complete\n")


if __name__ == "__main__":
    main()
