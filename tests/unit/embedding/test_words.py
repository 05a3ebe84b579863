"""Tokens word by word are the tokenizer's own, for any text, and for every sign that a text is taken apart with."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.embedding.tokens import TokenRows, plain, tokenize
from pipeline.embedding.words import _OTHER, WordTokenizer, knows_words

pytestmark = pytest.mark.slow

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PIECES = ("▁", "a", "b", "ab", "▁a", "▁ab", "▁abc", "c", "é", "▁é", "1", "▁1", "▁the", "中", "▁中", ".", ",")


@lru_cache(maxsize=1)
def _small() -> Any:
    """A tokenizer built as transformers builds XLM-RoBERTa's, with 17 pieces."""
    from transformers import XLMRobertaTokenizer

    vocabulary = [(token, 0.0) for token in SPECIAL] + [(piece, -float(place)) for place, piece in enumerate(PIECES)]
    return plain(XLMRobertaTokenizer(vocab=vocabulary).backend_tokenizer)


@lru_cache(maxsize=1)
def _real() -> Any:
    """XLM-RoBERTa's own vocabulary and normalizer, where the package that has them is installed."""
    import semantra_multilingual
    from transformers import XLMRobertaTokenizer

    (file,) = Path(semantra_multilingual.__file__).parent.glob("assets/*/tokenizer.json")
    return plain(XLMRobertaTokenizer.from_pretrained(str(file.parent)).backend_tokenizer)


needs_xlm_roberta = pytest.mark.skipif(
    find_spec("semantra_multilingual") is None, reason="XLM-RoBERTa's vocabulary: install the extra bench"
)


def _same(found: TokenRows, expected: TokenRows) -> None:
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.ids.tolist() == expected.ids.tolist()


SIGNS = st.text(
    alphabet=st.one_of(st.sampled_from(" \t\nabcé中1.,<s>\u0301\u200d\xa0\u3000\r\x1c\ufeff"), st.characters())
)


@given(st.lists(SIGNS, max_size=5))
@example(["", " ", "<s>a</s> <mask> b<pad>", "a  b", " a\u0301 \u0301b", "a\r\nb", "a\x1cb", "a\u3000b", "ab" * 40])
def test_any_texts_have_the_tokenizers_own_ids(texts: list[str]) -> None:
    _same(WordTokenizer(_small()).rows(texts), tokenize(_small(), texts))


@given(st.randoms(use_true_random=False), st.integers(1, 300))
def test_many_new_words_have_the_tokenizers_own_ids(random: Random, count: int) -> None:
    """They go to the tokenizer many in one text: neither special tokens nor unknown signs among them shift an edge."""
    parts = ["a", "b", "ab", "abc", "1", ".", ",", "~", "the", "<mask>", "<s>", "é", "▁", "<"]
    words = ["".join(random.choices(parts, k=random.randint(1, 5))) for _ in range(count)]
    texts = [" ".join(words), " ".join(reversed(words))]
    _same(WordTokenizer(_small()).rows(texts), tokenize(_small(), texts))


@needs_xlm_roberta
@settings(max_examples=20)  # a tokenizer of 250,000 tokens takes 0.3 s to build
@given(st.lists(SIGNS, max_size=5))
@example(["", " ", "<s>a</s> <mask> b<pad>", "a  b", " a\u0301 \u0301b", "a\r\nb", "a\x1cb", "a\u3000b", "´ ´a ﬁ ½"])
def test_any_texts_have_xlm_robertas_ids(texts: list[str]) -> None:
    _same(WordTokenizer(_real()).rows(texts), tokenize(_real(), texts))


@needs_xlm_roberta
def test_every_sign_that_texts_are_taken_apart_with_keeps_its_ids() -> None:
    signs = [chr(number) for number in range(sys.maxunicode) if not 0xD800 <= number < 0xE000]
    texts = [f"a {sign} b{sign} {sign}c c{sign}c {sign}{sign}" for sign in signs if not _OTHER.match(sign)]
    assert len(texts) > 30_000
    _same(WordTokenizer(_real()).rows(texts), tokenize(_real(), texts))


def test_words_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.embedding.words._MOST_WORDS", 3)
    tokenizer = WordTokenizer(_small())
    for text in ("a b c ab", "abc 1 . ,", "the a"):
        _same(tokenizer.rows([text]), tokenize(_small(), [text]))


def test_another_kind_of_tokenizer_is_left_to_itself() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    assert knows_words(_small())
    other = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0))
    assert not knows_words(other)
    other.pre_tokenizer = pre_tokenizers.Metaspace()
    assert not knows_words(other)
