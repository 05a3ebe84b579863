"""Extract the facts of a sentence that embeddings do not tell apart: numbers, negations and
directions.

Rules in place of a model: each fact can be shown by its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.passages.table_cells import TableCell, tables_in
from pipeline.embedding.lexical import STOP_WORDS, term_id, words_of

Span = tuple[int, int]

_FEWEST_STEMS = 3
# How far a number that is "about" another may be from it.
_ROUNDING = 0.05

_UNITS = {
    "%": "%", "percent": "%", "per cent": "%", "percentage points": "points", "points": "points",
    "percentage point": "points", "point": "points", "pp": "points", "x": "times", "×": "times",
    "times": "times", "-fold": "times", "fold": "times", "ms": "ms", "milliseconds": "ms",
    "s": "s", "secs": "s", "sec": "s", "seconds": "s", "second": "s", "minutes": "min",
    "min": "min", "hours": "h", "hour": "h", "h": "h", "days": "days", "day": "days",
    "weeks": "weeks", "week": "weeks", "months": "months", "month": "months", "years": "years",
    "year": "years", "KB": "KB",
    "MB": "MB", "GB": "GB", "TB": "TB", "mg": "mg", "kg": "kg", "km": "km", "cm": "cm",
    "mm": "mm",
}  # fmt: skip
_MULTIPLIERS = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "K": 1e3,
    "M": 1e6, "B": 1e9,
}  # fmt: skip
_WORD_VALUES = {
    "quarter": 0.25, "half": 0.5, "twice": 2, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip


def _any_of(words: Sequence[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


# Not a number: digits within a name (GPT-4, recall@10, p53), an index (x_1), a version (1.2.3), a
# fraction, a place in a formula of chemistry.
_NUMBER = re.compile(
    rf"(?<![\w.,@^_#/·])(?<![^\W\d_][-–(])(?<![^\W_]\+)"
    rf"(?P<digits>\d{{1,3}}(?:(?:[, ]|\{{,\}})\d{{3}})+(?!\d)(?:[.·]\d+)?|\d+(?:[.·]\d+)?"
    rf"|\b(?:{_any_of(list(_WORD_VALUES))})\b)"
    rf"(?P<power>(?:\s?(?:\\times|\\cdot|[×·])\s?10|(?<=\b10))\^\{{?(?P<exponent>[-−]?\d{{1,2}})\}}?"
    rf"|e(?P<e>[-−]?\d{{1,2}}))?"
    rf"(?P<times>(?:[\s–-]?(?:thousand|million|billion|trillion)|(?-i:[kKMB]))(?![^\W_]))?"
    rf"(?P<unit>(?:[\s~$-]|\\,?){{0,3}}(?:{_any_of(list(_UNITS))})(?!\w))?"
    rf"(?![^\W_]|\.\d|[@/]|,\d)",
    re.IGNORECASE,
)
# Words before a number that make it a name: "type 2 diabetes".
_LABELLED = re.compile(
    r"(?:\b(?:type|stage|grade|phase|level|class|step|group|table|figure|fig|section|chapter|kinase"
    r"|factor|chromosome|day|version|question|equation|algorithm|theorem|lemma|appendix|case|part"
    r"|layer|experiment|study|cluster|protein|receptor)\.?|\b[A-Z]\w*)\s$",
)
# Of LaTeX: of 3.5\,$ms, 2\times 10^{-4}.
_MARKUP = re.compile(r"\\,?|[${}]")
_SEPARATOR = re.compile(r"\{,\}|[, ]")
# "23 of the 36 claims", "23 / 36 claims": both count claims.
_OF_WHOLE = re.compile(r"\s(?:of|/|out of)(?: the| all)? \d+(?=\s[^\W\d_])")
# Words before a number that is not meant to the digit.
_ROUNDED = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|more than|less than"
    r"|up to|at least|at most|some|circa|ca\.)|[~≈∼><≥≤])\s?(?:another )?$",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|[.,;:()|—]")
# Words between a number and the name of what it measures: "a recall of 0.52".
LINKS = frozenset({
    "of", "is", "are", "was", "were", "at", "to", "from", "by", "in", "about", "around", "nearly",
    "almost", "roughly", "only", "up", "over", "under", "than", "least", "most", "a", "an", "the",
    "reaches", "reached", "reach", "achieves", "achieved", "achieve", "with", "equals",
    "approximately", "between", "and", "as", "after", "before", "for", "against", "when", "while",
    "using", "across", "into", "within", "during", "that", "which", "compared", "or", "but",
    "have", "has", "had", "do", "does", "can",
})  # fmt: skip
_BREAKS = re.compile(
    r"[,;:]\s|\s[(—–-]\s?|\b(?:but|while|whereas|although|though|however|yet|which|because)\b"
)

# Negations of a statement; and words that deny something in another way.
_NEGATION = re.compile(
    r"(?<!may )(?<!might )(?<!could )\b(?:not(?! (?:only|just|merely|necessarily|well|yet|clear"
    r"|clearly|known|fully|always|understood|surprising\w*|all|every|even|been)\b)|never"
    r"|cannot|fail(?:s|ed|ing)? to|unable to|no(?! longer than| more than| less than| doubt|\.))\b"
    r"|(?<=\w)n['’]t\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"n['’]t\b|\b(?:no|not|never|cannot|none|neither|nor|without|fail\w*|lack\w*|unable|unlikely|hardly|rarely|seldom"
    r"|little|absen\w*|independent\w*|insufficient\w*|rather than|un(?:affected|changed|altered"
    r"|related|necessary|successful\w*|detect\w+)|ineffective|insignificant\w*|dispensable"
    r"|deficien\w*|contrary)\b",
    re.IGNORECASE,
)
_STRICT = re.compile(
    r"\b(?:not|no|never|none|neither|cannot|without|rarely|hardly)\b|(?<=\w)n['’]t\b",
    re.IGNORECASE,
)
_DENIED_WITHIN = 40
# A sentence that says what was asked, and not what was found.
_PURPOSE = re.compile(
    r"\b(?:whether|aim\w*|objectives?|purpose|hypothes\w+|sought|to (?:assess|evaluate|determine"
    r"|investigate|examine|test|study|estimate|compare|identify)|unclear|unknown)\b|\?$",
    re.IGNORECASE,
)
# A word with a capital within a sentence, and one with a second capital or a digit anywhere; with
# its year: WMT 2014.
_NAME = re.compile(
    r"(?:(?<=[^\W_][ ,-])[A-Z]\w+|\b(?:\w*[A-Z]\w*[A-Z0-9]\w*|[a-z]+\d\w*)\b)"
    r"(?:[ -](?:19|20)\d\d\b)?"
)
_QUANTIFIER = re.compile(
    r"\b(all|every|each|any|only|entirely|completely|fully)\b((?:[ -]\w+){0,3})", re.IGNORECASE
)
_HEDGE = re.compile(
    r"\b(?:may|might|could|possibly|potentially|perhaps|suggests?|seems?|appears?|likely|partly"
    r"|partially|sometimes)\b",
    re.IGNORECASE,
)
# What a paper calls its own, and the sentence that gives it a name: "we propose a network, the
# Otter, which"; not "we propose an analysis of Otter", "an Otter-based network".
_OWN = re.compile(r"\b(?:our|we)\b", re.IGNORECASE)
_PART_OF_NAME = r"(?:[A-Z0-9]\w{0,40})"
_INTRODUCED = re.compile(
    r"\b[Ww]e (?:propose|introduce|present|develop|construct|build|create|call)\s"
    r"(?:(?!(?:of|on|for|in|with|based|over|from|to|by|using|that|as|into)\b)[a-z-]{1,30},?\s){0,7}"
    rf"(?P<name>{_PART_OF_NAME}(?:[ -]{_PART_OF_NAME}){{0,3}})(?=[,.;:()]|\s\(|\s(?:which|that)\b)"
)
# Content words behind a negation that it denies.
_SCOPE = 4

# Kind of direction → words that say it, and words that say the opposite. Verbs have their forms.
_COMPARATIVES = {
    "comparison": (
        "more higher highest greater greatest larger largest longer longest bigger",
        "less fewer lower lowest fewest smaller smallest shorter shortest",
    ),
    "quality": ("better best superior", "worse worst inferior"),
    "speed": ("fast faster quicker fastest", "slower slowest"),
    "order": ("first earlier", "last later"),
    "extent": ("most", "least"),
    "strength": ("stronger strongest", "weaker weakest"),
    "sign": ("positive positively", "negative negatively"),
    "frequency": ("always", "never"),
}
_VERBS = {
    "change": (
        "increase rise raise elevate upregulate enhance boost",
        "decrease reduce decline diminish downregulate attenuate drop",
    ),
    "quality": (
        "improve outperform beat surpass exceed benefit help",
        "worsen underperform impair degrade hurt harm",
    ),
    "gain": ("gain win save", "lose cost loss"),
    "strength": ("strengthen", "weaken"),
    "speed": ("accelerate", "slow"),
    "effect": ("promote activate stimulate facilitate", "inhibit suppress prevent repress hinder"),
}


def _forms(verb: str) -> list[str]:
    base = verb.removesuffix("e")
    return [verb, f"{verb}s", f"{verb}es", f"{base}ed", f"{base}ing", f"{verb}{verb[-1]}ed"]


# Verbs of a comparison: what stands before them is compared with what stands behind.
_COMPARING = frozenset(
    form
    for verb in ("outperform", "beat", "surpass", "exceed", "underperform")
    for form in _forms(verb)
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|been|be)\s(?:\w{1,30}ly\s)?$")
_THAN = re.compile(r"[^,;:.]{0,40}?\bthan\b")
_SIDE_START = re.compile(r"[,;:(]|\b(?:that|and|but|while|which|whereas|when|because)\b")
_SIDE_END = re.compile(
    r"[,;:()]|\.(?!\d)|\b(?:on|in|by|at|for|with|and|when|while|but|under|across|because|which|if)\b"
)
# A side is at most so long.
_SIDE_CHARS = 200
_ADVERB = re.compile(r"\b(?:\w{1,30}ly|even|also|still|much|far)\b")


def _sides() -> Iterator[tuple[str, tuple[str, int]]]:
    for kind, sides in _COMPARATIVES.items():
        for side, words in zip((1, -1), sides, strict=True):
            yield from ((word, (kind, side)) for word in words.split())
    for kind, sides in _VERBS.items():
        for side, verbs in zip((1, -1), sides, strict=True):
            for verb in verbs.split():
                yield from ((form, (kind, side)) for form in _forms(verb))


_DIRECTIONS = dict(_sides())
"""Word → kind of direction, and +1 or -1."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a sentence. value: with its factor ("3 million").

    unit: as `_UNITS` names it, empty for none. counts: stems of what it counts or measures.
    phrase: of all words behind it, as far as a preposition, where it counts these.
    is_plain: in digits, and no part of a name ("type 2"). is_rounded: after "about" or the like.
    span: of the number and its unit.
    """

    text: str
    value: float
    decimals: int
    factor: float
    unit: str
    counts: frozenset[int]
    phrase: frozenset[int]
    is_plain: bool
    is_rounded: bool
    span: Span

    def same_value(self, other: Number) -> bool:
        """Whether the other has this value, or has it once it is rounded to these digits."""
        values = [other.value]
        if "%" in (self.unit, other.unit) and not (self.unit and other.unit):
            values += [other.value * 100, other.value / 100]
        tolerance = self._rounding if self.is_rounded else 1e-9
        # A table says "millions" in its heading.
        if self.factor > 1 and other.factor == 1 and self.counts & other.counts:
            values.append(other.value * self.factor)
        if any(abs(value - self.value) <= tolerance * max(1.0, value) for value in values):
            return True
        half = 0.5000001 * 10.0**-self.decimals
        return self.decimals < other.decimals and abs(other.value - self.value) <= half

    @property
    def _rounding(self) -> float:
        """Half a unit of the last digit that is not 0, as a share, at most `_ROUNDING`."""
        step = 10.0**-self.decimals
        if self.value and self.value.is_integer():
            digits = f"{self.value:.0f}"
            step = 10.0 ** (len(digits) - len(digits.rstrip("0")))
        return min(_ROUNDING, step / 2 / max(self.value, 1e-9))

    def same_unit(self, other: Number) -> bool:
        """Whether the units are one, or one of the two has none."""
        return self.unit == other.unit or not (self.unit and other.unit)

    def distance(self, other: Number) -> float:
        """How far the other's value is from this one."""
        return abs(other.value - self.value)

    def equals(self, other: Number) -> bool:
        """Whether the other has this value, with this unit or without one."""
        return self.same_value(other) and self.same_unit(other)


@dataclass(frozen=True, slots=True)
class Word:
    """A content word. negated: it stands behind a negation. direction: as in `_DIRECTIONS`."""

    stem: int
    span: Span
    negated: bool
    direction: tuple[str, int] | None


class Sides(NamedTuple):
    """The stems of the two sides of a comparison, the one that it puts first, and its text."""

    first: frozenset[int]
    second: frozenset[int]
    text: str

    def exchanged(self, other: Sides) -> bool | None:
        """Whether the other compares the same things in each other's place; False where both are
        in their own, None where it compares other things.
        """
        together = [self.first & other.first, self.second & other.second]
        crossed = [self.first & other.second, self.second & other.first]
        same, opposite = sum(map(len, together)), sum(map(len, crossed))
        if all(together) and same >= opposite:
            return False
        if all(crossed) and opposite > same:
            return True
        return None


@dataclass(frozen=True)
class Facts:
    """A sentence with its facts. is_cell: a cell of a table, as `cell_text` words it."""

    text: str
    is_cell: bool = False

    @cached_property
    def numbers(self) -> list[Number]:
        return list(_numbers(self.text))

    def is_cell_value(self, number: Number) -> bool:
        """Whether a cell has a number itself, and not in the heading of its row or column."""
        heading = self.text.rfind(": ")
        return any(number.equals(other) for other in self.numbers if other.span[0] > heading)

    @cached_property
    def negations(self) -> list[Span]:
        return [match.span() for match in _NEGATION.finditer(self.text)]

    @cached_property
    def strict_denials(self) -> list[Span]:
        """Words that turn a statement into its opposite, where all others are the same."""
        return [match.span() for match in _STRICT.finditer(self.text)]

    def is_denied(self, place: int) -> bool:
        """Whether a denial stands shortly before a place, within its clause."""
        start = max(0, place - _DENIED_WITHIN)
        before = re.split(r"[,;:]", self.text[start:place])[-1]
        return _DENIAL.search(before) is not None

    @cached_property
    def denials(self) -> list[Span]:
        """Negations, and other words that deny something."""
        return [*self.negations, *(match.span() for match in _DENIAL.finditer(self.text))]

    @cached_property
    def is_purpose(self) -> bool:
        """Whether it says what was asked, and not what was found."""
        return _PURPOSE.search(self.text) is not None

    @cached_property
    def words(self) -> list[Word]:
        return list(_words(self.text, self.negations))

    @cached_property
    def stems(self) -> frozenset[int]:
        """Stems that say what the sentence is about, without negations and directions."""
        return frozenset(word.stem for word in self.words if word.direction is None)

    @cached_property
    def names(self) -> frozenset[int]:
        """Stems of the words of names: proper nouns, acronyms, systems."""
        return _all_stems(" ".join(_NAME.findall(self.text)))

    @cached_property
    def introduced_name(self) -> str:
        """The name behind "we propose", of the paper's own system; "" for none."""
        match = _INTRODUCED.search(self.text)
        return match["name"] if match else ""

    @cached_property
    def speaks_of_own(self) -> bool:
        """Whether it says "our model" or the like."""
        return _OWN.search(self.text) is not None

    @cached_property
    def quantifiers(self) -> list[tuple[str, frozenset[int]]]:
        """Words that say of how much it holds ("all", "only"), each with the stems behind it."""
        return [
            (match[1].lower(), _all_stems(match[2])) for match in _QUANTIFIER.finditer(self.text)
        ]

    @cached_property
    def hedges(self) -> frozenset[str]:
        """Words that take some certainty from it: "may", "suggests"."""
        return frozenset(word.lower() for word in _HEDGE.findall(self.text))

    @cached_property
    def all_stems(self) -> frozenset[int]:
        """Stems of all words and digits."""
        return _all_stems(self.text)

    @cached_property
    def stems_beside_numbers(self) -> frozenset[int]:
        """Stems of all words and digits but those of its numbers."""
        text = self.text
        for number in reversed(self.numbers):
            start, end = number.span
            text = f"{text[:start]} {text[end:]}"
        return _all_stems(text)

    @cached_property
    def breaks(self) -> list[int]:
        return [0, *(match.start() for match in _BREAKS.finditer(self.text)), len(self.text)]

    def sides_of(self, word: Word) -> Sides | None:
        """The sides that a word of direction compares: "X outperforms Y", "X is better than Y";
        None for a word that compares nothing.
        """
        start, pivot = max(0, word.span[0] - _SIDE_CHARS), word.span[1]
        before, after = self.text[start : word.span[0]], self.text[pivot : pivot + _SIDE_CHARS]
        start += max((match.end() for match in _SIDE_START.finditer(before)), default=0)
        is_passive = False
        than = _THAN.match(after)
        if than:
            pivot += than.end()
        elif self.text[slice(*word.span)].lower() not in _COMPARING:
            return None
        elif after.startswith(" by ") and _PASSIVE.search(before):
            is_passive, pivot = True, pivot + len(" by")
        end = _SIDE_END.search(self.text, pivot, pivot + _SIDE_CHARS)
        stop = end.start() if end else pivot + _SIDE_CHARS
        first = _stems_of_side(self.text[start : word.span[0]])
        second = _stems_of_side(self.text[pivot:stop])
        if is_passive:
            first, second = second, first
        return Sides(first, second, self.text[start:stop].strip())

    def clause(self, place: int) -> frozenset[int]:
        """The stems of the clause around a place; of the sentence where the clause has few."""
        return self._stems_within(*self._bounds_of_clause(place))

    def words_around(self, place: int) -> frozenset[int]:
        """The stems of all words and digits of the clause around a place."""
        return _all_stems(self.text[slice(*self._bounds_of_clause(place))])

    def words_before(self, negation: Span) -> frozenset[int]:
        """The stems of the words before a negation in its clause: what it says something of."""
        start, _ = self._bounds_of_clause(negation[0])
        before = self.text[start : negation[0]]
        return _all_stems(" ".join(word for word in before.split() if word not in LINKS))

    def _bounds_of_clause(self, place: int) -> Span:
        for start, end in zip(self.breaks, self.breaks[1:], strict=False):
            if start <= place < end and len(self._stems_within(start, end)) >= _FEWEST_STEMS:
                return start, end
        return 0, len(self.text)

    def _stems_within(self, start: int, end: int) -> frozenset[int]:
        return frozenset(
            word.stem
            for word in self.words
            if start <= word.span[0] < end and word.direction is None
        )


def _all_stems(text: str) -> frozenset[int]:
    return frozenset(map(term_id, words_of(text)))


def _stems_of_side(text: str) -> frozenset[int]:
    words = words_of(_ADVERB.sub(" ", text))
    return frozenset(term_id(word) for word in words if word not in _DIRECTIONS)


def _numbers(text: str) -> Iterator[Number]:
    for match in _NUMBER.finditer(text):
        digits = _SEPARATOR.sub("", match["digits"]).replace("·", ".")
        word_value = _WORD_VALUES.get(digits.lower())
        whole = _OF_WHOLE.match(text, match.end())
        noun = whole.end() if whole else match.end()
        following = [word[0] for word in _WORD.finditer(text, noun, noun + 60)]
        if word_value is None and (_is_year(match, text, following) or _is_item(match, text)):
            continue
        if match["unit"] and following[:1] == ["of"]:
            # "3.5 days of training", "65% of the model size"
            following = following[2 if following[1:2] == ["the"] else 1 :]
        decimals = len(digits.partition(".")[2])
        value = float(digits) if word_value is None else float(word_value)
        unit = (match["unit"] or "").strip(" ~$\\,-")
        times = (match["times"] or "").strip(" –-")
        exponent = int((match["exponent"] or match["e"] or "0").replace("−", "-"))
        if exponent:
            # 10^5, 2\times 10^5 and 2e5
            value = (1.0 if match["power"].startswith("^") else value) * 10.0**exponent
            decimals -= exponent
        factor = 1.0
        if times:
            factor = _MULTIPLIERS.get(times) or _MULTIPLIERS[times.lower()]
            value *= factor
            decimals -= len(str(int(factor))) - 1
        label = ""
        if not (unit or times or decimals):
            label = _label_before(text, match.start())
        if label:
            counts = _all_stems(" ".join([label, *following[:1]]))
        else:
            counts = _stems_counted(text, match.start(), following, is_whole=decimals <= 0)
        behind = frozenset(_stems_behind(following))
        is_hyphenated = text[match.end() : match.end() + 1] == "-"
        yield Number(
            text=_MARKUP.sub("", match[0].replace("\\times", "×").replace("\\cdot", "·")).strip(),
            value=value,
            decimals=decimals,
            factor=factor,
            unit=_UNITS.get(unit) or _UNITS.get(unit.lower(), ""),
            counts=counts,
            phrase=behind if counts <= behind else frozenset(),
            is_plain=word_value is None and not label and not is_hyphenated,
            is_rounded=_ROUNDED.search(text, max(0, match.start() - 30), match.start()) is not None,
            span=match.span(),
        )


def _label_before(text: str, start: int) -> str:
    """The word that makes a number a name, such as "type" before 2; empty for none."""
    label = _LABELLED.search(text, max(0, start - 30), start)
    if label is None:
        return ""
    word = label[0].strip().lower()
    # "On 2,000 pages" begins a sentence.
    return "" if word in LINKS or word in STOP_WORDS else label[0]


def _is_year(match: re.Match[str], text: str, following: Sequence[str]) -> bool:
    if match["unit"] or match["times"] or not _YEAR.fullmatch(match["digits"]):
        return False
    before = text[: match.start()].rstrip(" (").rpartition(" ")[2].lower()
    has_noun = bool(following) and following[0].isalpha() and following[0].lower() not in STOP_WORDS
    return not has_noun or before in ("in", "since", "by", "during", "until", "early", "late")


def _is_item(match: re.Match[str], text: str) -> bool:
    """Whether it numbers the items of a list: "(1) … (2) …"."""
    around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
    return around == "()" and len(match["digits"]) == 1


def _stems_counted(
    text: str, start: int, following: Sequence[str], *, is_whole: bool
) -> frozenset[int]:
    """Stems of the noun behind a number, or of the measure before it ("a recall of 0.52")."""
    before = [word[0] for word in _WORD.finditer(text, max(0, start - 60), start)]
    if before and before[-1].lower() == "of" and not is_whole:
        return _stems_measured(before)
    stems = _stems_behind(following[:4])
    return frozenset(stems[:3]) if stems else _stems_measured(before)


def _stems_behind(following: Sequence[str]) -> list[int]:
    """Stems of the words behind a number, as far as one that begins another phrase."""
    stems: list[int] = []
    for word in following:
        if not word[0].isalpha() or word.lower() in STOP_WORDS or word.lower() in LINKS:
            break
        stems += map(term_id, words_of(word))
    return stems


def _stems_measured(before: Sequence[str]) -> frozenset[int]:
    """Stems of the measure at the end of the words before a number, two at most."""
    stems: list[int] = []
    for word in reversed(before):
        if not word[0].isalpha():
            break
        if word.lower() in LINKS or word in _UNITS:
            if stems:
                break
            continue
        stems += map(term_id, words_of(word))
        if len(stems) >= 2:
            break
    return frozenset(stems)


def _words(text: str, negations: Sequence[Span]) -> Iterator[Word]:
    words_in_scope, waiting = 0, list(negations)
    for match in _WORD.finditer(text):
        while waiting and match.start() >= waiting[0][1]:
            waiting.pop(0)
            words_in_scope = _SCOPE
        word = match[0]
        if not word[0].isalpha():
            words_in_scope = 0
            continue
        if any(start <= match.start() < end for start, end in negations):
            continue
        for part in words_of(word):
            is_negated = words_in_scope > 0
            yield Word(term_id(part), match.span(), is_negated, _DIRECTIONS.get(part))
            words_in_scope = max(0, words_in_scope - 1)


@lru_cache(maxsize=1 << 12)
def facts_of_passage(text: str) -> list[Facts]:
    """The sentences of a passage; of a table in Markdown, its cells with their labels."""
    cells = [Facts(cell_text(cell), is_cell=True) for cell in table_cells(text)]
    if not cells:
        return [Facts(sentence) for sentence in split_sentences(text)]
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    sentences = [sentence for line in lines for sentence in split_sentences(line)]
    return [*map(Facts, sentences), *cells]


def table_cells(text: str) -> list[TableCell]:
    """The cells of a passage's tables."""
    return [cell for table in tables_in(text) for cell in table.cells()]


def cell_text(cell: TableCell) -> str:
    """A cell as a sentence: "row, column: value"."""
    return f"{cell.row}, {cell.column}: {cell.value}"


def numbers_of(text: str) -> list[Number]:
    """The numbers of a passage."""
    return [number for facts in facts_of_passage(text) for number in facts.numbers]
