"""Claims that help with a question, each attributed to the passage with its names and figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain, dropwhile
from typing import Annotated, Any

from pipeline.answering.answer import UnnumberedClaim, number_claims
from pipeline.answering.model_calls import (
    CHARS_PER_TOKEN,
    StepLog,
    Tools,
    passage_trace,
)
from pipeline.corpus.nouns import Claim, Passage
from pipeline.llm.client import StructuredAnswer
from pipeline.llm.context import cut_to_share, first_that_fit
from pipeline.llm.messages import Spent
from pipeline.llm.structured import AtMost, make_form
from pipeline.text import one_line

CLAIM_CHARS = 240
_FRAME_TOKENS, _PER_CLAIM = 40, 24 + int(CLAIM_CHARS / CHARS_PER_TOKEN)
# Claims of earlier hops, the newest first, take at most this part of the context; the rest is for
# passages.
_EARLIER_SHARE = 8
# The minus sign belongs to its number.
_WORD = re.compile(r"[-−]?\w+")
_LEADING = frozenset(("the", "paper", "study", "article"))
# A figure is one word, with its point and the commas between its thousands; so is a macro of TeX,
# with its backslash.
_PARTICULAR_WORD = re.compile(r"\\[A-Za-z]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,40}\.\d+|\w+")
_SENTENCE_END = re.compile(r"[.!?:]\s+")
# Below it a figure such as 3 is in some passage by chance.
_FEWEST_CHARS = 4


async def extract_claims(
    tools: Tools,
    steps: StepLog,
    question: str,
    passages: Sequence[Passage],
    *,
    most: int,
    earlier: Sequence[Claim],
    hops: Sequence[Sequence[Passage]],
) -> tuple[Claim, ...]:
    """At most `most` claims of passages that help with a question, best first; step `claims`.

    arXivBot's filter and split in one call at temperature 0; there is no call without passages. A
    claim rests on the passage that holds its names and figures, or else on the one that the model
    named: a model that knows a claim repeats it under another passage, which then seems to support
    it. Words alone decide that, without a model.

    earlier: claims that are not made again. hops: the passages read in each hop, these included.
    """
    earlier_texts = [claim.text for claim in earlier]
    form, cost = None, Spent()
    if passages and most > 0:
        answer = await _ask_for_claims(tools, question, passages, most, earlier_texts)
        form, cost = answer.value, answer.spent
    named, dropped = _read_claims(form, passages, most, earlier_texts)
    candidates = list(chain.from_iterable(reversed(hops)))
    attributed: list[UnnumberedClaim] = []
    moved, loose = [], []
    for number, (text, passage) in enumerate(named, len(earlier) + 1):
        support = find_support(text, passage, question, candidates)
        if support is None:
            loose.append(number)
        elif support.passage_id != passage.passage_id:
            moved.append({"claim": number, "named": passage.passage_id})
        attributed.append(UnnumberedClaim(text, support or passage))
    claims = number_claims(attributed, len(hops), after=len(earlier))
    steps.add(
        "claims",
        cost,
        hop=len(hops),
        claims=[claim.number for claim in (*earlier, *claims) if claim.hop == len(hops)],
        shown=[passage_trace(passage) for passage in passages],
        texts=[claim.text for claim in claims],
        moved=moved,
        loose=loose,
        dropped=dropped,
    )
    return claims


async def _ask_for_claims(
    tools: Tools,
    question: str,
    passages: Sequence[Passage],
    most: int,
    earlier: Sequence[str],
) -> StructuredAnswer[Any]:
    longest = _FRAME_TOKENS + 4 * len(passages) + _PER_CLAIM * most
    newest_first = [f"- {claim}" for claim in reversed(earlier)]
    values = {
        "question": tools.shorten(question),
        "known": "\n".join(
            first_that_fit(newest_first, tools.settings.llm_context // _EARLIER_SHARE)
        ),
        "count": len(passages),
        "most": most,
        "characters": CLAIM_CHARS,
    }
    room = tools.room("claims", longest, shown=[""] * len(passages), **values)
    shown, _ = cut_to_share([passage.prompt_text() for passage in passages], room)
    form = claims_form(len(passages), most)
    return await tools.ask("claims", form, longest, shown=shown, **values)


def _read_claims(
    form: Any, passages: Sequence[Passage], most: int, earlier: Sequence[str]
) -> tuple[list[tuple[str, Passage]], dict[str, int]]:
    """The distinct claims of relevant passages, and how many were dropped for which reason.

    Reasons: `unknown` of passages that were not shown, `irrelevant` of passages that the model
    filtered out itself, `repeated` empty or earlier, `questions` that ask, `headings` that repeat
    their passage's heading alone, `over` beyond the most. A model of 1.5 billion weights repeated
    earlier claims under passages that do not say them, and gave the question back as its claim.
    """
    numbers = range(1, len(passages) + 1)
    dropped: Counter[str] = Counter()
    claims: list[tuple[str, Passage]] = []
    if form is None:
        return claims, dropped
    # SmolLM2 leaves the list of relevant passages empty and makes three claims: then there is no
    # filter.
    relevant = set(form.relevant) & set(numbers) or numbers
    seen = set(map(_key, earlier))
    for item in form.claims:
        if item.passage not in numbers:
            dropped["unknown"] += 1
            continue
        if item.passage not in relevant:
            dropped["irrelevant"] += 1
            continue
        passage = passages[item.passage - 1]
        text = one_line(item.claim)
        key = _key(text)
        if not key or key in seen:
            dropped["repeated"] += 1
        elif text.endswith("?"):
            dropped["questions"] += 1
        elif _says(passage.heading(), key) and not _says(passage.content(), key):
            dropped["headings"] += 1
        elif len(claims) == most:
            dropped["over"] += 1
        else:
            seen.add(key)
            claims.append((text, passage))
    return claims, dropped


def _says(text: str, key: str) -> bool:
    return f" {key} " in f" {_key(text)} "


def _key(text: str) -> str:
    """The words by which two claims are compared, without leading ones such as "the paper"."""
    words = _WORD.findall(text.casefold())
    return " ".join(dropwhile(_LEADING.__contains__, words))


@cache
def claims_form(passages: int, most: int) -> type[Any]:
    """The form of the answer, bounded so that a small model under constrained decoding ends."""
    claim = make_form("PassageClaim", passage=int, claim=Annotated[str, AtMost(CLAIM_CHARS)])
    claims = Annotated[list[claim], AtMost(most)]  # type: ignore[valid-type]
    return make_form("Claims", relevant=Annotated[list[int], AtMost(passages)], claims=claims)


def find_support(
    claim: str, named: Passage, question: str, candidates: Sequence[Passage]
) -> Passage | None:
    """The passage that a claim rests on: the one that the model named, or, if that lacks its names
    and figures, the first candidate that has all of them; None if no candidate has.

    The words of the question are not looked for. But if a short figure is lacking, and with it a
    name that the question has too, the claim rests on the only candidate that has all of them.
    candidates: passages that were shown, best first.
    """
    names = particulars(claim)
    own_names = names - _words(question)
    lacking = names - _words_of(named)
    if sum(map(len, own_names & lacking)) >= _FEWEST_CHARS:
        for candidate in candidates:
            if own_names <= _words_of(candidate):
                return candidate
        return None
    if own_names & lacking and sum(map(len, lacking)) >= _FEWEST_CHARS:
        with_all = {
            candidate.passage_id: candidate
            for candidate in candidates
            if names <= _words_of(candidate)
        }
        return with_all.popitem()[1] if len(with_all) == 1 else named
    return named


def particulars(text: str) -> set[str]:
    """The names and figures of a text in lower case: words with a digit, words with a capital
    inside a sentence, and TeX macros. The last word of a claim of the greatest length may be cut,
    and does not count.

    Macros count, as JSON has no escape \\d: a model held to JSON writes \\beta for \\delta.
    """
    whole = text if len(text) < CLAIM_CHARS else text.rpartition(" ")[0]
    names = set()
    for sentence in _SENTENCE_END.split(whole):
        for place, word in enumerate(_PARTICULAR_WORD.findall(sentence)):
            is_macro = word.startswith("\\")
            is_figure = any(map(str.isdigit, word))
            is_name = place > 0 and word[0].isupper()
            if is_macro or is_figure or is_name:
                names.add(word.casefold())
    return names


def _words_of(passage: Passage) -> frozenset[str]:
    """The words of a passage, its heading and the paper's id."""
    return _words(f"{passage.arxiv_id} {passage.prompt_text()}")


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _PARTICULAR_WORD.findall(text))
