"""Answers that no model writes: sentences and table cells of the corpus that fit the question best.

The kind of a question decides what may answer it (`question_kinds`). Questions on authors,
affiliations, dates and categories are answered from tables. If the question names a paper, or
refers to the paper of the last answer, only that paper is searched. If nothing fits, the answer
abstains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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
    papers_by_title_or_rank,
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
# Evidence of a quotation: its mean cosine with the question, alone and below its section's heading;
# plus the shares of the question's words that it and its passage have, times _COVERAGE and
# _COVERAGE_OF_PASSAGE; minus its passage's place in the ranking, 0 to 1, times _RANK; plus its
# weight for the kind of question. Nothing below _LEAST_EVIDENCE is quoted, and nothing more than
# _BEHIND below the best. Fitted on the questions of `benchmarks.real_papers`. For statements
# passages and their places do not count: of 70 claims of SciFact one more has a rationale sentence.
_COVERAGE, _COVERAGE_OF_PASSAGE, _RANK = 0.4, 0.2, 0.1
_LEAST_EVIDENCE, _BEHIND, _BEHIND_OF_STATEMENT = 0.5, 0.35, 0.25
_PER_PASSAGE = 2
# Cosines are computed only of the candidates with the most words of the question.
_MOST_COMPARED = 60
_MOST_OF_PAPER = 100
# If half of the first _TOP passages are of one paper, only that paper is read.
_TOP = 10
# A follow-up with one of these words refers to the paper of the last answer.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|his|her|the (?:paper|authors?))\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(r"\b(?:other|another|else|different)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question.

    papers: arXiv ids of the papers that it names, else of the last answer's paper; none for all
    papers. names: its other proper names.
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
    papers_by_name: dict[str, list[str]] = {}
    if tools.facts is not None:
        papers_by_name = await tools.facts.papers_named_in(text)
    words_of_papers = {word for name in papers_by_name for word in title_words(name)}
    names = [name for name in names_in(text) if not words_of_papers.issuperset(title_words(name))]
    papers = named_papers(text, ())
    if not papers:
        papers = list(chain.from_iterable(papers_by_name.values()))
    if not papers and _POINTS_BACK.search(text) and not _OTHERS.search(text):
        for turn in question.history:
            if turn.papers:
                papers = [turn.papers[0]]
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
        candidates = await search(tools, steps, query)
        passages = [candidate.item for candidate in candidates if candidate.fits]
        papers = papers_by_title_or_rank(question.question, passages)
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
    """An answer with one sentence for each claim.

    texts: the sentences. passages: the passages that were read, best first.
    """
    numbered = number_claims(claims, hop=1)
    sentences = [
        AnswerSentence(text, (claim.number,)) for text, claim in zip(texts, numbered, strict=True)
    ]
    first = passages[: tools.settings.answer_passages]
    shown = distinct_passages([*(claim.passage for claim in claims), *first])
    return grounded_answer(sentences, numbered, [query], [shown], steps)


def search_query(question: UserQuestion, subject: Subject) -> str:
    """The question as a query; after it the previous question, if it refers back to that and has
    no paper as its subject.
    """
    if question.history and not subject.papers and _POINTS_BACK.search(question.question):
        return searchable(f"{question.question} {question.history[-1].question}")
    return searchable(question.question)


async def _passages_to_read(
    query: str, subject: Subject, tools: Tools, steps: StepLog
) -> list[Passage]:
    """The passages from which quotations are chosen, best first: those of the papers that the
    question names, else of the paper that half of the first passages are of, else of all papers.
    """
    papers: Sequence[str] = subject.papers
    if not papers:
        candidates = await search(tools, steps, query)
        relevant = [candidate.item for candidate in candidates if candidate.fits]
        papers = _prevalent_paper(relevant[:_TOP])
        if not papers:
            # Where a quotation must have some evidence, many passages do no harm.
            if kind_of(query).evidence:
                return relevant
            return relevant[: tools.settings.answer_passages]
    candidates = await search(tools, steps, query, papers=papers, most=_MOST_OF_PAPER * len(papers))
    return [candidate.item for candidate in candidates]


def _prevalent_paper(passages: Sequence[Passage]) -> list[str]:
    """The arXiv id of the paper of at least two and half of the passages; empty without one."""
    counts = Counter(passage.arxiv_id for passage in passages)
    for paper, count in counts.most_common(1):
        if count > 1 and 2 * count >= counts.total():
            return [paper]
    return []


def choose_quotes(
    question: str, passages: Sequence[Passage], cosines: Cosines, names: Sequence[str] = ()
) -> list[Quotation]:
    """The sentences and table cells of these passages that may answer a question, best first.

    names: proper names that an answer must have.
    """
    fit = AnswerFit(question, passages, names)
    candidates = _candidates(fit, passages)
    if not candidates:
        return []
    shares = fit.shares_of_words(candidates)
    ranks = {passage.passage_id: rank for rank, passage in enumerate(passages)}
    merits = []
    for (own, of_passage), quote in zip(shares, candidates, strict=True):
        merit = _COVERAGE * own + _COVERAGE_OF_PASSAGE * of_passage + fit.weight(quote)
        if fit.kind != STATEMENT:
            merit -= _RANK * ranks[quote.passage.passage_id] / len(passages)
        merits.append(merit)
    # Places among the candidates; of equals the first is better.
    by_merit = sorted(range(len(candidates)), key=lambda place: -merits[place])
    places = sorted(by_merit[:_MOST_COMPARED])
    question_and_example = f"{question} {fit.kind.example}".strip()
    alone = [candidates[place].compared() for place in places]
    headed = [candidates[place].headed() for place in places]
    close = cosines(question_and_example, [*alone, *headed])
    evidence = {}
    for number, place in enumerate(places):
        mean_cosine = float(close[number] + close[number + len(places)]) / 2
        evidence[place] = mean_cosine + merits[place]
    by_evidence = sorted(places, key=lambda place: -evidence[place])
    best = evidence[by_evidence[0]]
    least = max(best - _BEHIND, _LEAST_EVIDENCE)
    if fit.kind == STATEMENT:
        least = best - _BEHIND_OF_STATEMENT
    return _distinct_quotes(
        [candidates[place] for place in by_evidence if evidence[place] >= least]
    )


def _candidates(fit: AnswerFit, passages: Sequence[Passage]) -> list[Quotation]:
    """The quotations that may answer, in the order of the passages: of each sentence the shortest
    reading. If passages are of the best sections for the question, only these are read.
    """
    best_sections = [passage for passage in passages if in_best_section(fit.kind, passage)]
    candidates = []
    for passage in best_sections or passages:
        for readings in _quotations(passage, fit.kind):
            reading = next(filter(fit.may_answer, readings), None)
            if reading is not None:
                candidates.append(reading)
    return candidates


def _quotations(passage: Passage, kind: QuestionKind) -> Iterator[tuple[Quotation, ...]]:
    """The readings of each quotation of a passage, the shortest first."""
    yield from quotable_sentences(passage)
    if kind.reads_tables:
        yield from ((cell,) for cell in table_cells(passage))
    if kind.is_list:
        yield from ((whole,) for whole in whole_list(passage))
    if kind.reads_labels:
        yield from ((labels,) for labels in table_labels(passage))


def _distinct_quotes(ranked: Sequence[Quotation]) -> list[Quotation]:
    """The first MOST_QUOTES quotations without repetitions, at most _PER_PASSAGE of a passage.

    A sentence that refers to a quoted one is quoted with it.
    """
    chosen: list[Quotation] = []
    for quote in ranked:
        continued = next(filter(quote.continues, chosen), None)
        if continued is not None:
            chosen[chosen.index(continued)] = quote
            continue
        of_passage = sum(other.passage == quote.passage for other in chosen)
        fits = len(chosen) < MOST_QUOTES and of_passage < _PER_PASSAGE
        if fits and not any(map(quote.repeats, chosen)):
            chosen.append(quote)
    return chosen
