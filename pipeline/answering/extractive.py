"""Answers that no model writes: the sentences of the best passages that fit the question best.

Questions on authors, affiliations, dates and categories are answered from tables. Where search
finds no passage that fits the question (`pipeline.index.relevance`), the answer is that the corpus
does not hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.answering.answer import (
    MOST_CLAIMS,
    Answer,
    AnswerSentence,
    UnnumberedClaim,
    grounded_answer,
    number_claims,
)
from pipeline.answering.facts import fact_claims
from pipeline.answering.model_calls import StepLog, Tools, passage_trace
from pipeline.answering.ranking import search
from pipeline.answering.retriever import distinct_passages, searchable
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.passage import Passage
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.embedding.choice import make_embedder
from pipeline.index.relevance import coverage
from pipeline.llm.messages import Spent
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder


Cosines = Callable[[str, Sequence[str]], Sequence[float]]
"""A question and texts → the cosine of each text's vector with the question's."""

MOST_QUOTES = 3
# A sentence this much below the best says something else. Evidence is a cosine plus a share of
# words, as for passages.
_BEHIND, _COVERAGE = 0.15, 0.4
_PER_PASSAGE = 2
# Rows of a table are no sentences; shorter sentences are headings and labels.
_QUOTABLE_KINDS = frozenset({"abstract", "paragraph", "list", "caption", "theorem"})
_FEWEST_WORDS, _MOST_WORDS = 5, 80
# Begins by pointing at the sentence before it, which is quoted along.
_LEANS_BACK = re.compile(
    r"(?:this|these|those|that|such|it|its|they|their|he|she|here|however|thus|hence|therefore|moreover|furthermore|then"
    r"|also|instead|as a result|for (?:example|instance)|both|the (?:former|latter))\b",
    re.IGNORECASE,
)
# A follow-up that does not name its subject is searched for with the question before it.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|his|her)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a passage, or two where the second leans on the first."""

    text: str
    passage: Passage


def cosines_of(embedder: Embedder) -> Cosines:
    """Cosines by an embedding model, which reads texts as queries: that spares torch's start."""

    def cosines(question: str, texts: Sequence[str]) -> list[float]:
        first, *others = embedder.encode_queries([question, *texts])
        return [float(first.dense @ other.dense) for other in others]

    return cosines


async def extractive(
    question: UserQuestion, tools: Tools, cosines: Cosines | None = None
) -> Answer:
    """The answer to a question in at most MOST_QUOTES quotations; it calls no model.

    cosines: by default those of the embedding model of the settings. Raises as the retriever and
    the tables do.
    """
    steps = StepLog(tools.on_step)
    query = search_query(question)
    candidates = await search(tools, steps, query)
    relevant = [candidate.item for candidate in candidates if candidate.fits]
    most_read = tools.settings.answer_passages
    claims = await fact_claims(tools.facts, question.question, relevant, MOST_CLAIMS)
    if claims:
        texts = [claim.text for claim in claims]
        steps.add("facts", Spent(), hop=1, claims=texts)
    else:
        best = [passage for passage in relevant if passage.kind in _QUOTABLE_KINDS][:most_read]
        quotes = choose_quotes(query, best, cosines or cosines_of(make_embedder(tools.settings)))
        claims = [UnnumberedClaim(quote.text, quote.passage) for quote in quotes]
        texts = [f"“{quote.text}”" for quote in quotes]
        steps.add(
            "quote",
            Spent(),
            hop=1,
            read=[passage_trace(passage) for passage in best],
            quotes=[quote.text for quote in quotes],
        )
    passages = distinct_passages([*(claim.passage for claim in claims), *relevant[:most_read]])
    numbered = number_claims(claims, hop=1)
    sentences = [
        AnswerSentence(text, (claim.number,)) for text, claim in zip(texts, numbered, strict=True)
    ]
    return grounded_answer(sentences, numbered, [query], [passages], steps)


def search_query(question: UserQuestion) -> str:
    """The question as a query, with the question before it if it refers to that."""
    if question.history and _POINTS_BACK.search(question.question):
        return searchable(f"{question.question} {question.history[-1].question}")
    return searchable(question.question)


def choose_quotes(question: str, passages: Sequence[Passage], cosines: Cosines) -> list[Quote]:
    """The sentences of these passages that fit a question best, best first."""
    candidates = [quote for passage in passages for quote in _quotes(passage)]
    if not candidates:
        return []
    close = cosines(question, [quote.text for quote in candidates])
    evidence = [
        float(cosine) + _COVERAGE * coverage(question, f"{quote.passage.title} {quote.text}")
        for quote, cosine in zip(candidates, close, strict=True)
    ]
    ranked = sorted(range(len(candidates)), key=lambda place: (-evidence[place], place))
    chosen: list[Quote] = []
    for place in ranked:
        quote = candidates[place]
        if len(chosen) == MOST_QUOTES or evidence[place] < evidence[ranked[0]] - _BEHIND:
            break
        beside = [other for other in chosen if other.passage == quote.passage]
        repeated = any(quote.text in other.text or other.text in quote.text for other in chosen)
        if len(beside) < _PER_PASSAGE and not repeated:
            chosen.append(quote)
    return chosen


def _quotes(passage: Passage) -> Iterator[Quote]:
    before = ""
    for sentence in split_sentences(passage.content()):
        text = one_line(sentence)
        whole = f"{before} {text}" if before and _LEANS_BACK.match(text) else text
        if _FEWEST_WORDS <= len(whole.split()) <= _MOST_WORDS:
            yield Quote(whole, passage)
        before = text
