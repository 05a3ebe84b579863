"""The stage `answer_grades`: is a claim of an answer correct, and does an answer hold a gold claim?

Answers are split; then evidence is looked up for all claims, which may block; then all claims are
judged. One call for each, so that no claim's verdict leans on another's, and a claim that two
systems make is judged once for both. The judge does not see whose answer it is. Each gives the
words that decide before the verdict, and these are looked up where they should be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline import tables
from pipeline.answering.model_calls import short_question
from pipeline.answering.questions import Question, paper_months, read_posed_questions
from pipeline.corpus.nouns import Answer
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.answers.measures import Outcome, gold_shown_by_hop
from pipeline.evaluation.answers.sample import (
    PROMPTS,
    SPLIT,
    SampledAnswer,
    Split,
    in_shown_order,
    read_answers,
    split_answer,
)
from pipeline.evaluation.judged import (
    FINDING_TOKENS,
    Quoting,
    Reply,
    ask,
    evidence_digests,
    judge_all,
)
from pipeline.evaluation.passages import EvidencePassage, search
from pipeline.evaluation.verdicts import ClaimVerdict, GoldVerdict, place_of
from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, cut_to_share, first_that_fit, fit
from pipeline.llm.models import judge_model
from pipeline.llm.stage_loop import leave_out_failed
from pipeline.storage.writing import Row
from pipeline.tables.writers import parse_writer, writer_name
from pipeline.text import text_digest

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

CLAIM, GOLD = "claim", "gold"

# Of what there is to read a claim or fact takes a quarter at most, and so do all facts together;
# long ones are rare.
_SHARE = 4

Evidence = Mapping[tuple[str, str], Sequence[EvidencePassage]]
"""(question id, claim) → the passages that it is judged by, best first; none where there are none.
"""
Verdict = tuple[Row, Reply[Any]]
"""A claim or gold claim as a row of `answer_grades` has it, and the judge's reply."""


def _spelt(**others: str) -> BeforeValidator:
    """A verdict in other letters or one of these other words, as it is called here."""

    def verdict(given: object) -> object:
        text = "_".join(
            str(given).casefold().replace("-", " ").replace("_", " ").strip(" .\"'").split()
        )
        return others.get(text, text)

    return BeforeValidator(verdict)


class ClaimFinding(Quoting):
    """The words of facts or passages that decide, then the verdict on the claim."""

    verdict: Annotated[
        ClaimVerdict,
        _spelt(partly_correct="partly", incorrect="wrong", uncheckable="not_checkable"),
    ]


class GoldFinding(Quoting):
    """The words of the answer that tell most about the fact, then whether it holds it."""

    verdict: Annotated[GoldVerdict, _spelt(partly_held="partly", not_held="not")]


async def judge_claim(
    client: LlmClient,
    question: Question,
    claim: str,
    passages: Sequence[EvidencePassage],
    context: int,
) -> Verdict:
    """Whether gold claims and passages support a claim: one call, two where it was repaired.

    The claim has its verdict, None where the judge failed, and then `failure`; where its quote is
    (`quoted`: "passage", with its `passage_id`, or "gold", None for neither); the passages that the
    judge was shown, best first; and whether any of these, the gold claims or the claim were `cut`.
    Raises SettingError where the context is too small.
    """
    asked = short_question(question.question, context)
    by_id = {str(passage.passage_id): passage for passage in passages}
    in_order = [by_id[name] for name in in_shown_order(question.id, by_id)]
    left = PROMPTS.room(
        context,
        FINDING_TOKENS + REPAIR_TOKENS,
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
    messages = PROMPTS.messages(
        CLAIM,
        question=asked,
        facts="\n".join(facts),
        passages="\n\n".join(texts),
        claim=claimed.text,
    )
    reply = await ask(client, messages, ClaimFinding, FINDING_TOKENS)
    cut = passages_cut or claimed.cut or len(facts) < len(question.claims)
    row = _verdict_columns(claim, reply, cut=cut)
    quoted, passage_id = _place(row["quote"], list(zip(in_order, texts, strict=True)), facts)
    shown = [
        {"passage_id": each.passage_id, "anchor": each.anchor, "text": each.with_heading()}
        for each in passages
    ]
    return {**row, "quoted": quoted, "passage_id": passage_id, "passages": shown}, reply


def _verdict_columns(claim: str, reply: Reply[Any], *, cut: bool) -> dict[str, Any]:
    """The columns that claims and gold claims share."""
    return {
        "claim": claim,
        "verdict": reply.form.verdict if reply.form else None,
        "quote": reply.form.quote if reply.form else "",
        "cut": cut,
        "failure": str(reply.failure) if reply.failure else None,
    }


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


async def judge_gold(
    client: LlmClient, question: Question, gold: str, answer: str, context: int
) -> Verdict:
    """Whether an answer holds a gold claim: one call, two where it was repaired.

    As `judge_claim`; `quoted` says whether the quote is in the answer, and what may be `cut` is the
    answer or the gold claim.
    """
    asked = short_question(question.question, context)
    left = PROMPTS.room(
        context, FINDING_TOKENS + REPAIR_TOKENS, GOLD, question=asked, answer="", fact=""
    )
    fact = fit(gold, left // _SHARE)
    shown = fit(answer.strip(), left - count_tokens(fact.text))
    messages = PROMPTS.messages(GOLD, question=asked, answer=shown.text, fact=fact.text)
    reply = await ask(client, messages, GoldFinding, FINDING_TOKENS)
    row = _verdict_columns(gold, reply, cut=shown.cut or fact.cut)
    return {**row, "quoted": place_of(row["quote"], [shown.text]) is not None}, reply


def build(job: Job, make: Callable[[Settings], Embedder] = make_embedder) -> Iterator[Row]:
    """Rows of `answer_grades`, by question and writer.

    Raises SettingError where the judge's context is too small, or the embedder's model is absent.
    """
    posed = {each.question.id: each for each in read_posed_questions(job.rows(tables.QUESTIONS))}

    def look_up(claims: Mapping[str, Sequence[str]]) -> Evidence:
        ranked = search(
            job.workspace,
            claims,
            job.settings.support_passages,
            # An estimate makes claims up.
            None if job.rehearsal else make,
            {question_id: posed[question_id].question.papers for question_id in claims},
        )
        job.notes["evidence_ranked_by"] = "vectors and words" if ranked.by_both else "words alone"
        return ranked.passages

    answers = list(read_answers(job, posed))
    if answers:
        grades = grade_answers(job, answers, look_up)
        yield from sorted(grades, key=lambda row: (row["question_id"], writer_name(row)))


@dataclass(frozen=True, slots=True)
class ClaimItem:
    """One verdict to ask for: on a claim of the answer at this place, or on a gold claim."""

    place: int
    text: str
    is_gold: bool


def grade_answers(
    job: Job,
    answers: Sequence[SampledAnswer],
    look_up: Callable[[Mapping[str, Sequence[str]]], Evidence],
) -> list[Row]:
    """Rows of `answer_grades` in the order of the answers; failures are in the ledger.

    look_up: question id → the claims that any system made, each once. What is asked begins in the
    order of digests: an endpoint that changes in the meantime changes for all systems alike.
    Raises SettingError where the context is too small.
    """
    model = judge_model(job.settings)

    async def split(client: LlmClient, each: SampledAnswer) -> Split:
        if each.answer.abstained:
            return Split()
        return await split_answer(client, each.question.question, each.answer.text, model.context)

    splits = judge_all(
        job, answers, split, lambda each: _digest(each.question.id, each.answer.text)
    )
    claimed: dict[str, set[str]] = defaultdict(set)
    for each, split_ in zip(answers, splits, strict=True):
        claimed[each.question.id] |= set(split_.claims)
    evidence = look_up({name: sorted(claims) for name, claims in sorted(claimed.items())})

    async def judge(client: LlmClient, item: ClaimItem) -> Verdict:
        question, answer = answers[item.place].question, answers[item.place].answer
        if item.is_gold:
            return await judge_gold(client, question, item.text, answer.text, model.context)
        passages = evidence.get((question.id, item.text), ())
        return await judge_claim(client, question, item.text, passages, model.context)

    items: list[ClaimItem] = []
    for place, (each, split_) in enumerate(zip(answers, splits, strict=True)):
        items += [ClaimItem(place, claim, is_gold=False) for claim in split_.claims]
        # An answer that could not be split can still be searched for gold claims; one that claims
        # nothing holds none, and nobody has to be asked.
        if outcome_of(each.answer, split_) in ("answered", "unreadable"):
            items += [ClaimItem(place, gold.claim, is_gold=True) for gold in each.question.claims]
    verdicts: dict[tuple[int, bool], list[Verdict]] = defaultdict(list)
    replies = judge_all(
        job, items, judge, lambda item: _digest(answers[item.place].question.id, item.text)
    )
    for item, verdict in zip(items, replies, strict=True):
        verdicts[item.place, item.is_gold].append(verdict)
    grades: list[Row] = []
    for place, (each, split_) in enumerate(zip(answers, splits, strict=True)):
        claims, gold = verdicts[place, False], verdicts[place, True]
        _leave_out_failures(job, each, split_, claims, gold)
        grades.append({"judge": model.name, **_row(each, split_, claims, gold)})
    outcomes = Counter(f"{writer_name(grade)} {grade['outcome']}" for grade in grades)
    job.notes["outcomes"] = dict(sorted(outcomes.items()))
    return grades


def _digest(question_id: str, text: str) -> str:
    return text_digest(f"{question_id}\0{text}")


def outcome_of(answer: Answer, split: Split) -> Outcome:
    """The outcome of an answer before any verdict."""
    if answer.abstained:
        return "abstained"
    if split.claims:
        return "answered"
    return "unreadable" if split.failures else "claims_nothing"


def _row(
    each: SampledAnswer, split: Split, claims: Sequence[Verdict], gold: Sequence[Verdict]
) -> Row:
    """The row of an answer, without its judge. It costs all grading, cached calls too."""
    question = each.question
    hops_shown, first_hop = gold_shown_by_hop(question, each.answer, each.gold_passages)
    # An answer without any claim holds no gold claim.
    not_held = {"verdict": "not", "quote": "", "cut": False, "failure": None, "quoted": False}
    gold_rows = [row for row, _ in gold] or [
        {"claim": claim.claim, **not_held} for claim in question.claims
    ]
    return {
        "question_id": question.id,
        **parse_writer(each.system).columns,
        "kind": question.kind,
        "date": question.date or question.month,
        "outcome": outcome_of(each.answer, split),
        "claims": [row for row, _ in claims],
        "gold": [
            {**row, "shown_in_hop": first_hop.get(place), "has_passage": place in first_hop}
            for place, row in enumerate(gold_rows)
        ],
        "hops_shown": hops_shown,
        "parts": split.parts,
        "parts_full": split.full,
        "parts_cut": split.cut,
        "split_failures": [str(failure) for failure in split.failures],
        **asdict(sum((reply.spent for _, reply in (*claims, *gold)), split.spent)),
    }


def _leave_out_failures(
    job: Job,
    each: SampledAnswer,
    split: Split,
    claims: Sequence[Verdict],
    gold: Sequence[Verdict],
) -> None:
    """Record in the ledger what could not be split or judged."""
    subject = f"{each.question.id} {each.system}"
    for failure in split.failures:
        leave_out_failed(job, subject, failure, "a part of the answer")
    for name, verdicts in (("claim", claims), ("gold claim", gold)):
        for number, (_, reply) in enumerate(verdicts, 1):
            if reply.failure is not None:
                leave_out_failed(job, subject, reply.failure, f"{name} {number}")


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The judge, its prompts, the embedder's model, and the papers' passages and vectors."""
    rows = workspace.root.rows(tables.QUESTIONS, month)
    months = paper_months(question.question for question in read_posed_questions(rows))
    return {
        "prompts": PROMPTS.digest(SPLIT, CLAIM, GOLD),
        "judges": judge_model(workspace.settings).fingerprint,
        "embedder": model_name(workspace.settings),
        **evidence_digests(workspace, months, "the papers"),
    }
