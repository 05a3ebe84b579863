"""Answers that no model writes: sentences and table cells of the corpus that fit the question best.

What a question asks for decides what may answer it (`question_kinds`). Questions on authors,
affiliations, dates and categories are answered from tables. A paper that the question names, or
that the last answer of the conversation was about, is searched alone. Where nothing fits, the
answer is that the corpus does not hold it.
"""

from __future__ import annotations

import re
from collections import Counter
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
    plain_answer,
)
from pipeline.answering.answer_fit import AnswerFit, in_best_section
from pipeline.answering.facts import (
    facets_of,
    fact_claims,
    named_papers,
    papers_meant,
    subject_words,
)
from pipeline.answering.model_calls import StepLog, Tools, passage_trace
from pipeline.answering.question_kinds import STATEMENT, QuestionKind, kind_of, names_in
from pipeline.answering.quotations import (
    Quotation,
    quotable_sentences,
    table_cells,
    table_labels,
    whole_list,
)
from pipeline.answering.ranking import search
from pipeline.answering.retriever import distinct_passages, searchable
from pipeline.answering.user_question import UserQuestion
from pipeline.arxiv.titles import title_words
from pipeline.corpus.passage import Passage
from pipeline.embedding.choice import make_embedder
from pipeline.llm.messages import Spent

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder


Cosines = Callable[[str, Sequence[str]], Sequence[float]]
"""A question and texts → the cosine of each text's vector with the question's."""

MOST_QUOTES = 3
# Evidence is a cosine plus a share of words, as for passages, plus what the kind of question adds.
# Less than the least answers nothing; what is this much below the best says something else.
_COVERAGE = 0.4
_LEAST_EVIDENCE, _BEHIND = 0.5, 0.25
_PER_PASSAGE = 2
# Those with the most words of the question are compared with it by the model.
_MOST_COMPARED = 60
_MOST_OF_PAPER = 100
# If half of so many passages are of one paper, the question is about it.
_TOP = 10
# A follow-up that does not name its subject is about that of the answer before it.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|his|her|the (?:paper|authors?))\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(r"\b(?:other|another|else|different)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about. papers: arXiv ids of those that it names, or that the last answer
    was about; none for all papers. names: other proper names in it.
    """

    papers: tuple[str, ...]
    names: tuple[str, ...]


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
    subject = await _subject_of(question, tools)
    if tools.facts is not None:
        count = await tools.facts.count_papers(question.question, subject.papers)
        if count is not None:
            steps.add("count", Spent(), text=count)
            return plain_answer(count, steps)
        if facets_of(question.question):
            return await _answer_by_facts(question, subject, tools, steps)
    query = search_query(question, subject)
    passages = await _passages_to_read(query, subject, tools, steps)
    quotes = choose_quotes(
        query, passages, cosines or cosines_of(make_embedder(tools.settings)), subject.names
    )
    steps.add(
        "quote",
        Spent(),
        hop=1,
        read=[passage_trace(passage) for passage in passages],
        quotes=[quote.shown() for quote in quotes],
    )
    claims = [UnnumberedClaim(quote.text, quote.passage) for quote in quotes]
    return _answer_of(claims, [quote.shown() for quote in quotes], query, passages, tools, steps)


async def _subject_of(question: UserQuestion, tools: Tools) -> Subject:
    text = question.question
    named = {} if tools.facts is None else await tools.facts.papers_named_in(text)
    of_papers = {word for name in named for word in title_words(name)}
    names = [name for name in names_in(text) if not set(title_words(name)) <= of_papers]
    papers = named_papers(text, ()) or [paper for found in named.values() for paper in found]
    if not papers and _POINTS_BACK.search(text) and not _OTHERS.search(text):
        answered = [turn.papers for turn in question.history if turn.papers]
        papers = list(answered[-1][:1]) if answered else []
    return Subject(tuple(dict.fromkeys(papers)), tuple(names))


async def _answer_by_facts(
    question: UserQuestion, subject: Subject, tools: Tools, steps: StepLog
) -> Answer:
    """The answer to a question on authors, affiliations, dates or categories, from tables."""
    query = search_query(question, subject)
    papers: Sequence[str] = subject.papers
    passages: list[Passage] = []
    if not papers:
        query = searchable(subject_words(query))
        found = await search(tools, steps, query)
        passages = [candidate.item for candidate in found if candidate.fits]
        papers = papers_meant(question.question, passages)
    claims = await fact_claims(tools.facts, question.question, papers, MOST_CLAIMS)
    texts = [claim.text for claim in claims]
    steps.add("facts", Spent(), hop=1, claims=texts)
    return _answer_of(claims, texts, query, passages, tools, steps)


def _answer_of(
    claims: Sequence[UnnumberedClaim],
    texts: Sequence[str],
    query: str,
    passages: Sequence[Passage],
    tools: Tools,
    steps: StepLog,
) -> Answer:
    """An answer with a sentence for each claim. passages: those read, best first."""
    numbered = number_claims(claims, hop=1)
    sentences = [
        AnswerSentence(text, (claim.number,)) for text, claim in zip(texts, numbered, strict=True)
    ]
    first = passages[: tools.settings.answer_passages]
    shown = distinct_passages([*(claim.passage for claim in claims), *first])
    return grounded_answer(sentences, numbered, [query], [shown], steps)


def search_query(question: UserQuestion, subject: Subject) -> str:
    """The question as a query, with the question before it if it refers to that and no paper is
    known.
    """
    if question.history and not subject.papers and _POINTS_BACK.search(question.question):
        return searchable(f"{question.question} {question.history[-1].question}")
    return searchable(question.question)


async def _passages_to_read(
    query: str, subject: Subject, tools: Tools, steps: StepLog
) -> list[Passage]:
    """The passages of which sentences are chosen, best first: those of the paper that the question
    names, or that most of the best ones are of; or else the best ones of all papers.
    """
    papers: Sequence[str] = subject.papers
    if not papers:
        found = await search(tools, steps, query)
        relevant = [candidate.item for candidate in found if candidate.fits]
        counts = Counter(passage.arxiv_id for passage in relevant[:_TOP])
        papers = [
            paper
            for paper, count in counts.most_common(1)
            if count > 1 and 2 * count >= counts.total()
        ]
    if not papers:
        # Where a sentence has to have what is asked for, many passages do no harm.
        most_read = len(relevant) if kind_of(query).evidence else tools.settings.answer_passages
        return relevant[:most_read]
    found = await search(tools, steps, query, papers=papers, most=_MOST_OF_PAPER * len(papers))
    return [candidate.item for candidate in found]


def choose_quotes(
    question: str, passages: Sequence[Passage], cosines: Cosines, names: Sequence[str] = ()
) -> list[Quotation]:
    """The sentences and table cells of these passages that may answer a question, best first.

    names: which an answer has to have.
    """
    fit = AnswerFit(question, names)
    candidates = []
    best_sections = [passage for passage in passages if in_best_section(fit.kind, passage)]
    for passage in best_sections or passages:
        for readings in _quotations(passage, fit.kind):
            candidates += [quote for quote in readings if fit.may_answer(quote)][:1]
    shares = fit.shares_of_words(candidates)
    merits = [
        _COVERAGE * share + fit.weight(quote)
        for share, quote in zip(shares, candidates, strict=True)
    ]
    order = sorted(range(len(candidates)), key=lambda place: (-merits[place], place))
    compared = sorted(order[:_MOST_COMPARED])
    if not compared:
        return []
    asked = f"{question} {fit.kind.example}".strip()
    close = cosines(asked, [candidates[place].compared() for place in compared])
    evidence = {
        place: float(cosine) + merits[place] for place, cosine in zip(compared, close, strict=True)
    }
    ranked = sorted(compared, key=lambda place: (-evidence[place], place))
    least = evidence[ranked[0]] - _BEHIND
    if fit.kind != STATEMENT:
        least = max(least, _LEAST_EVIDENCE)
    chosen: list[Quotation] = []
    for place in ranked:
        quote = candidates[place]
        if len(chosen) == MOST_QUOTES or evidence[place] < least:
            break
        beside = [other for other in chosen if other.passage == quote.passage]
        if len(beside) < _PER_PASSAGE and not any(map(quote.repeats, chosen)):
            chosen.append(quote)
    return chosen


def _quotations(passage: Passage, kind: QuestionKind) -> Iterator[tuple[Quotation, ...]]:
    """What may be quoted of a passage: each in several readings, the shortest first."""
    yield from quotable_sentences(passage)
    if kind.reads_tables:
        yield from ((cell,) for cell in table_cells(passage))
    if kind.is_list:
        yield from ((each,) for each in whole_list(passage))
    if kind.reads_labels:
        yield from ((labels,) for labels in table_labels(passage))
