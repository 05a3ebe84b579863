"""The comparison of a claim's numbers, negations and directions with sentences of the cited work.

A clash is a fact that a sentence on the same subject states otherwise. It is found in sentences
that share many of the claim's words, or whose embeddings are near; a contradiction in other words
is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

from pipeline.evaluation.citation_support.claim_facts import Facts, Number, Sides, Span, Word

# From which share of the clause's word stems, or which cosine, a sentence speaks of the same
# subject; chosen on the tuned part of benchmarks/planted_changes.py.
COPY, COPY_BACK, COPY_FEWEST = 0.85, 0.6, 4
SHARE_NUMBER = 0.5
# Nearer where the sentence lacks the word that the claim denies.
CLOSE_SAID, CLOSE_UNSAID, WHOLE_CLAIM = 0.45, 0.75, 0.7
SHARE_THEIR_NEGATION = 0.75
SHARE_DIRECTION, SHARED_NEAR = 0.55, 2
_DENYING_PREFIXES = ("un", "non", "non-", "dis")
# Least share of a claim's words in the sentence that is said to support it, besides all facts.
STATED_WORDS = 0.75


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the cited work.

    cosine: of its embedding and the claim's. passage: the place of its passage among those given.
    """

    facts: Facts
    cosine: float = 0.0
    passage: int = 0


@dataclass(frozen=True, slots=True)
class Clash:
    """A fact of a claim that a sentence of the cited work states otherwise.

    ours, theirs: the words of the claim and of the sentence that clash. passage: the place of the
    sentence's. closeness: of claim and sentence, 0 to 1.
    """

    ours: str
    theirs: str
    sentence: str
    passage: int
    closeness: float


@dataclass(frozen=True, slots=True)
class MissingNumber:
    """A number of a claim that the work does not have. nearest: one that it has, or empty."""

    number: str
    nearest: str


@dataclass(slots=True)
class Comparison:
    """The facts of a claim beside a work.

    facts: how many the claim has. stated: how many of these the sentences state. clash: with the
    closest sentence of those that clash. missing: numbers that are nowhere in the work.
    """

    facts: int = 0
    stated: int = 0
    clash: Clash | None = None
    missing: list[MissingNumber] = field(default_factory=list)

    @property
    def all_stated(self) -> bool:
        """Whether the claim has facts and all of them are stated."""
        return 0 < self.facts == self.stated

    def _add(self, result: Clash | bool) -> None:
        self.facts += 1
        if isinstance(result, Clash):
            self._add_clash(result)
        else:
            self.stated += result

    def _add_clash(self, clash: Clash) -> None:
        if self.clash is None or clash.closeness > self.clash.closeness:
            self.clash = clash


def compare(claim: str, sentences: Sequence[Sentence], everywhere: Sequence[Number]) -> Comparison:
    """The facts of a claim beside sentences of a work.

    everywhere: the numbers of the whole work, those of the sentences included.
    """
    ours = Facts(claim)
    comparison = Comparison()
    copy = _near_copy(ours, sentences)
    if copy:
        for clash in _differences(ours, copy):
            comparison._add_clash(clash)
    for number in ours.numbers:
        result = _number(ours, number, sentences, everywhere)
        if isinstance(result, MissingNumber):
            comparison.facts += 1
            comparison.missing.append(result)
        else:
            comparison._add(result)
    for negation in ours.negations:
        comparison._add(_negation(ours, negation, sentences))
    if not ours.negations:
        for clash in chain(_their_negations(ours, sentences), _prefix_negations(ours, sentences)):
            comparison._add_clash(clash)
    for word in ours.words:
        if word.direction:
            comparison._add(_direction(ours, word, sentences))
    return comparison


def _near_copy(ours: Facts, sentences: Sequence[Sentence]) -> Sentence | None:
    """The sentence with the most of the claim's stems, if it has nearly all and few others."""
    shares = [(_share(ours.stems, sentence), sentence) for sentence in sentences]
    share, best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or share < COPY or len(ours.stems) < COPY_FEWEST:
        return None
    return best if len(ours.stems) >= COPY_BACK * len(best.facts.stems) else None


def _differences(ours: Facts, copy: Sentence) -> Iterator[Clash]:
    """Numbers and negations in which a claim differs from a sentence of nearly the same words."""
    theirs = copy.facts
    lost = _without_same(theirs.numbers, ours.numbers)
    for number in _without_same(ours.numbers, theirs.numbers):
        others = [other for other in lost if other.unit == number.unit or number.same_value(other)]
        if others:
            other = min(others, key=lambda near: abs(near.span[0] - number.span[0]))
            yield Clash(number.text, other.text, theirs.text, copy.passage, 1.0)
    ours_denied, theirs_denied = _denials(ours, theirs), _denials(theirs, ours)
    if len(ours_denied) % 2 != len(theirs_denied) % 2:
        (ours_words, theirs_words) = (ours_denied or theirs_denied)[0]
        if not ours_denied:
            ours_words, theirs_words = theirs_words, ours_words
        yield Clash(ours_words, theirs_words, theirs.text, copy.passage, 1.0)


def _denials(facts: Facts, other: Facts) -> list[tuple[str, str]]:
    """Denials of words that the other sentence has too: with this word, and the other's word."""
    words = {word.stem: _text(other, word) for word in other.words}
    denials = []
    for start, end in facts.strict_denials:
        behind = next((word for word in facts.words if word.span[0] >= end), None)
        if behind is None:
            denials.append((facts.text[start:end], ""))
        elif behind.stem in words:
            denials.append((facts.text[start : behind.span[1]], words[behind.stem]))
    return denials


def _without_same(numbers: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    return [
        number
        for number in numbers
        if not any(number.equals(other) or other.equals(number) for other in others)
    ]


def missing_numbers(numbers: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    """The numbers that are not among others with their unit."""
    return [number for number in numbers if not any(map(number.equals, others))]


def states(claim: str, sentence: Sentence, work: str) -> bool:
    """Whether a claim has facts, and a sentence has all of them, the claim's names, and most of its
    words. work: title and authors of the cited work, which the sentence need not repeat.
    """
    ours, theirs = Facts(claim), sentence.facts
    context = theirs.all_stems | Facts(work).all_stems
    words, numbers = ours.stems_beside_numbers, len(ours.numbers)
    # Numbers count as shared words; `compare` checks below that all of them are stated.
    if len(words & context) + numbers < STATED_WORDS * (len(words) + numbers):
        return False
    if not ours.names <= context or theirs.hedges - ours.hedges:
        return False
    if not _quantifies_alike(ours, theirs) or _has_swapped_numbers(ours, theirs):
        return False
    if theirs.is_cell and not any(map(theirs.is_cell_value, ours.numbers)):
        return False
    if not all(_denies_same(ours, negation, theirs) for negation in ours.negations):
        return False
    return compare(claim, [sentence], theirs.numbers).all_stated


def _denies_same(ours: Facts, negation: Span, theirs: Facts) -> bool:
    """Whether a sentence has a denial in a clause with what a claim denies something of: in "X,
    unlike Y, does not …" it is not of Y.
    """
    subject = ours.words_before(negation)
    return any(subject <= theirs.words_around(start) for start, _ in theirs.denials)


def _quantifies_alike(ours: Facts, theirs: Facts) -> bool:
    """Whether a sentence has each "all", "only" and the like of a claim, before one same word."""
    return all(
        any(
            word == other and (words & their_words or not words)
            for other, their_words in theirs.quantifiers
        )
        for word, words in ours.quantifiers
    )


def _has_swapped_numbers(ours: Facts, theirs: Facts) -> bool:
    """Whether a sentence has two numbers of a claim with each other's words: "0.64 with weights and
    0.52 with BM25" beside "0.64 with BM25 and 0.52 with weights".

    The clauses of both numbers are compared; where both stand in one clause, nothing is known.
    """
    clauses = [
        (ours.clause(number.span[0]), theirs.clause(other.span[0]))
        for number in ours.numbers
        for other in theirs.numbers
        if number.equals(other)
    ]
    for (our_first, their_first), (our_second, their_second) in combinations(clauses, 2):
        if our_first == our_second or their_first == their_second:
            continue
        together = len(our_first & their_first) + len(our_second & their_second)
        crossed = len(our_first & their_second) + len(our_second & their_first)
        if crossed and crossed >= together:
            return True
    return False


def _share(context: frozenset[int], sentence: Sentence) -> float:
    return len(context & sentence.facts.stems) / max(len(context), 1)


def _number(
    ours: Facts, number: Number, sentences: Sequence[Sentence], everywhere: Sequence[Number]
) -> Clash | MissingNumber | bool:
    """Whether the sentences have a number; a clash where one has another in its place, and the rest
    of the work does not have the number for the same thing.
    """
    if any(_has_number(sentence.facts, number) for sentence in sentences):
        return True
    same = [other for other in everywhere if number.equals(other)]
    if any(number.counts & other.counts for other in same):
        return False
    context = ours.clause(number.span[0])
    clash = None
    for sentence in sentences:
        share = _share(context, sentence)
        if share < SHARE_NUMBER:
            continue
        other = _number_in_place_of(number, ours, sentence.facts)
        if other and (clash is None or share > clash.closeness):
            clash = Clash(number.text, other.text, sentence.facts.text, sentence.passage, share)
    if clash:
        return clash
    if not same and (number.is_plain or any(_named_alike(number, other) for other in everywhere)):
        return MissingNumber(number.text, _nearest(number, everywhere))
    return False


def _has_number(theirs: Facts, number: Number) -> bool:
    """Whether a sentence has a number, and words for what it counts."""
    words = {word.stem for word in theirs.words}
    # A cell has few words beside those of its row and column.
    has_words = bool(number.counts & words) if theirs.is_cell else number.counts <= words
    return has_words and any(
        number.equals(other)
        and _count_alike(number, other)
        and not _counts_elsewhere(number, other, words)
        for other in theirs.numbers
    )


def _counts_elsewhere(number: Number, other: Number, words: set[int]) -> bool:
    """Whether a sentence has a word for what a number counts, but not behind its own: "24 % annual
    return" beside "23 % cumulative return".
    """
    return bool(number.phrase and other.phrase and (number.counts & words) - other.phrase)


def _count_alike(number: Number, other: Number) -> bool:
    """Whether they count or measure the same, or one of them counts nothing that is known."""
    return not (number.counts and other.counts) or bool(number.counts & other.counts)


def _named_alike(number: Number, other: Number) -> bool:
    """Whether they count the same by two words: "type 2 diabetes", "three germ layers"."""
    return len(number.counts & other.counts) >= 2


def _number_in_place_of(number: Number, ours: Facts, theirs: Facts) -> Number | None:
    """A number of theirs of the same unit for the same thing, or the number with another unit; None
    where they have the number itself.
    """
    if any(map(number.equals, theirs.numbers)):
        return None
    others = []
    for other in theirs.numbers:
        if number.same_value(other) and not number.same_unit(other):
            return other
        is_ours = any(our_number.equals(other) for our_number in ours.numbers)
        if not is_ours and number.unit == other.unit and number.counts & other.counts:
            others.append(other)
    return min(others, key=number.distance, default=None)


def _nearest(number: Number, everywhere: Sequence[Number]) -> str:
    """The nearest number that counts or measures the same; else the nearest of the same unit."""
    of_unit = [other for other in everywhere if number.unit == other.unit]
    others = [other for other in of_unit if number.counts & other.counts] or of_unit
    if not others:
        return ""
    return min(others, key=number.distance).text


def _heads(facts: Facts, negation: Span) -> list[Word]:
    """The first words that a negation denies, adverbs left out."""
    denied = [
        word
        for word in facts.words
        if word.negated and word.span[0] >= negation[1] and not _text(facts, word).endswith("ly")
    ]
    return denied[:2]


def _negation(ours: Facts, negation: Span, sentences: Sequence[Sentence]) -> Clash | bool:
    """Whether the closest sentences deny something too; a clash where they say what is denied."""
    heads = _heads(ours, negation)
    stems = {head.stem for head in heads}
    sides = {head.direction for head in heads if head.direction}
    context = ours.clause(negation[0])
    # The cosine is the whole claim's, and tells of the clause where this is most of the claim.
    whole = len(context) >= WHOLE_CLAIM * len(ours.stems)
    agreed, clash = 0.0, None
    for sentence in sentences:
        share = _share(context, sentence)
        closeness = max(share, sentence.cosine) if whole else share
        theirs = sentence.facts
        same_words = [word for word in theirs.words if word.stem in stems]
        if closeness < (CLOSE_SAID if same_words else CLOSE_UNSAID):
            continue
        opposite = any(
            word.direction and (word.direction[0], -word.direction[1]) in sides
            for word in theirs.words
        )
        if same_words:
            denies = any(theirs.is_denied(word.span[0]) for word in same_words)
        else:
            denies = bool(theirs.denials)
        if denies or opposite:
            agreed = max(agreed, closeness)
        elif not theirs.is_purpose and (clash is None or closeness > clash.closeness):
            our_text = _phrase(ours, negation, heads)
            their_text = _text(theirs, same_words[0]) if same_words else ""
            clash = Clash(our_text, their_text, theirs.text, sentence.passage, closeness)
    if clash and clash.closeness > agreed:
        return clash
    return agreed > 0


def _their_negations(ours: Facts, sentences: Sequence[Sentence]) -> Iterator[Clash]:
    """Negations of close sentences in what the claim says without one."""
    stems = {word.stem: word for word in ours.words}
    agreed = max(
        (_share(ours.stems, sentence) for sentence in sentences if not sentence.facts.negations),
        default=0.0,
    )
    for sentence in sentences:
        share = _share(ours.stems, sentence)
        if share < SHARE_THEIR_NEGATION or share <= agreed or sentence.facts.is_purpose:
            continue
        for negation in sentence.facts.negations:
            heads = _heads(sentence.facts, negation)
            if heads and heads[0].stem in stems:
                yield Clash(
                    _text(ours, stems[heads[0].stem]),
                    _phrase(sentence.facts, negation, heads),
                    sentence.facts.text,
                    sentence.passage,
                    share,
                )


def _prefix_negations(ours: Facts, sentences: Sequence[Sentence]) -> Iterator[Clash]:
    """Words of a claim that close sentences have with a prefix that denies them, or the reverse:
    "unsatisfactory" for "satisfactory".
    """
    close = [
        (share, _lower_words(sentence.facts), sentence)
        for sentence in sentences
        if (share := _share(ours.stems, sentence)) >= SHARE_THEIR_NEGATION
    ]
    stated = {word for _, words, _ in close for word in words}
    our_words = [word for word in _lower_words(ours) if word not in stated]
    for share, their_words, sentence in close:
        for our_word in our_words:
            denied = {f"{prefix}{our_word}" for prefix in _DENYING_PREFIXES}
            denied |= {our_word.removeprefix(prefix) for prefix in _DENYING_PREFIXES}
            for their_word in their_words:
                if their_word in denied:
                    text = sentence.facts.text
                    yield Clash(our_word, their_word, text, sentence.passage, share)


def _lower_words(facts: Facts) -> list[str]:
    """The words of a sentence in lower case, each once, in order."""
    return list(dict.fromkeys(_text(facts, word).lower() for word in facts.words))


def _direction(ours: Facts, word: Word, sentences: Sequence[Sentence]) -> Clash | bool:
    """Whether a close sentence has a direction of the claim, and between the same things; a clash
    where one has the opposite, or the things in each other's place.
    """
    dimension, side = _effective(word)
    context, sides = ours.clause(word.span[0]), ours.sides_of(word)
    near = _near(ours, word)
    is_stated, agreed, clash = False, 0.0, None
    for sentence in sentences:
        theirs = sentence.facts
        closeness = _share(context, sentence)
        if closeness < SHARE_DIRECTION:
            continue
        for other, exchanged, their_text in _counterparts(theirs, dimension, sides):
            # The opposite direction says the same where the sides are exchanged.
            has_same_side = _effective(other)[1] == side
            if has_same_side != bool(exchanged):
                agreed = max(agreed, closeness)
                is_stated = is_stated or sides is None or exchanged is not None
                continue
            if theirs.is_purpose or (clash and closeness <= clash.closeness):
                continue
            if exchanged and sides:
                clash = Clash(sides.text, their_text, theirs.text, sentence.passage, closeness)
            elif len(near & _near(theirs, other)) >= SHARED_NEAR:
                clash = Clash(
                    _text(ours, word), their_text, theirs.text, sentence.passage, closeness
                )
    if clash and clash.closeness > agreed:
        return clash
    return is_stated


def _counterparts(
    theirs: Facts, dimension: str, sides: Sides | None
) -> list[tuple[Word, bool | None, str]]:
    """Words of a sentence with the kind of direction of a claim's: each with whether its comparison
    has the claim's sides exchanged, and its text.

    Where some compare the claim's things, only these count.
    """
    counterparts = []
    for word in theirs.words:
        if word.direction is None or word.direction[0] != dimension:
            continue
        their_sides = theirs.sides_of(word) if sides else None
        exchanged = sides.exchanged(their_sides) if sides and their_sides else None
        text = their_sides.text if exchanged and their_sides else _text(theirs, word)
        counterparts.append((word, exchanged, text))
    of_same_things = [counterpart for counterpart in counterparts if counterpart[1] is not None]
    return of_same_things or counterparts


def _effective(word: Word) -> tuple[str, int]:
    """The direction of a word, reversed where it is negated."""
    dimension, side = word.direction or ("", 0)
    return dimension, -side if word.negated else side


def _near(facts: Facts, word: Word) -> set[int]:
    """The stems within three words of a word."""
    place = facts.words.index(word)
    around = facts.words[max(0, place - 3) : place + 4]
    return {other.stem for other in around if other.direction is None}


def _text(facts: Facts, word: Word) -> str:
    return facts.text[word.span[0] : word.span[1]]


def _phrase(facts: Facts, negation: Span, heads: Sequence[Word]) -> str:
    """A negation with the first word that it denies."""
    return facts.text[negation[0] : heads[0].span[1] if heads else negation[1]]
