"""Claims of passages that help with a question, each attributed to the passage that holds its names and figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import dropwhile
from typing import Annotated, Any

from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, PROMPTS, ask, short_question
from pipeline.answering.retrieval import RetrievedPassage
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.context import cut_to_share, first_that_fit
from pipeline.llm.structured import AtMost, make_form

CLAIM_CHARS = 240
# Claims of earlier hops, the newest first, take at most this part of the context; the rest is for passages.
_KNOWN_SHARE = 8
_REASONS = ("unknown", "irrelevant", "repeated", "questions", "headings", "over")
# The minus sign belongs to its number.
_WORD = re.compile(r"[-−]?\w+")
_LEADING = frozenset(("the", "paper", "study", "article"))
_FRAME_TOKENS, _PER_CLAIM = 40, 24 + int(CLAIM_CHARS / CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class ExtractedClaims:
    """Claims with their passages, best first, and how many were dropped for which reason.

    dropped: `unknown` of passages that were not shown, `irrelevant` of passages that the model filtered out itself,
    `repeated` empty or known, `questions` that ask, `headings` that repeat their passage's heading alone, `over` beyond
    the most. unfiltered: whether the model called no passage relevant and made claims all the same; then none is
    filtered out.
    """

    claims: tuple[tuple[str, RetrievedPassage], ...] = ()
    relevant: tuple[int, ...] = ()
    """Numbers of the passages that the model called relevant."""
    unfiltered: bool = False
    dropped: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(_REASONS, 0))
    cut: bool = False
    spent: Spent = NOTHING
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {
            "relevant": list(self.relevant),
            "unfiltered": self.unfiltered,
            "dropped": dict(self.dropped),
            "cut": self.cut,
            "failure": self.failure,
        }


async def extract_claims(
    client: LlmClient,
    question: str,
    passages: Sequence[RetrievedPassage],
    *,
    most: int,
    known: Sequence[str],
    context: int,
) -> ExtractedClaims:
    """At most `most` claims of these passages that help with a question: arXivBot's filter and split in one call at
    temperature 0.

    known: claims of earlier hops, which are not made again. Without passages there is no call.
    """
    if not passages or most < 1:
        return ExtractedClaims()
    longest = _FRAME_TOKENS + 4 * len(passages) + _PER_CLAIM * most
    values = {
        "question": short_question(question, context),
        "known": "\n".join(first_that_fit([f"- {claim}" for claim in reversed(known)], context // _KNOWN_SHARE)),
        "count": len(passages),
        "most": most,
        "characters": CLAIM_CHARS,
    }
    left = PROMPTS.room(context, longest + REPAIR_TOKENS, "claims", shown=[""] * len(passages), **values)
    shown, cut = cut_to_share([passage.prompt_text() for passage in passages], left)
    messages = PROMPTS.messages("claims", shown=shown, **values)
    answer = await ask(client, messages, claims_form(len(passages), most), longest)
    if answer.value is None:
        return ExtractedClaims(cut=cut, spent=answer.spent, failure=answer.failure)
    return replace(_read_claims(answer.value, passages, most, known), cut=cut, spent=answer.spent)


def _read_claims(form: Any, passages: Sequence[RetrievedPassage], most: int, known: Sequence[str]) -> ExtractedClaims:
    """The distinct claims of passages that were shown and called relevant."""
    numbers = range(1, len(passages) + 1)
    relevant = tuple(sorted({number for number in form.relevant if number in numbers}))
    dropped = dict.fromkeys(_REASONS, 0)
    seen = set(map(_key, known))
    claims: list[tuple[str, RetrievedPassage]] = []
    for item in form.claims:
        text = " ".join(item.claim.split())
        if item.passage not in numbers:
            reason: str | None = "unknown"
        # SmolLM2 leaves the list of relevant passages empty and makes three claims: then there is no filter.
        elif item.passage not in (relevant or numbers):
            reason = "irrelevant"
        else:
            reason = _reason_against(text, passages[item.passage - 1], seen)
            if reason is None and len(claims) == most:
                reason = "over"
        if reason is not None:
            dropped[reason] += 1
            continue
        seen.add(_key(text))
        claims.append((text, passages[item.passage - 1]))
    return ExtractedClaims(tuple(claims), relevant, unfiltered=not relevant and bool(claims), dropped=dropped)


def _reason_against(text: str, passage: RetrievedPassage, seen: set[str]) -> str | None:
    """Why a claim says nothing new; None if it does.

    A model of 1.5 billion weights repeated known claims under passages that do not say them, and gave the question back
    as its claim.
    """
    key = _key(text)
    if not key or key in seen:
        return "repeated"
    if text.endswith("?"):
        return "questions"
    return "headings" if _says(passage.heading(), key) and not _says(passage.content(), key) else None


def _says(text: str, key: str) -> bool:
    return f" {key} " in f" {_key(text)} "


def _key(text: str) -> str:
    """The words by which two claims are compared, without punctuation and leading words such as "the paper"."""
    words = _WORD.findall(text.casefold())
    return " ".join(dropwhile(_LEADING.__contains__, words))


@cache
def claims_form(passages: int, most: int) -> type[Any]:
    """The form of the answer, bounded so that a small model under constrained decoding ends."""
    claim = make_form("PassageClaim", passage=int, claim=Annotated[str, AtMost(CLAIM_CHARS)])
    claims = Annotated[list[claim], AtMost(most)]  # type: ignore[valid-type]
    return make_form("Claims", relevant=Annotated[list[int], AtMost(passages)], claims=claims)


# A figure is one word, with its point and the commas between its thousands; so is a macro of TeX, with its backslash.
_PARTICULAR_WORD = re.compile(r"\\[A-Za-z]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\w+")
_SENTENCE_END = re.compile(r"[.!?:]\s+")
# Below it a figure such as 3 is in some passage by chance.
_FEWEST_CHARS = 4


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that a claim may rest on, and claims from tables about its paper if it is front matter."""

    passage: RetrievedPassage
    known: str = ""

    def words(self) -> frozenset[str]:
        """The words of the passage, its heading, the paper's id and the claims from tables."""
        return _words(f"{self.passage.arxiv_id} {self.passage.prompt_text()} {self.known}")


@dataclass(frozen=True, slots=True)
class Attribution:
    """Claims with the passages that they rest on. moved: number of a claim → id of the passage that the model named, if
    it rests on another. loose: numbers of the claims whose names and figures are in no passage."""

    claims: tuple[tuple[str, RetrievedPassage], ...]
    moved: Mapping[int, str]
    loose: tuple[int, ...]

    def trace(self) -> dict[str, Any]:
        moved = [{"claim": number, "named": passage_id} for number, passage_id in self.moved.items()]
        return {"moved": moved, "loose": list(self.loose)}


def attribute(
    claims: Iterable[tuple[str, RetrievedPassage]], question: str, sources: Sequence[Source], first: int = 1
) -> Attribution:
    """The passage that each claim rests on: the one that holds its names and figures, or else the one that was named.

    A model that knows a claim says it again under another passage, which then seems to support it. Words alone decide,
    without a model. first: number of the first claim.
    """
    placed: list[tuple[str, RetrievedPassage]] = []
    moved, loose = {}, []
    for number, (text, named) in enumerate(claims, first):
        home = home_of(text, named, question, sources)
        if home is None:
            loose.append(number)
        elif home.passage_id != named.passage_id:
            moved[number] = named.passage_id
        placed.append((text, home or named))
    return Attribution(tuple(placed), moved, tuple(loose))


def home_of(claim: str, named: RetrievedPassage, question: str, sources: Sequence[Source]) -> RetrievedPassage | None:
    """The passage that a claim rests on: the one that the model named, or, if that lacks its names and figures, the
    first source that has all of them; None if no source has.

    The words of the question are not looked for. But if a short figure is lacking, and with it a name that the question
    has too, the claim rests on the only source that has all of them. sources: passages that were shown, best first.
    """
    names = particulars(claim)
    wanted, lacking = names - _words(question), names - Source(named).words()
    if sum(map(len, wanted & lacking)) >= _FEWEST_CHARS:
        return next((source.passage for source in sources if wanted <= source.words()), None)
    if wanted & lacking and sum(map(len, lacking)) >= _FEWEST_CHARS:
        homes = {source.passage.passage_id: source.passage for source in sources if names <= source.words()}
        return homes.popitem()[1] if len(homes) == 1 else named
    return named


def particulars(text: str) -> set[str]:
    """The names and figures of a text in lower case: words with a digit, words with a capital inside a sentence, and
    TeX macros. The last word of a claim of the greatest length may be cut, and does not count.

    Macros count because JSON has no escape \\d: a model that is held to JSON and copies \\delta writes \\beta.
    """
    whole = text if len(text) < CLAIM_CHARS else text.rpartition(" ")[0]
    names = set()
    for sentence in _SENTENCE_END.split(whole):
        for place, word in enumerate(_PARTICULAR_WORD.findall(sentence)):
            if word.startswith("\\") or any(map(str.isdigit, word)) or (place > 0 and word[0].isupper()):
                names.add(word.casefold())
    return names


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _PARTICULAR_WORD.findall(text))
