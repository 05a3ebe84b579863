"""An answer with its cost: as lines of text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.answering.answer import Answer, Claim
from pipeline.answering.model_calls import passage_trace
from pipeline.answering.rendering import (
    CLAIM_ORIGINS,
    place_and_paper,
    terminal_line,
    terminal_safe,
)
from pipeline.answering.systems import AnsweringSystem
from pipeline.corpus.links import abstract_url, passage_url
from pipeline.corpus.passage import Passage
from pipeline.llm.messages import Usage
from pipeline.text import number_of

QUOTATIONS_HEADING = "Passages that may answer this"
"""The heading of an answer that consists of quotations."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer and its cost.

    model: None for a system that calls none. usage: of this question; cached answers are free.
    """

    question: str
    system: AnsweringSystem
    model: str | None
    answer: Answer
    usage: Usage
    seconds: float

    def __str__(self) -> str:
        """The answer and its sources, as `citeloom ask` prints them."""
        return "\n".join(answer_lines(self))


def answer_heading(reply: Reply) -> str:
    """The heading of an answer: QUOTATIONS_HEADING if no model wrote it, else "Answer"."""
    has_quotations = any(claim.source == "passage" for claim in reply.answer.claims)
    if has_quotations and not reply.system.calls_model:
        return QUOTATIONS_HEADING
    return "Answer"


def answer_lines(reply: Reply) -> list[str]:
    """The answer, each sentence with the numbers of its claims, then these claims with sources.

    Quotations are printed once, each with its source.
    """
    answer = reply.answer
    if not answer.claims or answer.abstained:
        return [terminal_safe(line) for line in answer.text.splitlines()]
    if answer_heading(reply) == QUOTATIONS_HEADING:
        lines = [QUOTATIONS_HEADING, ""]
        for sentence, claim in zip(answer.sentences, answer.claims, strict=True):
            lines += _claim_lines(claim, sentence.text, answer.passages[claim.passage_id])
        return lines
    sentences = []
    for sentence in answer.sentences:
        marks = "".join(f"[{number}]" for number in sentence.claims)
        sentences.append(f"{terminal_line(sentence.text)} {marks}")
    used = {number for sentence in answer.sentences for number in sentence.claims}
    lines = [" ".join(sentences), "", "Sources"]
    for claim in answer.claims:
        if claim.number in used:
            lines += _claim_lines(claim, claim.text, answer.passages[claim.passage_id])
    return lines


def _claim_lines(claim: Claim, text: str, passage: Passage) -> list[str]:
    mark = f"[{claim.number}] "
    indent = " " * len(mark)
    origin = CLAIM_ORIGINS[claim.source]
    remark = f" ({origin})" if origin else ""
    lines = [f"{mark}{terminal_line(text)}{remark}", f"{indent}{place_and_paper(passage)}"]
    return [*lines, f"{indent}{passage.url}"] if passage.url else lines


def answer_notes(reply: Reply) -> Iterator[str]:
    """Notes beside the answer: why there is none, or that no paper supports it.

    The places of the nearest passages are named once each.
    """
    answer = reply.answer
    if not reply.system.retrieves:
        yield (
            f"{reply.system.name} reads no paper: this is what"
            f" {terminal_line(reply.model or '')} says by itself"
        )
    elif answer.abstained:
        yield f"searched for: {'; '.join(map(terminal_line, answer.queries)) or 'nothing'}"
        if not reply.system.calls_model:
            places = dict.fromkeys(map(place_and_paper, answer.passages.values()))
            yield from (f"nearest passage: {place}" for place in places)
            return
        read = (
            f"{number_of(len(answer.passages), 'passage')} read,"
            f" {number_of(len(answer.claims), 'claim')} extracted"
        )
        yield f"{read}: they do not hold the answer"


def cost_line(reply: Reply) -> str:
    """Calls, tokens, money if prices are set, and time, of this answer alone."""
    usage = reply.usage
    if reply.model is None:
        return f"{reply.system.name} · no model · {reply.seconds:.1f} s"
    parts = [
        reply.system.name,
        terminal_line(reply.model),
        f"{number_of(usage.calls, 'call')}, {usage.cached} of them answered by the cache",
        f"{usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,} written",
    ]
    if usage.prices.known:
        parts.append(f"{usage.cost:,.4f} to pay")
    parts.append(f"{reply.seconds:.1f} s")
    return " · ".join(parts)


def reply_json(reply: Reply, *, steps: bool = False) -> dict[str, Any]:
    """One document: the answer, its sentences, claims and passages with their links, and its cost.

    steps: whether it has the trace too.
    """
    answer = reply.answer
    document: dict[str, Any] = {
        "question": reply.question,
        "system": reply.system.name,
        "model": reply.model,
        "answer": answer.text,
        "heading": answer_heading(reply),
        "abstained": answer.abstained,
        "sentences": [
            {"text": sentence.text, "claims": list(sentence.claims)}
            for sentence in answer.sentences
        ],
        "claims": [_claim_json(claim) for claim in answer.claims],
        "queries": list(answer.queries),
        "passages": [[_passage_json(passage) for passage in hop] for hop in answer.shown],
        "hops": answer.hops,
        "cost": {**reply.usage.measured(), "seconds": round(reply.seconds, 3)},
    }
    if steps:
        document |= answer.trace
    # A model's JSON may hold lone surrogates, which no stream takes.
    replaced: dict[str, Any] = json.loads(
        json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    )
    return replaced


def _claim_json(claim: Claim) -> dict[str, Any]:
    return {
        "number": claim.number,
        "text": claim.text,
        "source": claim.source,
        "hop": claim.hop,
        "passage_id": claim.passage_id,
        "passage_url": passage_url(claim.arxiv_id, claim.anchor),
    }


def _passage_json(passage: Passage) -> dict[str, Any]:
    return {
        **passage_trace(passage),
        "title": passage.title,
        "section_path": list(passage.section_path),
        "month": passage.month,
        "text": passage.text,
        "url": abstract_url(passage.arxiv_id),
        "passage_url": passage.url,
    }
