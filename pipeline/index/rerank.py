"""A cross-encoder that reads a question and a passage together and scores the pair, such as BAAI/bge-reranker-v2-m3.

Read for its weights alone, and computed by the same encoder as embeddings are; FlagEmbedding is what its scores are
tested against.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.embedding.device import CPU_BUDGET, GPU_BUDGET, DeviceModel, pick_devices, pick_precision, torch_type
from pipeline.embedding.encoder import Encoder, Linear, Shape, Tokens, make_linear, shape_of
from pipeline.embedding.engine import Budget, Engine
from pipeline.embedding.heads import Heads
from pipeline.embedding.hub import find_folder
from pipeline.embedding.packing import Window, positions
from pipeline.embedding.tokens import TokenRows, plain
from pipeline.embedding.weights import WEIGHT_FILES, UnreadableWeights, read_file
from pipeline.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from pipeline.settings import Settings

# Tokens of a pair: what FlagEmbedding's reranker reads unless told otherwise, and what these models were trained on.
MOST_TOKENS = 512


class Reranker(Protocol):
    """A model that scores passages for a question."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The score of each text, of shape (texts,); greater is better, and compares within one query."""
        ...


def make_reranker(settings: Settings) -> Reranker | None:
    """The cross-encoder of CITELOOM_RERANKER, one per process; None where the setting is empty.

    It computes on the embedder's device, with its tokens of a batch. Raises SettingError where its folder is
    not there, or holds no such model.
    """
    if not settings.reranker:
        return None
    return _cross_encoder(settings.reranker, settings.embedder_device, settings.embedder_tokens)


@lru_cache(maxsize=2)
def _cross_encoder(path: str, device: str, tokens: int) -> Reranker:
    return CrossEncoder(path, device, "auto", tokens)


@dataclass(frozen=True, slots=True)
class _Family:
    """How a kind of model names its weights and joins a pair.

    prefix: of the encoder's weights. head: the two linear layers above the first token. separators: between question
    and passage. typed: whether the passage's tokens are of type 1.
    """

    prefix: str
    head: tuple[str, str]
    separators: int
    typed: bool


_ROBERTA = _Family("roberta.", ("classifier.dense", "classifier.out_proj"), separators=2, typed=False)
_BERT = _Family("bert.", ("bert.pooler.dense", "classifier"), separators=1, typed=True)
_FAMILIES = {"xlm-roberta": _ROBERTA, "roberta": _ROBERTA, "bert": _BERT}


class CrossEncoder:
    """The reranker. The model's folder is found at once, its weights are loaded on first use.

    device, precision and tokens: as in the settings CITELOOM_EMBEDDER_DEVICE (of several, the first), _PRECISION and
    _TOKENS. Of a pair longer than 512 tokens the passage is cut; a question has at most three quarters of them. Raises
    SettingError where the folder is not there, lacks a part or holds another kind of model.
    """

    def __init__(self, path: str, device: str = "auto", precision: str = "auto", tokens: int = 0) -> None:
        self._folder = find_folder(path, "CITELOOM_RERANKER", "leave it empty for none")
        self._wanted, self._wanted_precision, self._wanted_tokens = device, precision, tokens
        self._family, self._shape = _read_config(self._folder)
        self.max_tokens = min(MOST_TOKENS, self._shape.longest)
        if not any((self._folder / name).is_file() for name in WEIGHT_FILES):
            raise _unfit(self._folder, f"it lacks {' or '.join(WEIGHT_FILES)}")

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The model's output for each pair, as it is (a logit). Raises SettingError where it cannot be loaded, or where
        an output is no number."""
        import numpy as np

        if not texts:
            return np.empty(0, dtype=np.float32)
        scores = self._engine.encode(texts, partial(self._window, query)).dense[:, 0].astype(np.float32)
        if not np.isfinite(scores).all():
            raise _unfit(self._folder, "a score is no number; CITELOOM_EMBEDDER_PRECISION=fp32 may help")
        return scores

    @cached_property
    def _engine(self) -> Engine:
        device = pick_devices(self._wanted)[0]
        budget = self._wanted_tokens or (CPU_BUDGET if device == "cpu" else GPU_BUDGET)
        model = self._model(device, pick_precision(self._wanted_precision, device, ("fp16", "fp32")))
        return Engine([(device, model)], Budget(budget))

    def _model(self, device: str, precision: str) -> DeviceModel:
        try:
            found = read_file(next(self._folder / name for name in WEIGHT_FILES if (self._folder / name).is_file()))
            first, last = (_linear(found, name) for name in self._family.head)
            head = ScoreHead(first, last, device)
            encoder = Encoder(self._of_encoder(found), self._shape, device, torch_type(precision))
        except (UnreadableWeights, KeyError, ValueError) as error:
            raise _unfit(self._folder, f"its weights cannot be used: {error}") from error
        return DeviceModel(encoder, head, device)

    def _of_encoder(self, found: dict[str, Tensor]) -> dict[str, Tensor]:
        """The encoder's weights by their names without the prefix; taken out of `found`."""
        import torch

        prefix = self._family.prefix
        names = [name for name in found if name.startswith(prefix)]
        weights = {name.removeprefix(prefix): found.pop(name) for name in names}
        if self._family.typed:
            # The encoder adds the embedding of type 0 to those of all positions: for tokens of type 1, there are all
            # positions once more, with the difference between both types.
            places, types = (weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("position", "token_type"))
            weights["embeddings.position_embeddings.weight"] = torch.cat([places, places + (types[1] - types[0])])
        return weights

    def _window(self, query: str, texts: Sequence[str]) -> Window:
        """The pairs as the model reads them, in the form that the engine cuts into packs."""
        import numpy as np

        rows, seconds = self._pairs(query, texts)
        places = positions(rows, self._shape.padding)
        if self._family.typed:
            places += (seconds * self._shape.positions).astype(np.int32)
        return Window(rows, places, None, np.zeros(len(rows), dtype=np.bool_))

    def _pairs(self, query: str, texts: Sequence[str]) -> tuple[TokenRows, NDArray[np.bool_]]:
        """Token ids of the pairs, special tokens included, and which tokens are of the second part."""
        import numpy as np

        tokenizer, first, last = self._tokenizer
        question, *passages = (
            each.ids for each in tokenizer.encode_batch_fast([query, *texts], add_special_tokens=False)
        )
        before = [first, *question[: self.max_tokens * 3 // 4], *[last] * self._family.separators]
        room = self.max_tokens - len(before) - 1
        rows = [[*before, *ids[:room], last] for ids in passages]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        seconds = np.concatenate([np.arange(len(row)) >= len(before) for row in rows])
        return TokenRows(np.concatenate(rows).astype(np.int32), offsets), seconds

    @cached_property
    def _tokenizer(self) -> tuple[Any, int, int]:
        """The tokenizer, and the ids of the tokens that begin a pair and end each of its parts."""
        from transformers import AutoTokenizer

        try:
            wrapper = AutoTokenizer.from_pretrained(str(self._folder))
            return plain(wrapper.backend_tokenizer), int(wrapper.cls_token_id), int(wrapper.sep_token_id)
        except Exception as error:  # transformers' and tokenizers' errors over a broken file share no other base
            raise _unfit(self._folder, f"its tokenizer cannot be loaded: {' '.join(str(error).split())}") from error


class ScoreHead:
    """One number for each text: two linear layers over its first token, with tanh between.

    first and last: weight and bias. Raises ValueError where the last gives more than one number.
    """

    def __init__(self, first: tuple[Tensor, Tensor], last: tuple[Tensor, Tensor], device: str) -> None:
        if len(last[0]) != 1:
            raise ValueError(f"it gives {len(last[0])} numbers for a pair, and a reranker gives one")
        self._first: Linear = make_linear(*first, device, torch_type("fp32"))
        self._weight, self._bias = (part.float().to(device) for part in last)

    def __call__(self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int, *, half: bool) -> Heads:
        """The scores of a pack, of shape (texts, 1)."""
        import torch

        inner = torch.tanh(self._first(hidden[tokens.starts[:-1].long()]).float())
        # A product and a sum, since a matrix product with one column gave other bits in another pack.
        return Heads((inner * self._weight[0]).sum(1, keepdim=True) + self._bias, None, None)


def _linear(found: dict[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return found.pop(f"{name}.weight"), found.pop(f"{name}.bias")


def _read_config(folder: Path) -> tuple[_Family, Shape]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        family, shape = _FAMILIES.get(config["model_type"]), shape_of(config)
    except KeyError as error:
        raise _unfit(folder, f"its config.json has no {error}") from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise _unfit(folder, f"its config.json cannot be read: {error}") from error
    if family is None:
        raise _unfit(folder, f"it is a {config['model_type']}, and none of {', '.join(_FAMILIES)}")
    return family, shape


def _unfit(folder: Path, fault: str) -> SettingError:
    return SettingError(
        f"CITELOOM_RERANKER: {folder} is no cross-encoder ({fault}): give the folder of one such as "
        f"BAAI/bge-reranker-v2-m3, or leave it empty for none"
    )
