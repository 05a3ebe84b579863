"""A cross-encoder that reads a question and a passage together and scores the pair, such as
BAAI/bge-reranker-v2-m3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.embedding.device import pick_devices, pick_precision, torch_type
from pipeline.embedding.model_files import find_folder
from pipeline.errors import SettingError
from pipeline.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.settings import Settings

# Tokens of a pair: what FlagEmbedding's reranker reads unless told otherwise, and what these models
# were trained on.
MOST_TOKENS = 512
# Pairs that are computed at once.
_BATCH = 32


class Reranker(Protocol):
    """A model that scores passages for a question."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The score of each text, of shape (texts,); greater is better, and compares within one
        query.
        """
        ...


def make_reranker(settings: Settings) -> Reranker | None:
    """The cross-encoder of CITELOOM_RERANKER, one per process; None where the setting is empty.

    It computes on the embedder's device. Raises SettingError where its folder is not there.
    """
    return (
        _cross_encoder(settings.reranker, settings.embedder_device) if settings.reranker else None
    )


@lru_cache(maxsize=2)
def _cross_encoder(path: str, device: str) -> Reranker:
    return CrossEncoder(path, device)


class CrossEncoder:
    """The reranker: any model for sequence classification with one output. May be used from several
    threads.

    The model's folder is found at once, its weights are loaded on first use. device: as in the
    setting CITELOOM_EMBEDDER_DEVICE (of several, the first). Raises SettingError where the folder
    is not there.
    """

    def __init__(self, path: str, device: str = "auto") -> None:
        self._folder = find_folder(path, "CITELOOM_RERANKER", "leave it empty for none")
        self._wanted_device = device
        self._lock = Lock()  # transformers' tokenizers fail where two threads use one

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The model's output for each pair, as it is (a logit). Of a pair longer than 512 tokens
        the longer part is cut. A score may differ in its last digits with the texts that are scored
        together.

        Raises SettingError where the model cannot be loaded, or where an output is NaN or infinite.
        """
        import numpy as np

        scores = np.empty(len(texts), dtype=np.float32)
        # Texts of a batch have about the same length, so that little is padded.
        by_length = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        with self._lock:
            for start in range(0, len(texts), _BATCH):
                numbers = by_length[start : start + _BATCH]
                scores[numbers] = self._score_batch(query, [texts[number] for number in numbers])
        if not np.isfinite(scores).all():
            raise self._unfit("a score is NaN or infinite")
        return scores

    def _score_batch(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        tokenizer, model = self._parts
        most = min(MOST_TOKENS, tokenizer.model_max_length)
        pairs = tokenizer(
            [query] * len(texts),
            texts,
            padding=True,
            truncation=True,
            max_length=most,
            return_tensors="pt",
        )
        with torch.inference_mode():
            scores: NDArray[np.float32] = (
                model(**pairs.to(model.device)).logits[:, 0].float().cpu().numpy()
            )
        return scores

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """The tokenizer, and the model on its device."""
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # of the weights, on stderr
        device = pick_devices(self._wanted_device)[0]
        kind = torch_type(pick_precision("auto", device, ("fp16", "fp32")))
        try:
            tokenizer = AutoTokenizer.from_pretrained(self._folder, trust_remote_code=False)
            model, report = AutoModelForSequenceClassification.from_pretrained(
                self._folder, trust_remote_code=False, dtype=kind, output_loading_info=True
            )
        # The errors of transformers and tokenizers over a broken file share no other base.
        except Exception as error:
            raise self._unfit(f"it cannot be loaded: {one_line(str(error))}") from error
        if report["missing_keys"]:  # transformers would go on with random numbers
            raise self._unfit(f"it lacks the weights {', '.join(sorted(report['missing_keys']))}")
        if model.config.num_labels != 1:
            raise self._unfit(
                f"it gives {model.config.num_labels} numbers for a pair, and a reranker gives one"
            )
        return tokenizer, model.to(device).eval()

    def _unfit(self, fault: str) -> SettingError:
        return SettingError(
            f"CITELOOM_RERANKER: {self._folder} is no cross-encoder ({fault}): give the folder of"
            " one such as BAAI/bge-reranker-v2-m3, or leave it empty for none"
        )
