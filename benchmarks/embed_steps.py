"""What each step of the CPU engine brings: ours with one thing taken away at a time, by turns.

    python -m benchmarks.embed_steps [--size full|small] [--passages N] [--rounds N] [--quick]

Random weights of the true size. Never a comparison with anybody else (`benchmarks.embed`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from benchmarks.embed import draw, encode_ours, model_folder, read_passages, weigh
from benchmarks.harness import report
from benchmarks.random_m3 import SIZES
from pipeline.embedding import encoder
from pipeline.embedding.bge_m3 import BgeM3

WHOLE = "as it is"


PLAIN = "weights as torch lays them out, gelu apart"
# Token budgets of the packs, None for the engine's own.
VARIANTS: dict[str, int | None] = {
    WHOLE: None,
    PLAIN: None,
    "one text a pack": 1,
    "packs of 256 tokens": 256,
    "packs of 8,192 tokens": 8192,
}


def make_variant(folder: Path, name: str) -> BgeM3:
    """The engine as it is or with one step taken away, warm."""
    tokens = VARIANTS[name]
    model = BgeM3(str(folder), "cpu") if tokens is None else BgeM3(str(folder), "cpu", tokens=tokens)
    with mock.patch.object(encoder, "_has_onednn", return_value=name != PLAIN):
        encode_ours(model, ["warm", "and warm again"])
    return model


def time_variants(folder: Path, texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Wall seconds of each variant in each round. One at a time is in memory: packed weights and all take 3 GB."""
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(rounds):
        for name in VARIANTS:
            model = make_variant(folder, name)
            started = time.perf_counter()
            encode_ours(model, texts)
            seconds[name].append(time.perf_counter() - started)
    return seconds


def main() -> None:
    """Time the variants, print tokens in a second and how much slower each is."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", choices=list(SIZES), default="full", help="of the random model")
    arguments.add_argument("--passages", type=int, default=48, help="how many passages")
    arguments.add_argument("--rounds", type=int, default=3, help="rounds, of which the median is told")
    arguments.add_argument("--quick", action="store_true", help="one round of eight passages")
    arguments.add_argument("--json", action="store_true", help="accepted for uniformity: JSON is always last")
    given = arguments.parse_args()
    count, rounds = (8, 1) if given.quick else (given.passages, given.rounds)
    sys.stdout.write(f"random weights, {given.size} size; by turns in one process, {rounds} rounds\n")
    with model_folder(None, given.size) as folder:
        work = weigh(draw(read_passages(), count), folder)
        seconds = time_variants(folder, work.texts, rounds)
    whole = statistics.median(seconds[WHOLE])
    figures: dict[str, object] = {"passages": count, "tokens": work.tokens}
    for name, spent in seconds.items():
        figures[f"{name}, tokens/s"] = round(work.tokens / statistics.median(spent), 1)
        figures[f"{name}, times the time"] = round(statistics.median(spent) / whole, 2)
    report("embed_steps", figures, [])


if __name__ == "__main__":
    main()
