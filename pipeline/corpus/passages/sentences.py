"""Sentence ends of scientific text, and splitting of text that is too long for one passage.

Rules instead of a model: the same result on every machine, at a small part of the time that parsing
a page takes. Precision and recall on hand-checked sentences, beside those of libraries, are in
docs/methods/passages.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from pipeline.corpus.parse.policies import CITATION_MARKER, MISSING_MARKER
from pipeline.corpus.passages.text import UNSPACED, count_words

Span = tuple[int, int]
"""Start and end of a piece of a text."""
Part = tuple[str, int]
"""A part of a text, and how many words it has."""

# In a masked text: a character of a formula, the last character of a formula that ends in a full
# stop, a character of a citation.
_MATH, _MATH_STOP, _CITATION = "\ue000", "\ue001", "\ue002"


def _braces(depth: int) -> str:
    """A pattern of TeX in nested braces: the dollars of `\\mbox{$x$}` end no formula."""
    inner = rf"|{_braces(depth - 1)}" if depth else ""
    return rf"\{{(?:[^{{}}\\]|\\.{inner})*+\}}"


# Display math first: `$$…$$` would else be read as two empty formulas. The parser leaves no space
# inside the dollars, so "$5 and $6" is not a formula. Braces inside a formula may hold dollars. The
# last two patterns are for formulas whose braces do not match or that are longer than 1,000
# characters (so that a million dollars are read in seconds): they end at the next dollars.
_TEX = rf"(?:[^$\\{{}}]|\\.|{_braces(4)}){{1,1000}}+"
_PROTECTED = re.compile(
    rf"{CITATION_MARKER.pattern}|{MISSING_MARKER.pattern}|\$\${_TEX}\$\$|\$(?=[^\s$]){_TEX}(?<=\S)\$|\$\$.+?\$\$|\$(?=[^\s$])[^$]+(?<=\S)\$",
    re.DOTALL,
)
_STOP = re.compile(
    rf"(?P<mark>(?<![.!?…])[.!?…]++|{_MATH_STOP}(?: \([\w.*′']{{1,8}}\))?)"
    rf"(?P<closers>[\"”’'»)\]]*(?:\^[\w,*–-]{{1,12}})?)"
    rf"(?P<cited>(?:\s*+{_CITATION}++)*+)(?=\s|\Z)|"
    # Marks of scripts that put no space behind them, or have no capitals. In Japanese, a sentence
    # goes on behind a quotation: 「はい。」と言う。
    rf"(?P<end>[。！？｡।॥؟۔։።၊။។༎]+(?:[”’」』）》】\"')]+(?![ぁ-ん])|(?![”’」』）》】\"')])))"
    rf"(?:\s*+{_CITATION}++)*+|\n"
)
_NEXT_WORD = re.compile(r"\s*[\"“‘'«(\[¿¡]*(?P<word>[^\W\d_]+|.)", re.DOTALL)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,2})*|[A-Za-z]|[ivxIVX]{1,5})")
# Characters before a full stop that are examined: more than the longest label, abbreviation or
# lettered noun has.
_LONGEST_LABEL = 28
_RUN_IN_HEADING = re.compile(
    r"(?:Theorem|Lemma|Proposition|Corollary|Definition|Remark|Example|Claim|Conjecture|Assumption|Fact|Proof|Algorithm"
    r"|Step|Case|Figure|Fig|Table|Problem|Question|Observation|Property|Condition|Hypothesis)(?:\s\S+)?"
)
_NUMBER = re.compile(r"\S*\d")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations that never end a sentence.
_NEVER_LAST = _words("e.g i.e cf vs viz ca approx dr prof mr mrs ms st messrs eds esp n.b")
# Abbreviations that end a sentence where a word follows that often begins one; as do dotted letters
# and initials.
_SOMETIMES_LAST = _words(
    "nos nr fig figs eq eqs eqn eqns sec secs sect tab tabs ref refs thm thms lem prop props cor"
    " def defs defn alg algs app apps ch chap chaps vol vols p pp ex exs art par pt ver rem obs"
    " algo al etc resp inc ltd co corp jr sr dept univ min max avg est std const incl excl misc"
    " conf proc trans int symp assoc lett rev phys math sci jan feb mar apr jun jul aug sept sep"
    " oct nov dec gen gov ed hon wlog iid seq"
)
_STARTERS = _words(
    "The This That These Those There Then Thus They Their We Our It Its In On At As For From To"
    " With Without Within While When Whenever Where Whereas Whether If Since Because Although"
    " Though However Hence Therefore Here How Note Notably Moreover Furthermore Finally First"
    " Second Third Next Also Another An A All Any Each Every Both Some Such Let Given By But And Or"
    " So Yet After Before During Under Over Until Unlike Like Similarly Consequently Specifically"
    " Additionally Interestingly Recently One Two Three Many Most More Several Other Others Suppose"
    " Consider Recall Observe Instead Even Despite Due Besides Based Compared Among Across Between"
    " Using Only Now Again Overall Likewise Meanwhile What Why Who Which No Not Nor He She His Her"
    " You Your Indeed Clearly Assume Define Denote Following Figure Table Section"
)
# Nouns that letters count: the B of "Appendix B. Results" is no initial.
_LETTERED = _words(
    "appendix section table figure theorem part case step type class group model algorithm method"
    " option set panel phase level task scenario setting lemma matrix vitamin hepatitis equation"
    " line stage system"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text. None ends inside a formula, a citation or after an abbreviation."""
    return [text[start:end] for start, end in _sentence_spans(mask(text), (0, len(text)))]


def mask(text: str) -> str:
    """The text with placeholders of equal length for formulas and citations, so none is cut."""
    is_plain = "$" not in text and "[@" not in text and "[?" not in text
    return text if is_plain else _PROTECTED.sub(_placeholders, text)


def without_formulas(text: str) -> str:
    """The text with a space for each formula and citation."""
    return _PROTECTED.sub(" ", text)


def _placeholders(match: re.Match[str]) -> str:
    protected = match[0]
    if protected[0] == "[":
        return _CITATION * len(protected)
    tex = protected.rstrip("$")
    is_stop = tex.endswith(".") and not tex.endswith(("\\right.", "\\left."))
    return _MATH * (len(protected) - 1) + (_MATH_STOP if is_stop else _MATH)


def split_text(text: str, most_words: int) -> list[Part]:
    """Parts of a text, of similar length and at most `most_words` words, split at sentence ends.

    A sentence longer than that is split at semicolons and colons, then commas, then spaces. One
    formula or citation longer than that stays whole: half a formula is worse than a long passage.
    """
    return _split(text, most_words, _SENTENCE_CUTS)


def split_lines(text: str, most_words: int) -> list[Part]:
    """Parts of a text whose lines matter (a list, an algorithm), split between lines first."""
    return _split(text, most_words, _LINE_CUTS)


def split_table(markdown: str, most_words: int) -> list[Part]:
    """Parts of a Markdown table with its caption, split between grids and rows.

    The caption is repeated over each grid, and caption and head over each part of a grid. Where
    they would take more than a quarter of each part, the caption is over the first part alone;
    where the head alone would, the head too.
    """
    words = count_words(markdown)
    if words <= most_words:
        return [(markdown, words)]
    lines = markdown.split("\n")
    heads = [number - 1 for number, line in enumerate(lines) if number and _separates_head(line)]
    if not heads:
        return split_lines(markdown, most_words)
    caption = lines[: heads[0]]
    grids = [lines[start:end] for start, end in zip(heads, [*heads[1:], len(lines)], strict=True)]
    return [part for grid in grids for part in _split_grid(caption, grid, most_words)]


def _split_grid(caption: list[str], grid: list[str], most_words: int) -> list[Part]:
    whole = "\n".join([*caption, *grid])
    if (words := count_words(whole)) <= most_words:
        return [(whole, words)]
    head, rows = grid[:2], "\n".join(grid[2:])
    for once, repeated in (([], [*caption, *head]), (caption, head)):
        repeated_words = count_words("\n".join(repeated))
        if repeated_words * 4 <= most_words:
            first = split_lines("\n".join(once), most_words) if once else []
            parts = split_lines(rows, most_words - repeated_words)
            return [
                *first,
                *(("\n".join([*repeated, part]), repeated_words + words) for part, words in parts),
            ]
    return split_lines(whole, most_words)


def _separates_head(line: str) -> bool:
    """Whether a line separates the head of a Markdown table from its rows."""
    return "-" in line and "|" in line and set(line) <= set("|-: ")


def _split(text: str, most_words: int, cuts: Sequence[_Cut]) -> list[Part]:
    words = count_words(text)
    if words <= most_words:
        return [(text, words)]
    pieces = list(_pieces(text, mask(text), (0, len(text)), most_words, cuts))
    groups = _even_groups([words for _, words in pieces], most_words)
    return [
        (
            text[_with_indentation(text, pieces[first][0][0]) : pieces[last - 1][0][1]],
            sum(words for _, words in pieces[first:last]),
        )
        for first, last in groups
    ]


def _with_indentation(text: str, start: int) -> int:
    """The beginning of a part: that of its line, if only spaces are before it."""
    of_line = text.rfind("\n", 0, start) + 1
    return of_line if text[of_line:start].isspace() else start


def _pieces(
    text: str, masked: str, span: Span, most_words: int, cuts: Sequence[_Cut]
) -> Iterator[tuple[Span, int]]:
    """The first cut's pieces and their words; pieces that are too long are cut by the next."""
    for start, end in cuts[0](masked, span):
        words = count_words(text[start:end])
        if words > most_words and len(cuts) > 1:
            yield from _pieces(text, masked, (start, end), most_words, cuts[1:])
        else:
            yield (start, end), words


def _even_groups(words: Sequence[int], most_words: int) -> list[Span]:
    """Ranges of pieces within `most_words`: as few as possible, of similar length if that fits."""
    least = -(-sum(words) // most_words)
    for count in (least, least + 1):
        groups = _groups_by_middle(words, count)
        if all(sum(words[first:last]) <= most_words for first, last in groups):
            return groups
    return _full_groups(words, most_words)


def _groups_by_middle(words: Sequence[int], count: int) -> list[Span]:
    """Groups of the pieces whose middles lie in the same of `count` equal stretches of the text."""
    total, before = sum(words), accumulate(words, initial=0)
    middles = [2 * start + length for start, length in zip(before, words, strict=False)]
    stretches = [(middle * count - 1) // (2 * total) for middle in middles]
    firsts = [
        number
        for number in range(len(words))
        if number == 0 or stretches[number] != stretches[number - 1]
    ]
    return list(zip(firsts, [*firsts[1:], len(words)], strict=True))


def _full_groups(words: Sequence[int], most_words: int) -> list[Span]:
    """Groups that are filled one after another."""
    groups, first, filled = [], 0, 0
    for number, more in enumerate(words):
        if number > first and filled + more > most_words:
            groups.append((first, number))
            first, filled = number, 0
        filled += more
    return [*groups, (first, len(words))]


def _spans_between(masked: str, span: Span, ends: Iterable[int]) -> Iterator[Span]:
    """The pieces of a span between these ends, stripped of white space; none is empty."""
    start, last = span
    for end in (*ends, last):
        piece = masked[start:end]
        bare = piece.strip()
        if bare:
            start += piece.index(bare[0])
            yield start, start + len(bare)
        start = end


def _spans_by_pattern(pattern: re.Pattern[str], masked: str, span: Span) -> Iterator[Span]:
    return _spans_between(masked, span, (match.end() for match in pattern.finditer(masked, *span)))


def _sentence_spans(masked: str, span: Span) -> Iterator[Span]:
    return _spans_between(masked, span, _sentence_ends(masked, span))


# Where nothing else parts a text of a script without spaces, it is cut behind so many characters.
_FEWEST_UNSPACED = 8
_Cut = Callable[[str, Span], Iterable[Span]]
_SENTENCE_CUTS: tuple[_Cut, ...] = (
    _sentence_spans,
    *(
        partial(_spans_by_pattern, re.compile(pattern))
        for pattern in (
            r"[;:]\s+|[；：]",
            r",\s+|[，、،]",
            r"\s+",
            rf"[{UNSPACED}]{{{_FEWEST_UNSPACED}}}",
        )
    ),
)
_LINE_CUTS: tuple[_Cut, ...] = (partial(_spans_by_pattern, re.compile(r"\n")), *_SENTENCE_CUTS)


def _sentence_ends(masked: str, span: Span) -> Iterator[int]:
    """Sentence ends within a span of a masked text; a line break is one too."""
    start = span[0]
    for stop in _STOP.finditer(masked, *span):
        is_certain = stop["mark"] is None
        end = stop.end() if is_certain else _end_at(masked, start, stop)
        if end is not None:
            yield end
            start = end


def _end_at(masked: str, start: int, stop: re.Match[str]) -> int | None:
    """Where the sentence from `start` ends if at this stop; a citation may follow the stop."""
    following = _NEXT_WORD.match(masked, stop.end())
    if following is None:
        return None
    if stop["mark"] == "." and _is_abbreviation(masked, start, stop, following):
        return None
    if stop["cited"] and following["word"].islower():
        # "It is known. [@b1] shows more." A citation before a new sentence belongs to the one that
        # has ended.
        return stop.end("closers") if stop["cited"][0].isspace() else None
    return stop.end() if _can_begin(following["word"], stop["mark"]) else None


def _can_begin(word: str, mark: str) -> bool:
    """Whether a word can begin a sentence after this mark."""
    first = word[0]
    if first.isdigit():
        return mark not in ("...", "…")
    return first in (_MATH, _MATH_STOP, _CITATION) or (first.isalpha() and not first.islower())


def _is_abbreviation(
    masked: str, start: int, stop: re.Match[str], following: re.Match[str]
) -> bool:
    """Whether this full stop belongs to its word and does not end the sentence."""
    before = masked[max(start, stop.start() - _LONGEST_LABEL) : stop.start()].strip()
    if len(before) < _LONGEST_LABEL and (
        _ENUMERATOR.fullmatch(before) or _RUN_IN_HEADING.fullmatch(before)
    ):
        return True
    token = before.replace("(", " ").replace("[", " ").rpartition(" ")[2].lstrip("{“\"‘'")
    abbreviation, word = token.lower(), following["word"]
    if abbreviation in _NEVER_LAST:
        return True
    if abbreviation == "no":
        return _NUMBER.match(masked, following.start("word")) is not None
    if (
        abbreviation in _SOMETIMES_LAST
        or ("." in token and _DOTTED.fullmatch(token))
        or _is_initial(token, before)
    ):
        starts_sentence = word in _STARTERS and masked[following.end() : following.end() + 1] != "."
        return bool(stop["cited"]) or ")" in stop["closers"] or not starts_sentence
    return len(token) == 1 and token.isalpha() and word[0].isdigit()


def _is_initial(token: str, before: str) -> bool:
    """Whether a capital is the initial of a name, and no letter that counts ("Appendix B")."""
    if len(token) != 1 or not token.isupper():
        return False
    *_, previous = ["", *before.split()[-2:-1]]
    return previous.lower() not in _LETTERED
