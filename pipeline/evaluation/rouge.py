"""ROUGE-1, -2 and -L between a text and its gold text, and the floor that any section of the field
reaches.

Values are those of rouge-score, Google's port of ROUGE-1.5.5, with Porter stemming on (`-m` of the
original): lower case, every sign that is not a-z or 0-9 parts words, and words of four letters or
more are stemmed. `[Reference 3]` counts as the two words "reference" and "3", in both texts alike.

There are two ROUGE-L. `rougeL` takes the whole text as one sequence. `rougeLsum` takes it sentence
by sentence: for each gold sentence it counts the words that lie in a longest common subsequence
with any sentence of the text, as ROUGE-1.5.5 does for summaries (Lin 2004, section 3.2). On
related-work sections `rougeL` is 0.43 of ROUGE-1, and `rougeLsum` 0.95. ChatCite (arXiv 2403.02574,
section 5.1) reports the F1 of R-1, R-2 and R-L and says neither package nor stemming; its R-L is
0.91 to 0.93 of R-1 in all rows of its tables, which only the ROUGE-L by sentence gives. So the
paper's column is beside `rougeLsum`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from pipeline.related_work.summary import split_sentences
from pipeline.text import text_digest

FLOOR = "random_section"
"""The name in `scores` of the system for which another task's gold section stands."""
METRICS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_SHORTEST_STEMMED = 4
_WORD = re.compile(r"[a-z0-9]+")

_IRREGULAR = {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}
# Suffix → what replaces it. Of two that a word ends with, the first counts.
_PLURALS = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
_DOUBLE_SUFFIXES = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "fulli": "ful",
}
_ADJECTIVES = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_LAST_SUFFIXES = dict.fromkeys(
    [
        "al",
        "ance",
        "ence",
        "er",
        "ic",
        "able",
        "ible",
        "ant",
        "ement",
        "ment",
        "ent",
        "ou",
        "ism",
        "ate",
        "iti",
        "ous",
        "ive",
        "ize",
    ],
    "",
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word in lower case, of three letters or more, as nltk's PorterStemmer."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1]).endswith("c"):
        word = f"{word[:-1]}i"
    word = _without_double_suffix(word)
    word = _replace(word, _ADJECTIVES, 1)
    if not word.endswith("ion"):
        word = _replace(word, _LAST_SUFFIXES, 2)
    elif word[-4:-3] in ("s", "t") and _measure(word[:-3]) > 1:
        word = word[:-3]
    return _without_last_letter(word)


def _shape(word: str) -> str:
    """`c` for each consonant and `v` for each vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether a word ends as `hop` does: consonant, vowel, and a consonant other than w, x, y."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _replace(word: str, suffixes: Mapping[str, str], least: int) -> str:
    """The word with the first of the suffixes replaced, if what is before it measures `least`."""
    for suffix, replacement in suffixes.items():
        if word.endswith(suffix):
            before = word.removesuffix(suffix)
            return before + replacement if _measure(before) >= least else word
    return word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    return _replace(word, _PLURALS, 0)


def _without_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    before = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    shape = _shape(before)
    if before == word or "v" not in shape:
        return word
    if before.endswith(("at", "bl", "iz")):
        return f"{before}e"
    if before[-1] == before[-2:-1] and shape.endswith("c"):
        return before if before[-1] in "lsz" else before[:-1]
    return f"{before}e" if _measure(before) == 1 and _is_short(before) else before


def _without_double_suffix(word: str) -> str:
    if word.endswith("alli"):
        return _without_double_suffix(word[:-2]) if _measure(word[:-4]) else word
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replace(word, _DOUBLE_SUFFIXES, 1)


def _without_last_letter(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def rouge(gold: str, text: str) -> dict[str, float]:
    """F1 in percent of `text` against `gold` for each of METRICS; 0 where nothing is shared."""
    gold_sentences, sentences = _sentences(gold), _sentences(text)
    gold_words, words = list(chain(*gold_sentences)), list(chain(*sentences))
    unigrams = Counter(gold_words) & Counter(words)
    bigrams = Counter(pairwise(gold_words)) & Counter(pairwise(words))
    by_sentence = _shared_by_sentence(gold_sentences, sentences)
    return {
        "rouge1": _f1(unigrams.total(), len(gold_words), len(words)),
        "rouge2": _f1(bigrams.total(), len(gold_words) - 1, len(words) - 1),
        "rougeL": _f1(len(_common_places(gold_words, words)), len(gold_words), len(words)),
        "rougeLsum": _f1(by_sentence, len(gold_words), len(words)),
    }


def floor_task(task_id: str, golds: Mapping[str, str]) -> str | None:
    """The task whose gold section stands for a section on anything, as the floor beside this task's
    scores.

    golds: task → its gold section, those of one month. Which one it is follows from the ids alone,
    as a draw would: the least digest of the pair. None where no other task has a gold section.
    """
    others = [other for other, gold in golds.items() if other != task_id and gold.strip()]
    return min(
        others,
        key=lambda other: text_digest(f"{task_id} {other}"),
        default=None,
    )


def _sentences(text: str) -> list[list[str]]:
    """The words of each sentence."""
    return [
        [
            stem(word) if len(word) >= _SHORTEST_STEMMED else word
            for word in _WORD.findall(sentence.lower())
        ]
        for sentence in split_sentences(text)
    ]


def _f1(shared: int, in_gold: int, in_text: int) -> float:
    """F1 in percent of so many shared words or pairs of words."""
    if not shared:
        return 0.0
    precision, recall = shared / in_text, shared / in_gold
    return 100.0 * (2 * precision * recall / (precision + recall))


def _shared_by_sentence(gold: Sequence[Sequence[str]], text: Sequence[Sequence[str]]) -> int:
    """Words of gold sentences that are in a longest common subsequence with any sentence of the
    text; each counts as often as both texts have it.
    """
    left = Counter(chain(*gold)) & Counter(chain(*text))
    shared = 0
    for sentence in gold:
        places = set[int]().union(*(_common_places(sentence, other) for other in text))
        for place in sorted(places):
            if left[sentence[place]]:
                left[sentence[place]] -= 1
                shared += 1
    return shared


def _common_places(gold: Sequence[str], text: Sequence[str]) -> list[int]:
    """Places in `gold` of a longest common subsequence; of several, the one that rouge-score takes,
    whose words `rougeLsum` counts.
    """
    lengths = [[0] * (len(text) + 1)]
    for word in gold:
        above, row = lengths[-1], [0]
        for place, other in enumerate(text):
            row.append(above[place] + 1 if word == other else max(above[place + 1], row[place]))
        lengths.append(row)
    places, i, j = [], len(gold), len(text)
    while i and j:
        if gold[i - 1] == text[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return places
