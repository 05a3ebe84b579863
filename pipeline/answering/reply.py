"""An answer with its cost: as lines of text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.answering.model_calls import passage_trace
from pipeline.answering.rendering import (
    CLAIM_ORIGINS,
    place_and_paper,
    terminal_line,
    terminal_safe,
)
from pipeline.answering.systems import AnsweringSystem
from pipeline.corpus.links import abstract_url, passage_url
from pipeline.corpus.nouns import Answer, Claim, Passage
from pipeline.index.excerpts import Excerpt, excerpts
from pipeline.llm.messages import Usage
from pipeline.text import number_of

# Characters of a passage that is shown without a claim.
_EXCERPT = 900
# Lines of a list or table.
_MOST_LINES = 15


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

    def closest_passages(self) -> list[tuple[Passage, Excerpt]]:
        """The passages that are shown in place of an answer, each with what fits the question best;
        none beside an answer.
        """
        if self.answer.claims or self.answer.abstained:
            return []
        passages = list(self.answer.passages.values())
        return list(zip(passages, excerpts(self.question, passages, _EXCERPT), strict=True))


def answer_lines(reply: Reply) -> list[str]:
    """The answer, each sentence with the numbers of its claims, then these claims with sources; or
    the closest passages, their best sentences between asterisks. No text is printed twice.
    """
    answer = reply.answer
    if not answer.claims or answer.abstained:
        lines = [terminal_safe(line) for line in answer.text.splitlines()]
        for number, (passage, excerpt) in enumerate(reply.closest_passages(), 1):
            lines += ["", *_passage_lines(number, passage, excerpt)]
        return lines
    sentences = []
    for sentence in answer.sentences:
        marks = "".join(f"[{number}]" for number in sentence.claims)
        sentences.append(f"{terminal_line(sentence.text)} {marks}")
    texts = {sentence.text for sentence in answer.sentences}
    used = {number for sentence in answer.sentences for number in sentence.claims}
    lines = [" ".join(sentences), "", "Sources"]
    for claim in answer.claims:
        if claim.number in used:
            passage = answer.passages[claim.passage_id]
            lines += _claim_lines(claim, passage, with_text=claim.text not in texts)
    return lines


def _claim_lines(claim: Claim, passage: Passage, *, with_text: bool) -> list[str]:
    origin = CLAIM_ORIGINS[claim.source]
    remark = f" ({origin})" if origin else ""
    place = place_and_paper(passage)
    lines = [f"{terminal_line(claim.text)}{remark}", place] if with_text else [f"{place}{remark}"]
    return _numbered(claim.number, [*lines, passage.url])


def _passage_lines(number: int, passage: Passage, excerpt: Excerpt) -> list[str]:
    """The place of a passage and its excerpt, with the best sentences between asterisks."""
    text = excerpt.shown
    for sentence in excerpt.best:
        text = text.replace(sentence, f"**{sentence}**", 1)
    lines = [terminal_line(line) for line in text.splitlines() if set(line) - set("|-: ")]
    if len(lines) > _MOST_LINES:
        marked = (place for place, line in enumerate(lines) if line.startswith("**"))
        first = min(next(marked, 0), len(lines) - _MOST_LINES)
        above = ["…"] if first else []
        below = ["…"] if first + _MOST_LINES < len(lines) else []
        lines = [*above, *lines[first : first + _MOST_LINES], *below]
    return _numbered(number, [place_and_paper(passage), *lines, passage.url])


def _numbered(number: int, lines: Sequence[str]) -> list[str]:
    """The lines that are not empty, those after the first indented as far as the number reaches."""
    first, *others = filter(None, lines)
    mark = f"[{number}] "
    return [f"{mark}{first}", *(f"{' ' * len(mark)}{line}" for line in others)]


def answer_notes(reply: Reply) -> Iterator[str]:
    """Notes beside the answer: why there is none, or that no paper supports it."""
    answer = reply.answer
    if not reply.system.retrieves:
        yield (
            f"{reply.system.name} reads no paper: this is what"
            f" {terminal_line(reply.model or '')} says by itself"
        )
    elif answer.abstained:
        yield f"searched for: {'; '.join(map(terminal_line, answer.queries)) or 'nothing'}"
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
    closest = dict(reply.closest_passages())
    document: dict[str, Any] = {
        "question": reply.question,
        "system": reply.system.name,
        "model": reply.model,
        "answer": answer.text,
        "abstained": answer.abstained,
        "sentences": [
            {"text": sentence.text, "claims": list(sentence.claims)}
            for sentence in answer.sentences
        ],
        "claims": [_claim_json(claim) for claim in answer.claims],
        "queries": list(answer.queries),
        "passages": [
            [_passage_json(passage, closest.get(passage)) for passage in hop]
            for hop in answer.shown
        ],
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


def _passage_json(passage: Passage, excerpt: Excerpt | None) -> dict[str, Any]:
    best = {"best_sentences": excerpt.best, "excerpt": excerpt.shown} if excerpt else {}
    return {
        **passage_trace(passage),
        "title": passage.title,
        "section_path": list(passage.section_path),
        "month": passage.month,
        "text": passage.text,
        "url": abstract_url(passage.arxiv_id),
        "passage_url": passage.url,
        **best,
    }
