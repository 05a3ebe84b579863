"""XLM-RoBERTa's tokens word by word, each word once: papers repeat their words, and the tokenizer does not remember.

Never here: another kind of tokenizer; `knows_words` says whether one is of this kind. XLM-RoBERTa's splits a text at
white space before all else, so that a text's ids are its words' ids end to end. On 712 passages of real papers the
tokenizer alone makes 1.2 million tokens in a second of a core, and this 7 million once it knows their words.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from pipeline.embedding.tokens import TokenRows, tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Words that are remembered, some 40 MB; then all are forgotten. A month of 20,000 papers has more.
_MOST_WORDS = 200_000
# New words that go to the tokenizer as one text: one by one they take 1.4 times as long, and more at once gain nothing.
_WORDS_A_TEXT = 64

# The normalizer reads a text by grapheme clusters, and a mark that follows a space is one cluster with it. A text is
# taken apart only where it has nothing but these: no marks, joiners, controls or unusual spaces.
_RANGES = (
    " -~", "\t\n", "\xa0-\xac", "\xae-\u02ff", "\u0370-\u0377", "\u0384-\u0482", "\u048a-\u052f", "\u2010-\u2027",
    "\u2030-\u205e", "\u2070-\u209c", "\u20a0-\u20bf", "\u2100-\u23ff", "\u2460-\u27ff", "\u2900-\u2bff",
    "\u3001-\u3029", "\u3041-\u3096", "\u30a0-\u30ff", "\u4e00-\u9fff", "\uac00-\ud7a3", "\ufb00-\ufb06",
    "\U0001d400-\U0001d7ff",
)  # fmt: skip
_OTHER = re.compile(f"[^{''.join(_RANGES)}]")


class WordTokenizer:
    """A tokenizer of which `knows_words` is true. May be used from several threads."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, bytes] = {}
        self._begins = _beginnings(tokenizer)
        added = [re.escape(token.content) for token in tokenizer.get_added_tokens_decoder().values()]
        # What is normalized may come apart, and a special token has no beginning: such words are looked up alone.
        self._odd = re.compile("|".join(["[^!-~]", *added]))
        self._first, self._last = (_bytes([number]) for number in tokenizer.encode("").ids)

    def rows(self, texts: Sequence[str]) -> TokenRows:
        """The ids that `tokens.tokenize` gives for the texts."""
        import numpy as np

        words = [None if _OTHER.search(text) else text.split() for text in texts]
        known = self._learn(words)
        others = [text for text, row in zip(texts, words, strict=True) if row is None]
        whole = iter(_each(tokenize(self._tokenizer, others)))
        parts = [next(whole) if row is None else self._joined(row, known) for row in words]
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) // 4 for part in parts], out=offsets[1:])
        return TokenRows(np.frombuffer(b"".join(parts), dtype=np.int32), offsets)

    def _joined(self, words: Sequence[str], known: dict[str, bytes]) -> bytes:
        return b"".join((self._first, *map(known.__getitem__, words), self._last))

    def _learn(self, words: Sequence[Sequence[str] | None]) -> dict[str, bytes]:
        """The ids of every word; those that are new are found together."""
        if len(self._known) > _MOST_WORDS:
            # Another thread may still read the old one.
            self._known = {}
        known = self._known
        new = sorted(set(chain.from_iterable(filter(None, words))).difference(known))
        plain = [word for word in new if not self._odd.search(word)]
        known.update(self._together(plain))
        known.update(self._alone([word for word in new if word not in known]))
        return known

    def _together(self, words: Sequence[str]) -> dict[str, bytes]:
        """The ids of words, many in one text; those of a text that does not come apart into them are missing."""
        import numpy as np

        texts = [words[start : start + _WORDS_A_TEXT] for start in range(0, len(words), _WORDS_A_TEXT)]
        found: dict[str, bytes] = {}
        for mine, ids in zip(texts, self._encoded([" ".join(text) for text in texts]), strict=True):
            whole = np.array(ids, np.int32)
            edges = [*(4 * np.flatnonzero(self._begins[whole])).tolist(), 4 * len(whole)]
            if edges[0] == 0 and len(edges) == len(mine) + 1:
                raw = whole.tobytes()
                found |= {word: raw[first:last] for word, (first, last) in zip(mine, pairwise(edges), strict=True)}
        return found

    def _alone(self, words: Sequence[str]) -> dict[str, bytes]:
        return {word: _bytes(ids) for word, ids in zip(words, self._encoded(words), strict=True)}

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        return [each.ids for each in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]


def _beginnings(tokenizer: Any) -> NDArray[np.bool_]:
    """By id, whether a token is the first of a word: it bears SentencePiece's mark."""
    import numpy as np

    vocabulary = tokenizer.get_vocab()
    begins = np.zeros(max(vocabulary.values()) + 1, np.bool_)
    begins[[number for piece, number in vocabulary.items() if piece.startswith("\u2581")]] = True
    return begins


def _bytes(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()


def _each(rows: TokenRows) -> list[bytes]:
    edges = (rows.offsets * 4).tolist()
    whole = rows.ids.tobytes()
    return [whole[first:last] for first, last in pairwise(edges)]


def knows_words(tokenizer: Any) -> bool:
    """Whether a tokenizer's ids for a text are those of its words, between two special ones.

    That is so where it normalizes by SentencePiece's table, splits at white space, marks every word's beginning and
    looks for the likeliest pieces of each; as transformers builds it for XLM-RoBERTa.
    """
    added = tokenizer.get_added_tokens_decoder().values()
    return (
        type(tokenizer.model).__name__ == "Unigram"
        and type(tokenizer.normalizer).__name__ in ("Precompiled", "NoneType")
        and _splits_at_space(tokenizer.pre_tokenizer)
        and not any(re.search(r"\s", token.content) for token in added)
        and len(tokenizer.encode("").ids) == 2
    )


def _splits_at_space(step: Any) -> bool:
    if step is None:
        return False
    steps = json.loads(step.__getstate__()).get("pretokenizers", [])
    kinds = [(step["type"], step.get("prepend_scheme")) for step in steps]
    return kinds == [("WhitespaceSplit", None), ("Metaspace", "always")]
