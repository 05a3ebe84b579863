"""Passages → dense and sparse vectors by BGE-M3: ours against what a user would take instead.

    python -m benchmarks.embed [--device cpu|cuda] [--size full|small] [--model FOLDER] [--passages
    N] [--quick]

Texts: passages of the real pages of ../shared/data/dump where they are there, else of the sample
corpus, evenly drawn. The model has random weights (of the true size with `--size full`, the
default), which is enough for speed; `--model` takes the true one. One process, contenders by turns
in every round, wall time from texts to vectors in the host's memory, medians. Never a comparison of
vectors but for one look that all did the same work (`tests/unit/embedding/test_parity.py`).

FlagEmbedding as its README uses it means its defaults: 256 texts a batch, cut at 512 tokens, which
is less work than ours does. infinity is compared where it can be imported; infinity-emb 0.0.78 asks
for numpy < 2 but runs with newer:

    pip install --no-deps --target FOLDER infinity-emb==0.0.78
    PYTHONPATH=FOLDER python -m benchmarks.embed
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Claim, argument_parser, median_ratio, read_pages, report
from benchmarks.parse import ABOUT, DUMPS
from benchmarks.random_m3 import SIZES, make_random_m3
from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.passages.packing import pack
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.flag_embedding import make_flag_model
from pipeline.embedding.packing import TokenRows, plain, tokenize

OURS, FP32 = "ours", "ours, fp32"
README, BEST = "FlagEmbedding as its README uses it", "FlagEmbedding, best batch size"
DENSE, INFINITY = "sentence-transformers, dense only", "infinity, dense only"
LONGEST = 8192
# FlagEmbedding's example for dense vectors has 12, its default is 256.
BATCH_SIZES = {"cpu": (1, 2, 4, 12), "cuda": (12, 64, 256, 1024)}
PASSAGES = {"cpu": 200, "cuda": 16_384}
# Of the passages, enough to tell batch sizes apart.
TRIED = {"cpu": 32, "cuda": 2_048}

Encode = Callable[[Sequence[str]], object]


@dataclass(frozen=True, slots=True)
class Work:
    """Texts, their tokens, and the least floating point operations that their vectors take."""

    texts: Sequence[str]
    tokens: int
    operations: float


def read_passages() -> list[str]:
    """The texts to embed of every passage of the real papers, or of the sample corpus."""
    folder = next(folder for folder in DUMPS if folder.is_dir())
    found = []
    for page in read_pages(folder):
        try:
            paper = html.parse(page)
        except PageError:
            continue
        for passage in pack({**paper.as_row(), **ABOUT}):
            found.append(embedded_text(paper.title, passage.section_path, passage.text))
    return found


def draw(texts: Sequence[str], count: int) -> list[str]:
    """So many of the texts at even distances, or all of them again and again."""
    if count >= len(texts):
        return list(islice(cycle(texts), count))
    return [texts[number * len(texts) // count] for number in range(count)]


def weigh(texts: Sequence[str], folder: Path) -> Work:
    """The work that the texts are for the model in a folder.

    Two operations for each weight of the layers and token (604 million at true size), and for
    attention two products of tokens by tokens in every layer; heads, norms and the softmax are not
    counted.
    """
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    lengths = np.minimum(token_rows(folder)(texts).lengths, LONGEST).astype(np.float64)
    hidden, layers = config.hidden_size, config.num_hidden_layers
    weights = layers * (4 * hidden * hidden + 2 * hidden * config.intermediate_size)
    operations = 2 * weights * lengths.sum() + layers * 4 * hidden * (lengths**2).sum()
    return Work(texts, int(lengths.sum()), float(operations))


def encode_ours(model: BgeM3, texts: Sequence[str]) -> list[Any]:
    """Dense and sparse vectors, in the order of the texts."""
    return [batch.dense for batch in model.encode_stream(texts)]


def encode_theirs(model: Any, options: Mapping[str, int], texts: Sequence[str]) -> Any:
    """FlagEmbedding's dense and sparse vectors."""
    return model.encode(
        list(texts), return_dense=True, return_sparse=True, return_colbert_vecs=False, **options
    )


def load_sentence_transformers(folder: Path, device: str) -> Encode:
    """Dense vectors alone, by sentence-transformers from BGE-M3's folder; float16 on a GPU."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device=device)
    if device == "cuda":
        model.half()
    return partial(model.encode, normalize_embeddings=True)


@contextmanager
def infinity(folder: Path, device: str) -> Iterator[dict[str, Encode]]:
    """Dense vectors alone, by infinity's engine in this process, without the time that HTTP would
    take.

    Nothing where it is not installed. Its threads end with the block.
    """
    if not find_spec("infinity_emb"):
        sys.stdout.write("infinity-emb is not installed and not compared\n")
        yield {}
        return
    import asyncio

    engines = import_module("infinity_emb")
    loop = asyncio.new_event_loop()
    options = engines.EngineArgs(
        model_name_or_path=str(folder),
        engine="torch",
        device=device,
        bettertransformer=False,
        model_warmup=False,
    )
    engine = engines.AsyncEmbeddingEngine.from_args(options)
    loop.run_until_complete(engine.astart())
    try:
        yield {INFINITY: lambda texts: loop.run_until_complete(engine.embed(sentences=list(texts)))}
    finally:
        loop.run_until_complete(engine.astop())


def find_batch_size(
    model: Any, texts: Sequence[str], sizes: Sequence[int], longest: int = LONGEST
) -> int:
    """The batch size that takes FlagEmbedding the least time; larger ones are tried until one takes
    half as long again.

    A batch is padded to its longest text, so on a CPU each size beyond the best is slower than the
    one before: of 32 passages, 51 s one by one, 106 s by fours, 271 s by twelves.
    """
    spent: dict[int, float] = {}
    for size in sizes:
        started = time.perf_counter()
        encode_theirs(model, {"batch_size": size, "max_length": longest}, texts)
        spent[size] = time.perf_counter() - started
        if spent[size] > 1.5 * min(spent.values()):
            break
    return min(spent, key=lambda size: spent[size])


def make_contenders(
    folder: Path, device: str, texts: Sequence[str]
) -> tuple[dict[str, Encode], BgeM3, int]:
    """The contenders, warm, by name; ours once more as itself, and the batch size found."""
    tried = draw(texts, TRIED[device])
    ours, theirs = BgeM3(str(folder), device), make_flag_model(folder, device, "fp16")
    encode_ours(ours, tried[:8])
    encode_theirs(theirs, {}, tried[:8])
    size = find_batch_size(theirs, tried, BATCH_SIZES[device])
    exact = BgeM3(str(folder), device, "fp32")
    encode_ours(exact, tried[:8])
    contenders: dict[str, Encode] = {
        OURS: partial(encode_ours, ours),
        FP32: partial(encode_ours, exact),
        README: partial(encode_theirs, theirs, {}),
        BEST: partial(encode_theirs, theirs, {"batch_size": size, "max_length": LONGEST}),
        DENSE: load_sentence_transformers(folder, device),
    }
    contenders[DENSE](tried[:8])
    return contenders, ours, size


def least_cosine(contenders: Mapping[str, Encode], texts: Sequence[str]) -> float:
    """Of our dense vectors and FlagEmbedding's, whether both did the same work."""
    ours = np.concatenate(contenders[OURS](texts)).astype(np.float64)  # type: ignore[call-overload]
    theirs = contenders[BEST](texts)["dense_vecs"].astype(np.float64)  # type: ignore[index]
    products = (
        (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    )
    return float(products.min())


def matrix_rate(device: str, precision: str) -> float:
    """Operations a second of large matrix products in a precision: what the hardware can do."""
    import torch

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    size, times = (8192, 20) if device == "cuda" else (2048, 10)
    a, b = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    a @ b
    settle(device)
    started = time.perf_counter()
    for _ in range(times):
        a @ b
    settle(device)
    return times * 2 * size**3 / (time.perf_counter() - started)


def settle(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def time_rounds(
    contenders: Mapping[str, Encode], texts: Sequence[str], rounds: int, rate: Callable[[], float]
) -> tuple[dict[str, list[float]], float]:
    """Wall seconds of each contender in each round, by turns, and the best matrix rate between."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    rates = [rate()]
    for _ in range(rounds):
        for name, encode in contenders.items():
            started = time.perf_counter()
            encode(texts)
            seconds[name].append(time.perf_counter() - started)
        rates.append(rate())
    return seconds, max(rates)


def share_off_device(encode: Encode, texts: Sequence[str]) -> float:
    """Share of the wall time in which the GPU was idle; two streams at once count twice."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        started = time.perf_counter()
        encode(texts)
        torch.cuda.synchronize()
        wall = time.perf_counter() - started
    busy: float = sum(event.self_device_time_total for event in profiled.key_averages()) / 1e6
    return max(0.0, 1 - busy / wall)


def token_rows(folder: Path) -> Callable[[Sequence[str]], TokenRows]:
    """Our tokenizer of a model's folder."""
    from transformers import AutoTokenizer

    return partial(tokenize, plain(AutoTokenizer.from_pretrained(folder).backend_tokenizer))


@contextmanager
def model_folder(given: Path | None, size: str) -> Iterator[Path]:
    """The model's folder: the given one, or one with random weights while it is used."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield make_random_m3(Path(folder) / "random-m3", size)


def parse_arguments() -> argparse.Namespace:
    """What the script was given."""
    arguments = argument_parser(__doc__, quick="one round, an eighth of the passages")
    arguments.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments.add_argument(
        "--size", choices=list(SIZES), default="full", help="of the random model"
    )
    arguments.add_argument("--model", type=Path, help="folder of the true model instead")
    arguments.add_argument("--passages", type=int, help="how many passages")
    arguments.add_argument("--rounds", type=int, help="rounds, of which the median is told")
    return arguments.parse_args()


def describe(
    work: Work, seconds: Mapping[str, Sequence[float]], rate: float, device: str, facts: Any
) -> dict[str, object]:
    """What each contender did in a second, and how much of the hardware's rate that is."""
    figures: dict[str, object] = {
        "passages": len(work.texts),
        "tokens": work.tokens,
        "operations per token, millions": round(work.operations / work.tokens / 1e6, 1),
        "precision of ours": facts.precision,
        "rate of torch's matrix product, TFLOP/s": round(rate / 1e12, 3),
    }
    for name, spent in seconds.items():
        middle = statistics.median(spent)
        figures[f"{name}, tokens/s"] = round(work.tokens / middle, 1)
        figures[f"{name}, passages/s"] = round(len(work.texts) / middle, 2)
        figures[f"{name}, share of the matrix product's rate"] = round(
            work.operations / middle / rate, 3
        )
    return figures


def accelerator(device: str) -> str:
    """The GPU's name, or that none was used."""
    if device == "cpu":
        return "no GPU used"
    import torch

    return str(torch.cuda.get_device_name())


def main() -> None:
    """Compare the contenders, print the figures and the claims."""
    given = parse_arguments()
    count = given.passages or PASSAGES[given.device] // (8 if given.quick else 1)
    rounds = given.rounds or (1 if given.quick else 3)
    weights = "true" if given.model else f"random, {given.size} size"
    sys.stdout.write(f"weights: {weights}; by turns in one process, {rounds} rounds\n")
    with model_folder(given.model, given.size) as folder, infinity(folder, given.device) as others:
        for encode in others.values():
            encode(["warm"] * 8)
        work = weigh(draw(read_passages(), count), folder)
        contenders, ours, size = make_contenders(folder, given.device, work.texts)
        precision = ours.last_facts.precision if ours.last_facts else "fp32"
        rate = partial(matrix_rate, given.device, precision)
        seconds, best_rate = time_rounds({**contenders, **others}, work.texts, rounds, rate)
        figures = {"weights": weights, "rounds": rounds, "FlagEmbedding's best batch size": size}
        figures |= describe(work, seconds, best_rate, given.device, ours.last_facts)
        figures["least cosine of ours and FlagEmbedding's"] = round(
            least_cosine(contenders, work.texts[:16]), 6
        )
        if given.device == "cuda":
            figures["share of time not on the device"] = round(
                share_off_device(contenders[OURS], work.texts), 4
            )
    report("embed", figures, claims(seconds, figures, given.device), accelerator(given.device))


def claims(
    seconds: Mapping[str, Sequence[float]], figures: Mapping[str, Any], device: str
) -> list[Claim]:
    """What is promised of a device."""
    to_best = round(median_ratio(seconds[BEST], seconds[OURS]), 2)
    to_readme = round(median_ratio(seconds[README], seconds[OURS]), 2)
    if device == "cpu":
        to_fp32 = round(median_ratio(seconds[FP32], seconds[OURS]), 2)
        return [
            Claim("times as fast as ours in fp32", to_fp32, 1.8),
            Claim("times as fast as FlagEmbedding at its best batch size", to_best, 1.5),
        ]
    share = figures[f"{OURS}, share of the matrix product's rate"]
    return [
        Claim("times as fast as FlagEmbedding as its README uses it", to_readme, 3.0),
        Claim("share of the matrix product's rate", share, 0.5),
    ]


if __name__ == "__main__":
    main()
