"""WikiChat (Semnani et al., arXiv 2305.14292) as of mid-2024: what was retrieved, and what the model says and passages
bear out, make a draft, which is refined.

Two branches run side by side: query, retrieve, rank, bullets of each passage; and the model's own answer, its claims,
a verdict on each.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.answering.answered import Answered, Fact, grounded_answer, numbered
from pipeline.answering.asked import Asked
from pipeline.answering.bullets import bullets_of
from pipeline.answering.checking import check, split_claims
from pipeline.answering.composing import compose
from pipeline.answering.direct import written_alone
from pipeline.answering.marks import suspicious
from pipeline.answering.params import Params
from pipeline.answering.prompting import NOTHING
from pipeline.answering.querying import query_or_none
from pipeline.answering.ranking import planned_windows, rank
from pipeline.answering.refining import refine
from pipeline.answering.retrieving import Found, Retriever, find, unseen
from pipeline.answering.steps import Steps, Tell
from pipeline.llm.client import LlmClient, spent
from pipeline.llm.loop import side_by_side


@dataclass(frozen=True, slots=True)
class _Branch:
    """What one of the two came to. question: as it stands alone, where the branch made it so."""

    steps: Steps
    facts: tuple[Fact, ...] = ()
    shown: tuple[Found, ...] = ()
    query: str | None = None
    question: str = ""


async def wikichat(
    client: LlmClient, retriever: Retriever, asked: Asked, params: Params, tell: Tell | None = None
) -> Answered:
    """The answer to a question, from bullets and verified claims; it abstains where these do not hold it.

    Raises SettingError where the context is too small, and as the client and the retriever do.
    """
    read, checked = await side_by_side(
        [_retrieved(client, retriever, asked, params, tell), _generated(client, retriever, asked, params, tell)]
    )
    claims = numbered([*read.facts, *checked.facts], hop=1)
    shown = unseen([*read.shown, *checked.shown], frozenset())
    queries = [] if read.query is None else [read.query]
    hops = [shown] if shown or queries else []
    steps = read.steps.and_then(checked.steps)
    if not claims:
        steps.add("draft", NOTHING, abstained="no claims")
        return grounded_answer((), (), queries, hops, steps)
    draft = await compose(client, "draft", read.question, claims, context=params.context, tokens=params.tokens)
    steps.add("draft", draft.spent, **draft.trace())
    if not draft.sentences:
        return grounded_answer((), claims, queries, hops, steps)
    refined = await refine(client, read.question, draft.sentences, claims, context=params.context, tokens=params.tokens)
    steps.add("refine", refined.spent, **refined.trace())
    return grounded_answer(refined.sentences, claims, queries, hops, steps)


async def _retrieved(
    client: LlmClient, retriever: Retriever, asked: Asked, params: Params, tell: Tell | None
) -> _Branch:
    """Stages 1 to 3: a query or none, the best passages, and their bullets."""
    steps = Steps(tell)
    sought = await query_or_none(client, asked, params.context)
    steps.add("query", sought.spent, **sought.trace())
    if sought.query is None:
        return _Branch(steps, question=sought.question)
    (found,) = await find(retriever, [sought.query], params.candidates)
    steps.add("search", NOTHING, query=sought.query, found=[each.passage_id for each in found])
    ranked = await rank(client, sought.query, found, params.passages, params.context)
    best = ranked.found[: params.passages]
    if ranked.rankings:
        steps.add("rank", ranked.spent, windows=list(ranked.rankings))
    made = await side_by_side(bullets_of(client, sought.question, each, params.context) for each in best)
    for each, told in zip(best, made, strict=True):
        marked = {"shown": each.trace(), "suspicious": suspicious([each]), "texts": list(told.bullets)}
        steps.add("bullets", told.spent, **marked, **told.trace())
    facts: tuple[Fact, ...] = tuple(
        (text, each, "passage") for each, told in zip(best, made, strict=True) for text in told.bullets
    )
    return _Branch(steps, facts, best, sought.query, sought.question)


async def _generated(
    client: LlmClient, retriever: Retriever, asked: Asked, params: Params, tell: Tell | None
) -> _Branch:
    """Stages 4 to 6: the model's own answer, its claims, and a verdict on each of them."""
    steps = Steps(tell)
    written = await written_alone(client, asked, params)
    steps.add("generate", spent([written]), text=written.text.strip(), truncated=written.truncated)
    split = await split_claims(client, asked, written.text, params.context)
    steps.add("split", split.spent, **split.trace())
    evidence = await find(retriever, split.queries, params.evidence)
    checks = await side_by_side(
        check(client, claim, passages, params.context) for claim, passages in zip(split.claims, evidence, strict=True)
    )
    for claim, passages, made in zip(split.claims, evidence, checks, strict=True):
        steps.add("verify", made.spent, claim=claim, suspicious=suspicious(passages), **made.trace())
    borne_out = [(claim, made.passage) for claim, made in zip(split.claims, checks, strict=True) if made.passage]
    facts: tuple[Fact, ...] = tuple((claim, passage, "model") for claim, passage in borne_out)
    shown = unseen((each for passages in evidence for each in passages), frozenset())
    return _Branch(steps, facts, tuple(shown))


def planned_calls(params: Params, hops: int = 1, checked: int = 0) -> int:
    """Calls of a question, where the search finds enough, so many claims are checked and no answer needs a repair.

    Query, ranking, bullets of each passage; the model's answer, its split, a verdict on each claim; draft, refinement.
    """
    ranking = planned_windows(params.candidates, params.passages)
    return 1 + ranking + min(params.passages, params.candidates) + 1 + 1 + checked + 1 + 1
