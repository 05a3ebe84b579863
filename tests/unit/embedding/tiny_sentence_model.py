"""Small models of sentence-transformers: a BERT and a ModernBERT with random weights from a fixed
seed, as folders that the library saved.

Imported by name (`tests.unit.embedding.tiny_sentence_model`).
"""

import json
import string
from typing import Literal

DIMENSIONS = 32
TOKENS = 48
PROMPTS = {"query": "query: ", "passage": "passage: "}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
Family = Literal["bert", "modernbert"]


def make_tiny_sentence_model(folder, family="bert", prompts=None):
    """Write a model into a folder: mean over tokens for BERT; first token and a dense layer of half
    the width for ModernBERT; of unit length both.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    parts = folder.with_name(f"{folder.name}-parts")
    state = torch.get_rng_state()
    torch.manual_seed(20240229)
    _encoder(family).save_pretrained(parts)
    _save_tokenizer(parts)
    pooling = Pooling(DIMENSIONS, "mean" if family == "bert" else "cls")
    dense = [] if family == "bert" else [Dense(DIMENSIONS, DIMENSIONS // 2)]
    modules = [Transformer(str(parts)), pooling, *dense, Normalize()]
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save(str(folder))
    torch.set_rng_state(state)
    return folder


def set_in(file, **values):
    """Change values of a JSON file."""
    content = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(content | values))


def _encoder(family):
    from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel

    shape = {
        "vocab_size": len(SPECIAL) + len(string.printable),
        "hidden_size": DIMENSIONS,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": TOKENS,
        "initializer_range": 0.3,
    }
    if family == "bert":
        return BertModel(BertConfig(**shape))
    special = {"pad_token_id": 0, "cls_token_id": 2, "bos_token_id": 2}
    return ModernBertModel(
        ModernBertConfig(
            **shape, **special, sep_token_id=3, eos_token_id=3, initializer_cutoff_factor=3.0
        )
    )


def _save_tokenizer(folder):
    """A token for each character."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *string.printable))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=512, **names
    ).save_pretrained(folder)
