"""A BGE-M3 in small: the same files and architecture, random weights from a fixed seed, 32
dimensions.

Imported by name (`tests.unit.embedding.tiny_m3`).
"""

import json

DIMENSIONS = 32
POSITIONS = 64
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
WORDS = (
    tuple("abcdefghijklmnopqrstuvwxyz")
    + tuple("▁" + sign for sign in "abcdefghijklmnopqrstuvwxyz")
    + ("▁",)
)


def make_tiny_m3(folder, positions=POSITIONS, scale=1.0):
    """Write the model into a folder, as `BAAI/bge-m3` lies on the hub.

    positions: rows of the position embeddings, two more than tokens that it reads. scale: what the
    layers' matrices are multiplied with; with 1 every layer adds next to nothing to what the
    embeddings gave.
    """
    folder.mkdir(parents=True)
    _write_tokenizer(folder, positions)
    _write_weights(folder, positions, scale)
    return folder


def _write_tokenizer(folder, positions):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = [(token, 0.0) for token in SPECIAL] + [
        (token, -float(place)) for place, token in enumerate(WORDS, 1)
    ]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    names |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    config = names | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": positions - 2,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def _write_weights(folder, positions, scale):
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaModel

    generator_state = torch.get_rng_state()
    torch.manual_seed(20240229)
    config = XLMRobertaConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=DIMENSIONS,
        num_hidden_layers=2,
        # Of 16: a vector of 8 begins at no multiple of 64 bytes, and MKL gives it other bits
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
        type_vocab_size=1,
        pad_token_id=1,
    )
    model = XLMRobertaModel(config)
    for name, weight in model.named_parameters():
        if scale != 1 and weight.ndim == 2:
            weight.data *= scale
        if scale != 1 and name.endswith("bias"):
            weight.data += scale * torch.randn_like(weight) / 10
    model.save_pretrained(folder)
    torch.save(torch.nn.Linear(DIMENSIONS, 1).state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(DIMENSIONS, DIMENSIONS).state_dict(), folder / "colbert_linear.pt")
    torch.set_rng_state(generator_state)
