"""WikiChat (Semnani et al., arXiv 2305.14292) as of mid-2024: a draft of what passages say and of claims of the model
that passages support, then its refinement.

Two branches run side by side: query, search, ranking, bullets of each passage; and the model's own answer, its claims,
a verdict on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pipeline.answering.answer import Answer, Claim, Fact, Sentence, StepLog, grounded_answer, number_claims
from pipeline.answering.composition import (
    ReadSentences,
    answer_tokens,
    compose,
    most_sentences,
    prompt_values,
    read_sentences,
    sentences_field,
    write_alone,
)
from pipeline.answering.fact_check import check_claim, split_claims
from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, PROMPTS, ask, short_question
from pipeline.answering.retrieval import (
    RetrievedPassage,
    distinct_passages,
    find,
    rank,
    searchable,
    suspicious_ids,
)
from pipeline.answering.tools import Tools
from pipeline.answering.user_question import UserQuestion, plan_query_or_none
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, first_that_fit, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.structured import AnswerForm, AtMost, make_form

# WikiChat allows 200 tokens for the bullets of a passage, which are two or three sentences.
MOST_BULLETS, BULLET_CHARS = 3, 240
_BULLET_TOKENS = 24 + MOST_BULLETS * (8 + int(BULLET_CHARS / CHARS_PER_TOKEN))
# What a model writes for an empty list.
_NO_BULLET = {"", "none", "nothing", "n/a"}

CRITERIA = ("relevant", "natural", "non_repetitive", "temporally_correct")
FULL_MARK = 100
_MARKS_TOKENS = 64
# The draft takes at most this part of the room, and the claims the rest: they must not be lost.
_DRAFT_SHARE = 2


class Bullets(AnswerForm):
    """Empty if the passage has nothing on the question."""

    bullets: Annotated[list[Annotated[str, AtMost(BULLET_CHARS)]], AtMost(MOST_BULLETS)]


@dataclass(frozen=True, slots=True)
class Summary:
    """The bullets of one passage. over: bullets beyond the most."""

    bullets: tuple[str, ...]
    cut: bool
    over: int = 0
    spent: Spent = NOTHING
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {"bullets": len(self.bullets), "cut": self.cut, "over": self.over, "failure": self.failure}


async def summarize_passage(client: LlmClient, question: str, passage: RetrievedPassage, context: int) -> Summary:
    """What a passage says about a question, at temperature 0."""
    values = {"question": short_question(question, context), "most": MOST_BULLETS, "characters": BULLET_CHARS}
    left = PROMPTS.room(context, _BULLET_TOKENS + REPAIR_TOKENS, "bullets", passage="", **values)
    text = fit(passage.prompt_text(), left)
    answer = await ask(client, PROMPTS.messages("bullets", passage=text.text, **values), Bullets, _BULLET_TOKENS)
    if answer.value is None:
        return Summary((), text.cut, 0, answer.spent, answer.failure)
    lines = dict.fromkeys(" ".join(bullet.split()) for bullet in answer.value.bullets)
    bullets = tuple(line for line in lines if line.strip("-. ").casefold() not in _NO_BULLET)
    return Summary(bullets[:MOST_BULLETS], text.cut, max(len(bullets) - MOST_BULLETS, 0), answer.spent)


@dataclass(frozen=True, slots=True)
class Refinement:
    """The sentences after refinement. kept: why the draft stays, if it does."""

    sentences: tuple[Sentence, ...]
    marks: dict[str, int]
    kept: str | None
    read: ReadSentences
    spent: Spent
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {
            "marks": self.marks,
            "kept": self.kept,
            "failure": self.failure,
            **self.read.trace(),
            "sentences": [list(sentence.claims) for sentence in self.sentences],
        }


async def refine(
    client: LlmClient,
    question: str,
    draft: Sequence[Sentence],
    claims: Sequence[Claim],
    *,
    context: int,
    tokens: int,
) -> Refinement:
    """The draft after one call at temperature 0.

    It stays as it is if it has full marks on all criteria, if the answer cannot be read, or if no sentence of the
    answer rests on a claim.
    """
    longest = answer_tokens(tokens) + _MARKS_TOKENS
    values = prompt_values(question, tokens, context) | {"criteria": CRITERIA, "count": FULL_MARK}
    left = PROMPTS.room(context, longest + REPAIR_TOKENS, "refine", draft="", claims="", **values)
    lines = [f"{sentence.text} ({', '.join(map(str, sentence.claims))})" for sentence in draft]
    draft_text = fit("\n".join(lines), left // _DRAFT_SHARE).text
    claim_lines = first_that_fit([claim.line() for claim in claims], left - count_tokens(draft_text))
    messages = PROMPTS.messages("refine", draft=draft_text, claims="\n".join(claim_lines), **values)
    answer = await ask(client, messages, refined_form(most_sentences(tokens)), longest)
    form: Any = answer.value
    if form is None:
        return Refinement(tuple(draft), {}, "unreadable", ReadSentences(), answer.spent, answer.failure)
    marks = {name: getattr(form, name) for name in CRITERIA}
    read = read_sentences(form.sentences, {claim.number for claim in claims[: len(claim_lines)]})
    kept = "full marks" if min(marks.values()) >= FULL_MARK else None if read.sentences else "nothing left"
    return Refinement(tuple(draft) if kept else read.sentences, marks, kept, read, answer.spent)


@cache
def refined_form(most: int) -> type[Any]:
    """The form of the answer: a mark for each criterion, then the sentences."""
    return make_form("RefinedAnswer", **dict.fromkeys(CRITERIA, int), sentences=sentences_field(most))


@dataclass(frozen=True, slots=True)
class _Branch:
    """The result of one branch. question: as it stands alone, where the branch rewrites it."""

    steps: StepLog
    facts: tuple[Fact, ...] = ()
    passages: tuple[RetrievedPassage, ...] = ()
    query: str | None = None
    question: str = ""


async def wikichat(question: UserQuestion, tools: Tools) -> Answer:
    """The answer from bullets and verified claims; it abstains if these do not hold it.

    Raises SettingError if the context is too small, and as the client and the retriever do.
    """
    client, params = tools.model, tools.params
    retrieved, generated = await side_by_side([_retrieve(question, tools), _generate(question, tools)])
    claims = number_claims([*retrieved.facts, *generated.facts], hop=1)
    passages = distinct_passages([*retrieved.passages, *generated.passages])
    queries = [] if retrieved.query is None else [retrieved.query]
    hops = [passages] if passages or queries else []
    steps = retrieved.steps.followed_by(generated.steps)
    if not claims:
        steps.add("draft", NOTHING, abstained="no claims")
        return grounded_answer((), (), queries, hops, steps)
    alone = retrieved.question
    draft = await compose(client, "draft", alone, claims, context=params.context, tokens=params.tokens)
    steps.add("draft", draft.spent, **draft.trace())
    if not draft.sentences:
        return grounded_answer((), claims, queries, hops, steps)
    refined = await refine(client, alone, draft.sentences, claims, context=params.context, tokens=params.tokens)
    steps.add("refine", refined.spent, **refined.trace())
    return grounded_answer(refined.sentences, claims, queries, hops, steps)


async def _retrieve(question: UserQuestion, tools: Tools) -> _Branch:
    """Stages 1 to 3: a query or none, the best passages, and their bullets."""
    client, params, steps = tools.model, tools.params, StepLog(tools.on_step)
    plan = await plan_query_or_none(client, question, params.context)
    steps.add("query", plan.spent, **plan.trace())
    if plan.query is None:
        return _Branch(steps, question=plan.question)
    (results,) = await find(tools.retriever, [plan.query], params.candidates)
    steps.add("search", NOTHING, query=plan.query, found=[passage.passage_id for passage in results])
    ranked = await rank(client, plan.query, results, params.passages, params.context)
    best = ranked.passages[: params.passages]
    if ranked.rankings:
        steps.add("rank", ranked.spent, windows=list(ranked.rankings))
    summaries = await side_by_side(
        summarize_passage(client, plan.question, passage, params.context) for passage in best
    )
    facts: list[Fact] = []
    for passage, summary in zip(best, summaries, strict=True):
        facts += [(text, passage, "passage") for text in summary.bullets]
        steps.add(
            "bullets",
            summary.spent,
            shown=passage.trace(),
            suspicious=suspicious_ids([passage]),
            texts=list(summary.bullets),
            **summary.trace(),
        )
    return _Branch(steps, tuple(facts), best, plan.query, plan.question)


async def _generate(question: UserQuestion, tools: Tools) -> _Branch:
    """Stages 4 to 6: the model's own answer, its claims, and a verdict on each of them."""
    client, params, steps = tools.model, tools.params, StepLog(tools.on_step)
    completion = await write_alone(client, question, params)
    steps.add("generate", spent([completion]), text=completion.text.strip(), truncated=completion.truncated)
    split = await split_claims(client, question, completion.text, params.context)
    steps.add("split", split.spent, **split.trace())
    evidence = await find(tools.retriever, [searchable(claim) for claim in split.claims], params.evidence)
    verdicts = await side_by_side(
        check_claim(client, claim, passages, params.context)
        for claim, passages in zip(split.claims, evidence, strict=True)
    )
    facts: list[Fact] = []
    for claim, passages, verdict in zip(split.claims, evidence, verdicts, strict=True):
        if verdict.passage:
            facts.append((claim, verdict.passage, "model"))
        steps.add("verify", verdict.spent, claim=claim, suspicious=suspicious_ids(passages), **verdict.trace())
    read = distinct_passages(passage for passages in evidence for passage in passages)
    return _Branch(steps, tuple(facts), tuple(read))
