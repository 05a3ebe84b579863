"""BGE-M3 with FlagEmbedding's network and heads in place of ours, on the same windows and packs.

`BGEM3FlagModel.encode` is not called for a corpus: it computes the first batch of every call twice,
builds a Python dict of every text's weights and shows a progress bar that cannot be switched off.
Its network is called directly, with our token ids; tests compare the results with those of
`encode`.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.device import DeviceModel
from pipeline.embedding.encoder import Heads, greatest_weights
from pipeline.embedding.model_files import hide_progress_bars
from pipeline.embedding.packing import padded_features, padded_places
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.embedding.encoder import Tokens


def make_flag_model(folder: Path, device: str, precision: str) -> Any:
    """FlagEmbedding's BGEM3FlagModel of a folder, on one device. precision: fp32, fp16 or bf16."""
    from FlagEmbedding import BGEM3FlagModel

    hide_progress_bars()
    halves = {"use_fp16": precision == "fp16", "use_bf16": precision == "bf16"}
    return BGEM3FlagModel(str(folder), devices=device, **halves)


class FlagBgeM3(BgeM3):
    """The embedder for CITELOOM_EMBEDDER_ENGINE=flagembedding. Its vectors have the name of
    BgeM3's.

    Both give the same vectors within the bounds of `benchmarks.vector_parity`, so a change of
    engine does not make months stale. On a CPU it computes in float32, as FlagEmbedding does.
    """

    engine = "flagembedding"

    @cached_property
    def _precision(self) -> str:
        on_gpu = self._devices[0] != "cpu"
        supported = ("fp16", "bf16", "fp32") if on_gpu else ("fp32",)
        if self._precision_setting not in ("auto", *supported):
            raise SettingError(
                f"CITELOOM_EMBEDDER_PRECISION: FlagEmbedding computes in {', '.join(supported)} on"
                f" {self._devices[0]}, not in {self._precision_setting}; set it to auto, or"
                " CITELOOM_EMBEDDER_ENGINE to citeloom"
            )
        return super()._precision if on_gpu else "fp32"

    def _model(self, device: str, precision: str) -> DeviceModel:
        network = _FlagNetwork(make_flag_model(self._folder, device, precision), device)
        return DeviceModel(network.outputs, network.heads, device)


class _FlagNetwork:
    """BGEM3FlagModel's network and heads on one device, between packs and padded batches."""

    def __init__(self, model: Any, device: str) -> None:
        # Referenced, since its finaliser moves the network to the CPU.
        self._model = model
        self._network = model.model.to(device).eval()
        self._padding = int(model.tokenizer.pad_token_id)

    def outputs(self, tokens: Tokens) -> dict[str, Tensor]:
        """FlagEmbedding's vectors of a pack: dense_vecs (texts, dimensions), sparse_vecs (texts,
        longest, 1).
        """
        vectors: dict[str, Tensor] = self._network(
            padded_features(tokens, self._padding), return_dense=True, return_sparse=True
        )
        return vectors

    def heads(self, outputs: dict[str, Tensor], tokens: Tokens, slots: Tensor, terms: int) -> Heads:
        """The vectors of a pack without padding; a term has its tokens' greatest weight."""
        places = padded_places(tokens)
        sparse = greatest_weights(outputs["sparse_vecs"].flatten()[places].float(), slots, terms)
        return Heads(outputs["dense_vecs"].float(), sparse)
