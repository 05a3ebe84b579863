"""The two questions to a judge: is a claim of an answer correct, and does an answer hold a gold
claim?

One call for each, so that no claim's verdict leans on another's, and a claim that two systems make
is judged once for both. The judge does not see whose answer it is. Each gives the words that decide
before the verdict, and these are looked up where they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from pipeline.answering.model_calls import short_question
from pipeline.answering.questions import Question
from pipeline.evaluation.answers.sample import PROMPTS, ask, in_shown_order
from pipeline.evaluation.citation_support.judge import ANSWER_TOKENS, QUOTE_CHARS, place_of
from pipeline.evaluation.marks import ClaimVerdict, GoldVerdict
from pipeline.evaluation.passages import EvidencePassage
from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, cut_to_share, first_that_fit, fit
from pipeline.llm.messages import Spent
from pipeline.llm.structured import AtMost
from pipeline.text import one_line

CLAIM, GOLD = "claim", "gold"

# Of what there is to read a claim or fact takes a quarter at most, and so do all facts together;
# long ones are rare.
_SHARE = 4
JudgedClaim = tuple[dict[str, Any], Spent]
"""A claim or gold claim as a row of `answer_grades` has it, and what its verdict cost."""


def _spelt(**others: str) -> Callable[[object], object]:
    """A verdict in other letters or one of these other words, as it is called here."""

    def verdict(given: object) -> object:
        text = "_".join(
            str(given).casefold().replace("-", " ").replace("_", " ").strip(" .\"'").split()
        )
        return others.get(text, text)

    return verdict


_CLAIM_SPELT = _spelt(partly_correct="partly", incorrect="wrong", uncheckable="not_checkable")
_GOLD_SPELT = _spelt(partly_held="partly", not_held="not")


class ClaimFinding(BaseModel):
    """The words of facts or passages that decide, then the verdict on the claim."""

    model_config = ConfigDict(extra="forbid")
    quote: Annotated[str, AtMost(QUOTE_CHARS)]
    verdict: Annotated[ClaimVerdict, BeforeValidator(_CLAIM_SPELT)]


class GoldFinding(BaseModel):
    """The words of the answer that tell most about the fact, then whether it holds it."""

    model_config = ConfigDict(extra="forbid")
    quote: Annotated[str, AtMost(QUOTE_CHARS)]
    verdict: Annotated[GoldVerdict, BeforeValidator(_GOLD_SPELT)]


async def judge_claim(
    client: LlmClient,
    question: Question,
    claim: str,
    passages: Sequence[EvidencePassage],
    context: int,
) -> JudgedClaim:
    """Whether gold claims and passages support a claim, at temperature 0: one call, two where it
    was repaired.

    The claim has its verdict, None where the judge's answer could not be read, and then `failure`;
    where its quote is (`quoted`: "passage", with its `passage_id`, or "gold", None for neither);
    the passages that the judge was shown, best first; and whether any of these, the gold claims or
    the claim were `cut`. Raises SettingError where the context is too small.
    """
    asked = short_question(question.question, context)
    in_order = _in_order(question, passages)
    left = PROMPTS.room(
        context,
        ANSWER_TOKENS + REPAIR_TOKENS,
        CLAIM,
        question=asked,
        facts="",
        passages="-" if passages else "",
        claim="",
    )
    claimed = fit(claim, left // _SHARE)
    facts = first_that_fit(
        in_shown_order(question.id, (each.claim for each in question.claims)), left // _SHARE
    )
    # The blank line after a passage is a token or two that no share counts.
    free = left - count_tokens(claimed.text) - count_tokens("\n".join(facts)) - 2 * len(passages)
    texts, passages_cut = cut_to_share([passage.with_heading() for passage in in_order], free)
    cut = passages_cut or claimed.cut or len(facts) < len(question.claims)
    messages = PROMPTS.messages(
        CLAIM,
        question=asked,
        facts="\n".join(facts),
        passages="\n\n".join(texts),
        claim=claimed.text,
    )
    reply = await ask(client, messages, ClaimFinding, ANSWER_TOKENS)
    row = {
        "claim": claim,
        "verdict": None,
        "quote": "",
        "quoted": None,
        "passage_id": None,
        "passages": [
            {"passage_id": each.passage_id, "anchor": each.anchor, "text": each.with_heading()}
            for each in passages
        ],
        "cut": cut,
        "failure": reply.failure,
    }
    if reply.value is not None:
        quote = one_line(reply.value.quote)
        quoted, passage_id = _place(quote, list(zip(in_order, texts, strict=True)), facts)
        row |= {
            "verdict": reply.value.verdict,
            "quote": quote,
            "quoted": quoted,
            "passage_id": passage_id,
        }
    return row, reply.spent


def _place(
    quote: str, shown: Sequence[tuple[EvidencePassage, str]], facts: Sequence[str]
) -> tuple[Literal["passage", "gold"] | None, str | None]:
    """Where a quote is, and in which of the passages, each with its words as they were shown."""
    # SmolLM2 quotes headings, in 6 of 6 verdicts; they say what a passage is about and nothing of
    # it.
    place = place_of(quote, [text[len(passage.heading) :] for passage, text in shown])
    if place is not None:
        return "passage", shown[place][0].passage_id
    return ("gold" if place_of(quote, facts) is not None else None), None


def _in_order(question: Question, passages: Sequence[EvidencePassage]) -> list[EvidencePassage]:
    by_id = {str(passage.passage_id): passage for passage in passages}
    return [by_id[each] for each in in_shown_order(question.id, by_id)]


async def judge_gold(
    client: LlmClient, question: Question, gold: str, answer: str, context: int
) -> JudgedClaim:
    """Whether an answer holds a gold claim, at temperature 0: one call, two where it was repaired.

    As `judge_claim`; `quoted` says whether the quote is in the answer, and what may be `cut` is the
    answer or the gold claim.
    """
    asked = short_question(question.question, context)
    left = PROMPTS.room(
        context, ANSWER_TOKENS + REPAIR_TOKENS, GOLD, question=asked, answer="", fact=""
    )
    fact = fit(gold, left // _SHARE)
    shown = fit(answer.strip(), left - count_tokens(fact.text))
    messages = PROMPTS.messages(GOLD, question=asked, answer=shown.text, fact=fact.text)
    reply = await ask(client, messages, GoldFinding, ANSWER_TOKENS)
    row = {
        **not_held(gold),
        "verdict": None,
        "cut": shown.cut or fact.cut,
        "failure": reply.failure,
    }
    if reply.value is not None:
        quote = one_line(reply.value.quote)
        quoted = place_of(quote, [shown.text]) is not None
        row |= {"verdict": reply.value.verdict, "quote": quote, "quoted": quoted}
    return row, reply.spent


def not_held(gold: str) -> dict[str, Any]:
    """A gold claim that an answer without any claim does not hold."""
    return {
        "claim": gold,
        "verdict": "not",
        "quote": "",
        "quoted": False,
        "cut": False,
        "failure": None,
    }
