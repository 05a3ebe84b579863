"""The question to a judge about one citation, its answer, and the search for its quote in the
passages.

One call for each citation, so that each can be stored and repeated by itself. Instructions come
first, then work and passages, then the sentence: passages are most of a prompt, and sentences that
cite one work, in whichever system's section, are often answered by the same ones. They are in the
order of the work, not of their rank, so that two sets that begin alike are one prefix, and no place
says which passage the search held for the best.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from pipeline.evaluation.passages import EvidencePassage
from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, fit, shares
from pipeline.llm.messages import LlmAnswerError, Message, Spent
from pipeline.llm.prompts import PromptFolder
from pipeline.llm.structured import AtMost
from pipeline.text import one_line

Verdict = Literal["supported", "partly", "not"]

# Kinds of quotes and dashes; translated before NFKC, which makes a space and an accent of ´.
_QUOTES = dict.fromkeys(map(ord, '‘’‚‛“”„‟«»‹›`´"'), "'")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹣"), "-")
_ALIKE = str.maketrans(_QUOTES | _DASHES)
# Signs of TeX that prose has not: `$x_{i}$` may come back as x_i, \(x_i\) or xi.
_DELIMITER = re.compile(r"\\[()\[\]]")
_TEX = dict.fromkeys(map(ord, "$\\{}_^~"), "")
# Control signs, which a prompt leaves out, and signs that no reader sees.
_UNSEEN = dict.fromkeys([*range(32), 0x7F, 0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF], "")
_DROPPED = str.maketrans(_TEX | _UNSEEN)
# Two dashes are TeX's one, and so are two single quotes.
_RUN = re.compile(r"(['-])\1+")
# Around a quote, what its writer put there to say that it is one, or goes on.
_AROUND = "'….[]()"


def folded(text: str) -> str:
    """The text with case, white space, kinds of quotes and dashes, and the signs of TeX made the
    same or taken out.

    White space goes wholly, as formulas are spaced at will, and a word may be parted at a line's
    end.
    """
    alike = unicodedata.normalize("NFKC", _DELIMITER.sub("", text).translate(_ALIKE))
    plain = alike.casefold().translate(_DROPPED)
    return _RUN.sub(r"\1", "".join(plain.split()))


def place_of(quote: str, texts: Sequence[str]) -> int | None:
    """The first text that the quote is in; None without one, or without a letter or digit."""
    needle = folded(quote).strip(_AROUND)
    if not any(sign.isalnum() for sign in needle):
        return None
    return next((place for place, text in enumerate(texts) if needle in folded(text)), None)


PROMPT = "judge"
PROMPTS = PromptFolder(
    Path(__file__).parent / "prompts",
    fewest=96,
    hint="raise CITELOOM_LLM_CONTEXT, or the judge's context in the file of CITELOOM_MODELS",
)

# Bounds that are in the form alone: SmolLM2 took "240 characters at most" for what to copy, in 7 of
# 12 answers.
QUOTE_CHARS = 240
# 240 characters are 60 tokens of prose, and 240 of digits, which a small model may run on with: of
# 53 answers that had 192 tokens it lost 10 so. Frame and verdict are 20, the rest is for indented
# JSON.
ANSWER_TOKENS = 288
# A judge that samples would make the verdicts of a rerun differ.
TEMPERATURE = 0.0
# Of what there is to read, the sentence has this part at most, the title so many tokens; the
# passages have the rest.
_SENTENCE_SHARE, _TITLE_TOKENS = 3, 64
# Fewer tokens than this of one passage are of no use.
_FEWEST_OF_ONE = 24


class Finding(BaseModel):
    """The judge's answer: the words that decide, then the verdict."""

    # The description is part of a request, and so of the keys of stored answers.
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "description": "The judge's answer: first the words that decide, so that the verdict"
            " is given with them at hand."
        },
    )

    quote: Annotated[str, AtMost(QUOTE_CHARS)]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """The request to the judge. `shown`: the passages as it reads them, best first; `cut`: how many
    are cut, or left out for want of room.
    """

    messages: Sequence[Message]
    shown: tuple[EvidencePassage, ...]
    cut: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict with its quote, and the place of the passage that holds it, None for none.

    Without a verdict, `failure` says why the answer could not be read.
    """

    verdict: Verdict | None
    quote: str
    quoted: int | None
    spent: Spent
    failure: str | None = None


def judge_request(
    title: str, passages: Sequence[EvidencePassage], sentence: str, context: int
) -> JudgeRequest:
    """The question whether these passages, best first, support a sentence, its citations marked.

    Texts without room in a context of so many tokens are cut, long passages before short ones;
    where that would leave next to nothing of each, the best are shown alone. Raises SettingError
    where there is no room for one.
    """
    named = fit(title, _TITLE_TOKENS).text
    left = PROMPTS.room(
        context, ANSWER_TOKENS + REPAIR_TOKENS, PROMPT, title=named, passages="", sentence=""
    )
    claimed = fit(sentence, left // _SENTENCE_SHARE).text
    free = left - count_tokens(claimed)
    most = _most_tokens([count_tokens(passage.text) for passage in passages], free)
    best = passages[: len(most)]
    cuts = [fit(passage.text, tokens) for passage, tokens in zip(best, most, strict=True)]
    shown = tuple(replace(passage, text=cut.text) for passage, cut in zip(best, cuts, strict=True))
    in_order = sorted(shown, key=lambda passage: passage.ordinal)
    texts = "\n\n".join(passage.text for passage in in_order)
    messages = PROMPTS.messages(PROMPT, title=named, passages=texts, sentence=claimed)
    return JudgeRequest(messages, shown, sum(cut.cut for cut in cuts) + len(passages) - len(best))


def _most_tokens(lengths: Sequence[int], free: int) -> list[int]:
    """Tokens of each passage that may be shown, of as many of the first as leave enough of each to
    tell anything.
    """
    for count in range(min(len(lengths), free // 3), 1, -1):
        # A blank line after each passage is a token or two that no share counts.
        parts = shares(lengths[:count], free - 2 * count)
        if all(
            part >= min(length, _FEWEST_OF_ONE)
            for part, length in zip(parts, lengths, strict=False)
        ):
            return parts
    return shares(lengths[:1], free - 2)


async def judge(client: LlmClient, request: JudgeRequest) -> Judged:
    """One verdict: one call, or two where the answer had to be repaired."""
    try:
        answer = await client.answer(
            request.messages, Finding, max_tokens=ANSWER_TOKENS, temperature=TEMPERATURE
        )
    except LlmAnswerError as error:
        return Judged(None, "", None, error.spent, str(error))
    quote = one_line(answer.value.quote)
    quoted = place_of(quote, [passage.text for passage in request.shown])
    return Judged(answer.value.verdict, quote, quoted, answer.spent)
