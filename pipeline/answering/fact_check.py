"""WikiChat's fact check: the claims of the model's own answer, and what passages say of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, PROMPTS, ask, short_question
from pipeline.answering.retrieval import RetrievedPassage, searchable
from pipeline.answering.user_question import UserQuestion
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.context import cut_to_share, fit
from pipeline.llm.structured import AnswerForm, AtMost

Verdict = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]

# WikiChat splits within 350 tokens; eight claims of two lines are as much.
MOST_CLAIMS, CLAIM_CHARS, THOUGHT_CHARS = 8, 200, 240
_SPLIT_TOKENS = 24 + MOST_CLAIMS * (8 + int(CLAIM_CHARS / CHARS_PER_TOKEN))
_CHECK_TOKENS = 48 + int(THOUGHT_CHARS / CHARS_PER_TOKEN)


def _verdict(value: object) -> object:
    """A verdict in other letters or another form of the word, as it is spelled here."""
    text = " ".join(str(value).upper().replace("_", " ").split()).strip(".\"' ")
    spelling = {"SUPPORTED": "SUPPORTS", "SUPPORT": "SUPPORTS", "REFUTED": "REFUTES", "REFUTE": "REFUTES"}
    return spelling.get(text, text)


class SplitClaims(AnswerForm):
    """Empty if the answer claims nothing."""

    claims: Annotated[list[Annotated[str, AtMost(CLAIM_CHARS)]], AtMost(MOST_CLAIMS)]


class Check(AnswerForm):
    """The reasoning comes first. passage: the number of the passage that decides, 0 for none."""

    reasoning: Annotated[str, AtMost(THOUGHT_CHARS)]
    verdict: Annotated[Verdict, BeforeValidator(_verdict)]
    passage: int


@dataclass(frozen=True, slots=True)
class SplitAnswer:
    """The distinct claims of an answer. over: claims beyond those that are checked."""

    claims: tuple[str, ...] = ()
    over: int = 0
    spent: Spent = NOTHING
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {"claims": list(self.claims), "over": self.over, "failure": self.failure}


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The verdict on a claim. passage: what a supported claim rests on, else None.

    A verdict that cannot be read, or has no evidence, is NOT ENOUGH INFO.
    """

    verdict: Verdict
    passage: RetrievedPassage | None = None
    named: bool = True
    """Whether the model named a passage that it was shown; otherwise the claim rests on the first."""
    reasoning: str = ""
    evidence: tuple[RetrievedPassage, ...] = ()
    cut: bool = False
    spent: Spent = NOTHING
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "passage": self.passage.passage_id if self.passage else None,
            "named": self.named,
            "reasoning": self.reasoning,
            "evidence": [passage.trace() for passage in self.evidence],
            "cut": self.cut,
            "failure": self.failure,
        }


async def split_claims(client: LlmClient, question: UserQuestion, text: str, context: int) -> SplitAnswer:
    """The claims that an answer makes, at temperature 0; an empty answer makes no call."""
    if not text.strip():
        return SplitAnswer()
    values = {"question": short_question(question.question, context), "most": MOST_CLAIMS, "characters": CLAIM_CHARS}
    left = PROMPTS.room(context, _SPLIT_TOKENS + REPAIR_TOKENS, "split", answer="", **values)
    messages = PROMPTS.messages("split", answer=fit(text.strip(), left).text, **values)
    answer = await ask(client, messages, SplitClaims, _SPLIT_TOKENS)
    if answer.value is None:
        return SplitAnswer((), 0, answer.spent, answer.failure)
    lines = dict.fromkeys(" ".join(claim.split()) for claim in answer.value.claims)
    claims = tuple(line for line in lines if searchable(line))
    return SplitAnswer(claims[:MOST_CLAIMS], max(len(claims) - MOST_CLAIMS, 0), answer.spent)


async def check_claim(
    client: LlmClient, claim: str, passages: Sequence[RetrievedPassage], context: int
) -> ClaimVerdict:
    """What passages say about a claim, at temperature 0; no passages make no call."""
    if not passages:
        return ClaimVerdict("NOT ENOUGH INFO")
    values = {"claim": claim, "count": len(passages), "characters": THOUGHT_CHARS}
    left = PROMPTS.room(context, _CHECK_TOKENS + REPAIR_TOKENS, "verify", shown=[""] * len(passages), **values)
    shown, cut = cut_to_share([passage.prompt_text() for passage in passages], left)
    answer = await ask(client, PROMPTS.messages("verify", shown=shown, **values), Check, _CHECK_TOKENS)
    evidence, check = tuple(passages), answer.value
    if check is None:
        return ClaimVerdict("NOT ENOUGH INFO", None, False, "", evidence, cut, answer.spent, answer.failure)
    named = 1 <= check.passage <= len(passages)
    deciding = passages[check.passage - 1] if named else passages[0]
    rests_on = deciding if check.verdict == "SUPPORTS" else None
    reasoning = " ".join(check.reasoning.split())
    return ClaimVerdict(check.verdict, rests_on, named, reasoning, evidence, cut, answer.spent)
