"""Cross-encoders in small: XLM-RoBERTa as BAAI/bge-reranker-v2-m3 is, and BERT; random weights from
a fixed seed.

Imported by name (`tests.unit.index.tiny_reranker`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.embedding.tiny_m3 import SPECIAL, WORDS, make_tiny_m3

POSITIONS = 64
_TEMPLATES = {"xlm-roberta": "<s> $A </s> </s> $B </s>", "bert": "<s> $A </s> $B:1 </s>:1"}


def make_tiny_reranker(
    folder: Path, family: str = "xlm-roberta", *, positions: int = POSITIONS, labels: int = 1
) -> Path:
    """Write the model into a folder, as such models lie on the hub."""
    make_tiny_m3(folder)
    for name in ("sparse_linear.pt", "colbert_linear.pt"):
        (folder / name).unlink()
    _set_pairs(folder, _TEMPLATES[family])
    _write_weights(folder, family, positions, labels)
    return folder


def _set_pairs(folder: Path, template: str) -> None:
    """How a pair is joined, and how ids become text again, which FlagEmbedding does on its way."""
    from tokenizers import Tokenizer, decoders, processors

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair=template, special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    file = folder / "tokenizer_config.json"
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if ":1" in template else [])]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_input_names": names}))


def _write_weights(folder: Path, family: str, positions: int, labels: int) -> None:
    import torch

    state = torch.get_rng_state()
    torch.manual_seed(20240301)
    model = _model(family, positions, labels)
    for name, weight in model.named_parameters():
        if weight.ndim == 2:
            weight.data *= 12
        if name.endswith("bias"):
            weight.data += torch.randn_like(weight) / 2
    model.save_pretrained(folder)
    torch.set_rng_state(state)


def _model(family: str, positions: int, labels: int) -> Any:
    import transformers

    kinds = {
        "xlm-roberta": (
            transformers.XLMRobertaConfig,
            transformers.XLMRobertaForSequenceClassification,
        ),
        "bert": (transformers.BertConfig, transformers.BertForSequenceClassification),
    }
    config, model = kinds[family]
    return model(
        config(
            vocab_size=len(SPECIAL) + len(WORDS),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=positions,
            type_vocab_size=2 if family == "bert" else 1,
            pad_token_id=1,
            num_labels=labels,
        )
    )
