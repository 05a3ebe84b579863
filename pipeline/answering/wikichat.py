"""WikiChat (Semnani et al., arXiv 2305.14292) as of mid-2024: a draft of what passages say and of
claims of the model that passages support, then its refinement.

Two branches run side by side: query, search, ranking, bullets of each passage; and the model's own
answer, its claims, and for each of them search, ranking and a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline.answering.answer import UnnumberedClaim, grounded_answer, number_claims
from pipeline.answering.composition import (
    answer_tokens,
    compose,
    most_sentences,
    prompt_values,
    read_sentences,
    sentences_field,
)
from pipeline.answering.direct import write_alone
from pipeline.answering.model_calls import (
    CHARS_PER_TOKEN,
    StepLog,
    Tools,
    passage_trace,
)
from pipeline.answering.ranking import rank, search
from pipeline.answering.retriever import searchable
from pipeline.answering.system import READING, AnsweringSystem
from pipeline.answering.user_question import UserQuestion, plan_query
from pipeline.corpus.nouns import Answer, AnswerSentence, Claim, Passage
from pipeline.llm.context import count_tokens, cut_to_share, first_that_fit, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Spent
from pipeline.llm.structured import AnswerForm, AtMost, make_form
from pipeline.text import one_line

# WikiChat allows 200 tokens for the bullets of a passage, which are two or three sentences.
MOST_BULLETS, BULLET_CHARS = 3, 240
_BULLET_TOKENS = 24 + MOST_BULLETS * (8 + int(BULLET_CHARS / CHARS_PER_TOKEN))
# Texts that a model writes for an empty list.
_NO_BULLET = {"", "none", "nothing", "n/a"}

# WikiChat splits within 350 tokens; eight claims of two lines are as much.
MOST_CHECKED, CLAIM_CHARS, THOUGHT_CHARS = 8, 200, 240
_SPLIT_TOKENS = 24 + MOST_CHECKED * (8 + int(CLAIM_CHARS / CHARS_PER_TOKEN))
_CHECK_TOKENS = 48 + int(THOUGHT_CHARS / CHARS_PER_TOKEN)

CRITERIA = ("relevant", "natural", "non_repetitive", "temporally_correct")
FULL_MARK = 100
_MARKS_TOKENS = 64
# The draft takes at most this part of the room, and the claims the rest: they must not be lost.
_DRAFT_SHARE = 2


class Bullets(AnswerForm):
    """Empty if the passage has nothing on the question."""

    bullets: Annotated[list[Annotated[str, AtMost(BULLET_CHARS)]], AtMost(MOST_BULLETS)]


class SplitClaims(AnswerForm):
    """Empty if the answer claims nothing."""

    claims: Annotated[list[Annotated[str, AtMost(CLAIM_CHARS)]], AtMost(MOST_CHECKED)]


def _verdict(value: object) -> object:
    """A verdict in other letters or another form of the word, as it is spelled here."""
    text = one_line(str(value).upper().replace("_", " ")).strip(".\"' ")
    spelling = {
        "SUPPORTED": "SUPPORTS",
        "SUPPORT": "SUPPORTS",
        "REFUTED": "REFUTES",
        "REFUTE": "REFUTES",
    }
    return spelling.get(text, text)


Verdict = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]


class Check(AnswerForm):
    """The reasoning comes first. passage: the number of the passage that decides, 0 for none."""

    reasoning: Annotated[str, AtMost(THOUGHT_CHARS)]
    verdict: Annotated[Verdict, BeforeValidator(_verdict)]
    passage: int


@dataclass(frozen=True, slots=True)
class _Branch:
    """The result of one branch. question: as it stands alone, where the branch rewrites it."""

    claims: Sequence[UnnumberedClaim] = ()
    passages: Sequence[Passage] = ()
    query: str | None = None
    question: str = ""


async def wikichat(question: UserQuestion, tools: Tools) -> Answer:
    """The answer from bullets and verified claims; it abstains if these do not hold it.

    Raises SettingError if the context is too small, and as the client and the retriever do.
    """
    steps, later_steps = StepLog(tools.on_step), StepLog(tools.on_step)
    retrieved, generated = await side_by_side(
        [_retrieve(tools, steps, question), _generate(tools, later_steps, question)]
    )
    steps.append(later_steps)
    claims = number_claims([*retrieved.claims, *generated.claims], hop=1)
    read = (*retrieved.passages, *generated.passages)
    passages = list({passage.passage_id: passage for passage in read}.values())
    queries = [] if retrieved.query is None else [retrieved.query]
    hops = [passages] if passages or queries else []
    sentences = await compose(tools, steps, "draft", retrieved.question, claims)
    if sentences:
        sentences = await refine(tools, steps, retrieved.question, sentences, claims)
    return grounded_answer(sentences, claims, queries, hops, steps)


async def _retrieve(tools: Tools, steps: StepLog, question: UserQuestion) -> _Branch:
    """Stages 1 to 3: a query or none, the best passages, and their bullets."""
    alone, query = await plan_query(tools, steps, question, optional=True)
    if query is None:
        return _Branch(question=alone)
    best = await _best_passages(tools, steps, query)
    logs = [StepLog(tools.on_step) for _ in best]
    bullets = await side_by_side(
        summarize_passage(tools, log, alone, passage)
        for log, passage in zip(logs, best, strict=True)
    )
    steps.append(*logs)
    return _Branch([bullet for of_passage in bullets for bullet in of_passage], best, query, alone)


async def _best_passages(tools: Tools, steps: StepLog, query: str) -> list[Passage]:
    """The passages of a search that the model ranks first, for a question or for a claim."""
    candidates = [scored.item for scored in await search(tools, steps, query)]
    return await rank(tools, steps, query, candidates)


async def summarize_passage(
    tools: Tools, steps: StepLog, question: str, passage: Passage
) -> list[UnnumberedClaim]:
    """The claims of a passage on a question, at temperature 0; adds the step `bullets`."""
    values = {
        "question": tools.shorten(question),
        "most": MOST_BULLETS,
        "characters": BULLET_CHARS,
    }
    room = tools.room("bullets", _BULLET_TOKENS, passage="", **values)
    text = fit(passage.prompt_text(), room).text
    answer = await tools.ask("bullets", Bullets, _BULLET_TOKENS, passage=text, **values)
    lines = _distinct_lines(answer.value.bullets)
    bullets = [line for line in lines if line.strip("-. ").casefold() not in _NO_BULLET]
    bullets = bullets[:MOST_BULLETS]
    steps.add(
        "bullets",
        answer.spent,
        shown=passage_trace(passage),
        texts=bullets,
    )
    return [UnnumberedClaim(text, passage) for text in bullets]


def _distinct_lines(texts: Iterable[str]) -> list[str]:
    """The texts in order, each on one line and once."""
    return list(dict.fromkeys(map(one_line, texts)))


async def _generate(tools: Tools, steps: StepLog, question: UserQuestion) -> _Branch:
    """Stages 4 to 6: the model's own answer, its claims, and a verdict on each of them."""
    text = await write_alone(tools, steps, question)
    claims = await split_claims(tools, steps, question, text)
    logs = [StepLog(tools.on_step) for _ in claims]
    evidence = await side_by_side(
        _best_passages(tools, log, searchable(claim))
        for log, claim in zip(logs, claims, strict=True)
    )
    checks = zip(logs, claims, evidence, strict=True)
    support = await side_by_side(
        check_claim(tools, log, claim, passages) for log, claim, passages in checks
    )
    steps.append(*logs)
    supported = [
        UnnumberedClaim(claim, passage, "model")
        for claim, passage in zip(claims, support, strict=True)
        if passage is not None
    ]
    return _Branch(supported, [passage for passages in evidence for passage in passages])


async def split_claims(
    tools: Tools, steps: StepLog, question: UserQuestion, text: str
) -> list[str]:
    """The distinct claims that an answer makes, at temperature 0; an empty answer makes no call.

    Adds the step `split`; its `over` counts claims beyond those that are checked.
    """
    split, cost = SplitClaims(claims=[]), Spent()
    if text.strip():
        values = {
            "question": tools.shorten(question.question),
            "most": MOST_CHECKED,
            "characters": CLAIM_CHARS,
        }
        room = tools.room("split", _SPLIT_TOKENS, answer="", **values)
        shown = fit(text.strip(), room).text
        answer = await tools.ask("split", SplitClaims, _SPLIT_TOKENS, answer=shown, **values)
        split, cost = answer.value, answer.spent
    lines = _distinct_lines(split.claims)
    claims = [line for line in lines if searchable(line)]
    checked = claims[:MOST_CHECKED]
    steps.add(
        "split",
        cost,
        claims=checked,
        over=len(claims) - len(checked),
    )
    return checked


async def check_claim(
    tools: Tools, steps: StepLog, claim: str, passages: Sequence[Passage]
) -> Passage | None:
    """The passage that supports a claim, None if none does; no passages make no call.

    Adds the step `verify`. A verdict that has no evidence is NOT ENOUGH INFO.
    If the model names no passage that it was shown (`named`), a supported claim rests on the first.
    """
    check, cost = Check(reasoning="", verdict="NOT ENOUGH INFO", passage=0), Spent()
    if passages:
        values = {"claim": claim, "count": len(passages), "characters": THOUGHT_CHARS}
        room = tools.room("verify", _CHECK_TOKENS, shown=[""] * len(passages), **values)
        shown, _ = cut_to_share([passage.prompt_text() for passage in passages], room)
        answer = await tools.ask("verify", Check, _CHECK_TOKENS, shown=shown, **values)
        check, cost = answer.value, answer.spent
    named = 1 <= check.passage <= len(passages)
    support = None
    if check.verdict == "SUPPORTS":
        support = passages[check.passage - 1] if named else passages[0]
    steps.add(
        "verify",
        cost,
        claim=claim,
        verdict=check.verdict,
        passage=support.passage_id if support else None,
        named=named,
        reasoning=one_line(check.reasoning),
        evidence=[passage_trace(passage) for passage in passages],
    )
    return support


async def refine(
    tools: Tools,
    steps: StepLog,
    question: str,
    draft: list[AnswerSentence],
    claims: Sequence[Claim],
) -> list[AnswerSentence]:
    """The sentences after one call at temperature 0; adds the step `refine`.

    The draft stays as it is if it has full marks on all criteria, or if no sentence of the answer
    rests on a claim; the step's `kept` says which.
    """
    tokens = tools.settings.answer_tokens
    longest = answer_tokens(tokens) + _MARKS_TOKENS
    values = prompt_values(question, tools) | {"criteria": CRITERIA, "count": FULL_MARK}
    room = tools.room("refine", longest, draft="", claims="", **values)
    lines = [f"{sentence.text} ({', '.join(map(str, sentence.claims))})" for sentence in draft]
    draft_text = fit("\n".join(lines), room // _DRAFT_SHARE).text
    claim_lines = first_that_fit(
        [claim.line() for claim in claims], room - count_tokens(draft_text)
    )
    texts = {"draft": draft_text, "claims": "\n".join(claim_lines)}
    answer = await tools.ask(
        "refine", refined_form(most_sentences(tokens)), longest, **texts, **values
    )
    form: Any = answer.value
    marks = {name: getattr(form, name) for name in CRITERIA}
    numbers = {claim.number for claim in claims[: len(claim_lines)]}
    refined, dropped = read_sentences(form.sentences, numbers)
    reason = None
    if min(marks.values()) >= FULL_MARK:
        reason = "full marks"
    elif not refined:
        reason = "nothing left"
    steps.add(
        "refine",
        answer.spent,
        marks=marks,
        kept=reason,
        dropped=dropped,
    )
    return draft if reason else refined


@cache
def refined_form(most: int) -> type[Any]:
    """The form of the answer: a mark for each criterion, then the sentences."""
    return make_form(
        "RefinedAnswer", **dict.fromkeys(CRITERIA, int), sentences=sentences_field(most)
    )


WIKICHAT = AnsweringSystem(
    name="wikichat",
    answer=wikichat,
    settings=READING,
    prompts=("search", "rank", "bullets", "direct", "split", "verify", "draft", "refine"),
    version=4,
)
