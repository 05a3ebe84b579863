"""Where the sentences of scientific text end.

Rules and never a model: the same on every machine, and next to nothing beside the parsing of a page. What they find
of hand-checked sentences, and what libraries find, is in docs/methods/passages.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""Where a piece of a text begins and ends."""

# What stands in a masked text for a formula, the last sign of a formula that ends in a full stop, and a citation.
_MATH, _MATH_STOP, _CITATION = "\ue000", "\ue001", "\ue002"


def _braces(depth: int) -> str:
    """A pattern of TeX in braces, as deep as said: `\\mbox{$x$}` holds dollars that end no formula."""
    inner = rf"|{_braces(depth - 1)}" if depth else ""
    return rf"\{{(?:[^{{}}\\]|\\.{inner})*+\}}"


# Display math first: `$$…$$` would else be read as two empty formulas. The parser leaves no space inside the dollars,
# so "$5 and $6" is none. What stands in braces ends no formula; where braces do not match, or after 1,000 signs (so
# that a million dollars are read in seconds), the next dollars do: the last two patterns.
_TEX = rf"(?:[^$\\{{}}]|\\.|{_braces(4)}){{1,1000}}+"
_PROTECTED = re.compile(
    rf"\[@[^\[\]]+\]|\$\${_TEX}\$\$|\$(?=[^\s$]){_TEX}(?<=\S)\$|\$\$.+?\$\$|\$(?=[^\s$])[^$]+(?<=\S)\$",
    re.DOTALL,
)
_STOP = re.compile(
    rf"(?P<mark>[.!?…]+|{_MATH_STOP}(?: \([\w.*′']{{1,8}}\))?)(?P<closers>[\"”’'»)\]]*)"
    rf"(?P<cited>(?:\s*+{_CITATION}++)*+)(?=\s|\Z)|\n"
)
_FULL_STOP = re.compile(r"(?<!\\right)(?<!\\left)\.\$+$")
_NEXT = re.compile(r"\s*[\"“‘'«(\[¿¡]*(?P<word>[^\W\d_]+|.)", re.DOTALL)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,2})*|[A-Za-z]|[ivxIVX]{1,5})")
# Signs before a full stop that are looked at: more than the longest label, abbreviation or lettered noun has.
_LONGEST_LABEL = 28
_RUN_IN = re.compile(
    r"(?:Theorem|Lemma|Proposition|Corollary|Definition|Remark|Example|Claim|Conjecture|Assumption|Fact|Proof|Algorithm"
    r"|Step|Case|Figure|Fig|Table|Problem|Question|Observation|Property|Condition|Hypothesis)(?:\s\S+)?"
)
_NUMBER = re.compile(r"\S*\d")
_LINE_BREAK = re.compile(r"\n")
_CLAUSE_ENDS = (re.compile(r"[;:]\s+"), re.compile(r",\s+"), re.compile(r"\s+"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never the end of a sentence.
_OPEN = _words("e.g i.e cf vs viz ca approx dr prof mr mrs ms st messrs eds esp n.b")
# The end where a word follows that often begins a sentence. So are letters with full stops between, and initials.
_MAYBE = _words(
    "nos nr fig figs eq eqs eqn eqns sec secs sect tab tabs ref refs thm thms lem prop props cor def defs defn "
    "alg algs app apps ch chap chaps vol vols p pp ex exs art par pt ver rem obs algo al etc resp inc ltd co corp "
    "jr sr dept univ min max avg est std const incl excl misc conf proc trans int symp assoc lett rev phys math "
    "sci jan feb mar apr jun jul aug sept sep oct nov dec gen gov ed hon wlog iid seq"
)
_STARTERS = _words(
    "The This That These Those There Then Thus They Their We Our It Its In On At As For From To With Without "
    "Within While When Whenever Where Whereas Whether If Since Because Although Though However Hence Therefore "
    "Here How Note Notably Moreover Furthermore Finally First Second Third Next Also Another An A All Any Each "
    "Every Both Some Such Let Given By But And Or So Yet After Before During Under Over Until Unlike Like "
    "Similarly Consequently Specifically Additionally Interestingly Recently One Two Three Many Most More Several "
    "Other Others Suppose Consider Recall Observe Instead Even Despite Due Besides Based Compared Among Across "
    "Between Using Only Now Again Overall Likewise Meanwhile What Why Who Which No Not Nor He She His Her You "
    "Your Indeed Clearly Assume Define Denote Following Figure Table Section"
)
# "Appendix B. Results" ends with a letter that is no initial.
_LETTERED = _words(
    "appendix section table figure theorem part case step type class group model algorithm method option set "
    "panel phase level task scenario setting lemma matrix vitamin hepatitis equation line stage system"
)


def mask(text: str) -> str:
    """The text at equal length, with a sign for each character of a formula or a citation: nothing in them is cut."""
    return _PROTECTED.sub(_hidden, text) if "$" in text or "[@" in text else text


def _hidden(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == "[":
        return _CITATION * len(found)
    last = _MATH_STOP if _FULL_STOP.search(found) else _MATH
    return _MATH * (len(found) - 1) + last


def sentences(text: str) -> list[str]:
    """The sentences of a text, cut only where no formula, citation or abbreviation stands."""
    return [text[start:end] for start, end in sentence_spans(mask(text), (0, len(text)))]


def line_spans(masked: str, span: Span) -> Iterator[Span]:
    """The lines within a span of a masked text."""
    return _between(masked, span, (match.end() for match in _LINE_BREAK.finditer(masked, *span)))


def sentence_spans(masked: str, span: Span) -> Iterator[Span]:
    """The sentences within a span of a masked text; a line break ends one too."""
    return _between(masked, span, _sentence_ends(masked, span))


def clause_spans(masked: str, span: Span, level: int) -> Iterator[Span]:
    """The pieces of a sentence: up to its semicolons and colons (level 0), commas (1) or spaces (2)."""
    return _between(masked, span, (match.end() for match in _CLAUSE_ENDS[level].finditer(masked, *span)))


def _between(masked: str, span: Span, ends: Iterable[int]) -> Iterator[Span]:
    """The pieces that the ends part, without white space around them; none is empty."""
    start, last = span
    for end in (*ends, last):
        piece = masked[start:end]
        bare = piece.strip()
        if bare:
            start += piece.index(bare[0])
            yield start, start + len(bare)
        start = end


def _sentence_ends(masked: str, span: Span) -> Iterator[int]:
    start = span[0]
    for stop in _STOP.finditer(masked, *span):
        end = stop.end() if stop["mark"] is None else _end_at(masked, start, stop)
        if end is not None:
            yield end
            start = end


def _end_at(masked: str, start: int, stop: re.Match[str]) -> int | None:
    """Where the sentence that began at `start` ends if it does at this stop; a citation may follow its full stop."""
    following = _NEXT.match(masked, stop.end())
    if following is None:
        return None
    if stop["mark"] == "." and _is_abbreviation(masked, start, stop, following):
        return None
    if stop["cited"] and following["word"].islower():
        # "It is known. [@b1] shows more." A citation before a new sentence belongs to the one that has ended.
        return stop.end("closers") if stop["cited"][0].isspace() else None
    return stop.end() if _can_begin(following["word"], stop["mark"]) else None


def _can_begin(word: str, mark: str) -> bool:
    first = word[0]
    if first.isdigit():
        return mark not in ("...", "…")
    return first in (_MATH, _MATH_STOP, _CITATION) or (first.isalpha() and not first.islower())


def _is_abbreviation(masked: str, start: int, stop: re.Match[str], following: re.Match[str]) -> bool:
    """Whether this full stop belongs to its word and does not end the sentence."""
    before = masked[max(start, stop.start() - _LONGEST_LABEL) : stop.start()].strip()
    if len(before) < _LONGEST_LABEL and (_ENUMERATOR.fullmatch(before) or _RUN_IN.fullmatch(before)):
        return True
    token = before.replace("(", " ").replace("[", " ").rpartition(" ")[2].lstrip("{“\"‘'")
    known, word = token.lower(), following["word"]
    if known in _OPEN:
        return True
    if known == "no":
        return _NUMBER.match(masked, following.start("word")) is not None
    if known in _MAYBE or ("." in token and _DOTTED.fullmatch(token)) or _is_initial(token, before):
        return bool(stop["cited"]) or ")" in stop["closers"] or not _is_starter(masked, following)
    return len(token) == 1 and token.isalpha() and word[0].isdigit()


def _is_initial(token: str, before: str) -> bool:
    if len(token) != 1 or not token.isupper():
        return False
    *_, previous = ["", *before.split()[-2:-1]]
    return previous.lower() not in _LETTERED


def _is_starter(masked: str, following: re.Match[str]) -> bool:
    return following["word"] in _STARTERS and masked[following.end() : following.end() + 1] != "."
