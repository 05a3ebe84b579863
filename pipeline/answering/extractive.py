"""Answers that no model writes: sentences and table cells of the corpus that fit the question best.

Questions on authors, affiliations, dates and categories are answered from tables. If the question
names a paper, or refers to the paper of the last answer, only that paper is searched. If no
quotation has the least score, the answer abstains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from pipeline.answering.answer import (
    MOST_CLAIMS,
    Answer,
    AnswerSentence,
    UnnumberedClaim,
    grounded_answer,
    number_claims,
)
from pipeline.answering.facts import (
    facets_of,
    fact_claims,
    named_papers,
    papers_by_title_or_rank,
    subject_words,
)
from pipeline.answering.model_calls import StepLog, Tools, passage_trace
from pipeline.answering.question_words import (
    AUTHORS,
    content_words,
    is_question,
    names_in,
)
from pipeline.answering.quotation_score import (
    LEAST_SCORE,
    LEAST_SCORE_OF_OTHERS,
    Similarities,
    score_quotations,
    token_similarities,
)
from pipeline.answering.quotations import Quotation, quotations_of
from pipeline.answering.ranking import search
from pipeline.answering.retriever import distinct_passages, searchable
from pipeline.answering.user_question import UserQuestion
from pipeline.arxiv.identifiers import arxiv_ids_among_words
from pipeline.arxiv.titles import title_words
from pipeline.corpus.passage import Passage
from pipeline.embedding.choice import make_embedder
from pipeline.index.paper_names import IN_BRACKETS, INTRODUCES, long_form
from pipeline.llm.messages import Spent

if TYPE_CHECKING:
    from pipeline.settings import Settings


MOST_QUOTES = 3
_PER_PASSAGE = 2
_MOST_OF_PAPER = 100
# If half of the first _TOP passages are of one paper, only that paper is read.
_TOP = 10
# A follow-up with one of these words refers to the paper of the last answer.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|his|her|the (?:paper|authors?))\b",
    re.IGNORECASE,
)
# Words of a question that its paper's abstract answers.
_OF_WHOLE_PAPER = frozenset({
    "abstract", "arxiv", "contribute", "contributes", "contribution", "contributions", "define",
    "definition", "describe", "describes", "explain", "goal", "idea", "introduce", "introduces",
    "key", "main", "mean", "means", "meaning", "one", "overview", "propose", "proposes", "purpose",
    "summarize", "summary", "tell",
})  # fmt: skip
# The paper before that of the last answer: "and the other one?"
_OTHER_PAPER = re.compile(
    r"\b(?:other|another|different)\s+(?:ones?|papers?|articles?|works?|stud(?:y|ies))\b",
    re.IGNORECASE,
)
_REPEATS = re.compile(
    r"(?:and |but )?(?:what|how) about\b|(?:and|but)\b(?! (?:what|how|who|when)\b)",
    re.IGNORECASE,
)
_ASKS_FOR_LONG_FORM = re.compile(r"\b(?:stands? for|short for|abbreviat\w+)\b", re.IGNORECASE)
# HullNet is a …; boats are a …
_DEFINES = re.compile(r"\b(?:is|are) (?:an?|the)\b")
# "What is a boat?", and nothing more about it
_ASKS_FOR_DEFINITION = re.compile(
    r"what(?: is|'s|’s| are)(?: meant by)? (?:an? |the )?([\w' ’-]{2,60})\?*"
    r"|what does ([\w' ’-]{2,60}) mean\?*|define ([\w' ’-]{2,60})\.*",
    re.IGNORECASE,
)
_MOST_DEFINITIONS = 2


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question.

    papers: arXiv ids of the papers that it names, else of the last answer's paper; none for all
    papers. names: its other proper names. is_whole_paper: whether it asks what these papers are
    about, and nothing else: "What is S2ORC?"
    """

    papers: tuple[str, ...]
    names: tuple[str, ...]
    is_whole_paper: bool = False


def similarities_of(settings: Settings) -> Similarities:
    """Similarities by MiniLM, on which the score was fitted, whatever model embeds the passages."""
    return partial(
        token_similarities, make_embedder(settings.model_copy(update={"embedder": "minilm"}))
    )


async def extractive(
    question: UserQuestion, tools: Tools, similarities: Similarities | None = None
) -> Answer:
    """The answer to a question in at most MOST_QUOTES quotations; it calls no model.

    similarities: by default those of MiniLM. Raises as the retriever and the tables do.
    """
    steps = StepLog(tools.on_step)
    question, subject = await resolve_follow_up(question, tools)
    if tools.facts is not None:
        listed = await tools.facts.list_papers(question.question, subject.papers)
        if listed is not None:
            steps.add("count", Spent(), text=" ".join(listed))
            return grounded_answer([AnswerSentence(text, ()) for text in listed], (), (), (), steps)
        if facets_of(question.question):
            return await _answer_by_facts(question, subject, tools, steps)
    query = search_query(question, subject)
    passages, may_fit = await passages_to_read(query, subject, tools, steps)
    quotes: list[Quotation] = []
    abstracts = [passage for passage in passages if passage.kind == "abstract"]
    if subject.is_whole_paper and abstracts:
        names = words_beside_ids(question.question) - _OF_WHOLE_PAPER
        quotes = distinct_quotes(introductions(abstracts, names))
    elif _ASKS_FOR_LONG_FORM.search(question.question):
        quotes = distinct_quotes(long_forms(question.question, passages))
    elif may_fit:
        similarities = similarities or similarities_of(tools.settings)
        ranked = choose_quotes(query, passages, similarities, subject.names)
        defining = definitions(query, passages)[:_MOST_DEFINITIONS]
        quotes = distinct_quotes([*defining, *ranked])
    sentences = [quote.display_text() for quote in quotes]
    steps.add(
        "quote",
        Spent(),
        hop=1,
        read=[passage_trace(passage) for passage in passages],
        quotes=sentences,
    )
    claims = [UnnumberedClaim(quote.text, quote.passage) for quote in quotes]
    return _answer_of(claims, sentences, query, passages, tools, steps)


async def subject_of(question: UserQuestion, tools: Tools) -> Subject:
    """The subject of a question. Raises as the tables do."""
    text = question.question
    papers_by_name: dict[str, list[str]] = {}
    if tools.facts is not None:
        papers_by_name = await tools.facts.papers_named_in(text)
    papers = named_papers(text, ())
    if not papers:
        papers = list(chain.from_iterable(papers_by_name.values()))
    if not papers:
        papers = _papers_pointed_at(question)
    if not papers and tools.facts is not None and AUTHORS.search(text):
        papers = await tools.facts.papers_of_author(text)
    words_of_papers = {word for name in papers_by_name for word in title_words(name)}
    other_names = []
    for name in names_in(AUTHORS.sub("they", text) if papers else text):
        if not words_of_papers.issuperset(title_words(name)):
            other_names.append(name)
    is_whole_paper = bool(papers) and words_beside_ids(text) <= words_of_papers | _OF_WHOLE_PAPER
    return Subject(tuple(dict.fromkeys(papers)), tuple(other_names), is_whole_paper)


async def resolve_follow_up(question: UserQuestion, tools: Tools) -> tuple[UserQuestion, Subject]:
    """A question and its subject. "And S2ORC?" asks the question before it, of another paper.

    Raises as the tables do.
    """
    subject = await subject_of(question, tools)
    if not (question.history and subject.is_whole_paper and _REPEATS.match(question.question)):
        return question, subject
    earlier = UserQuestion(question.history[-1].question, question.history[:-1])
    earlier, of_earlier = await resolve_follow_up(earlier, tools)
    return earlier, replace(subject, is_whole_paper=of_earlier.is_whole_paper)


def _papers_pointed_at(question: UserQuestion) -> list[str]:
    """The paper of the last answer that a follow-up refers to, or the other one before it."""
    answered = chain.from_iterable(turn.papers for turn in reversed(question.history))
    papers = list(dict.fromkeys(answered))
    if _OTHER_PAPER.search(question.question):
        return papers[1:2]
    return papers[:1] if _POINTS_BACK.search(question.question) else []


async def _answer_by_facts(
    question: UserQuestion, subject: Subject, tools: Tools, steps: StepLog
) -> Answer:
    """The answer to a question on authors, affiliations, dates or categories, from tables."""
    query = search_query(question, subject)
    papers: Sequence[str] = subject.papers
    passages: list[Passage] = []
    if not papers and tools.facts is not None:
        papers = await tools.facts.papers_of_author(question.question)
    if not papers:
        query = searchable(subject_words(query))
        candidates = await search(tools, steps, query)
        passages = [candidate.item for candidate in candidates]
        fitting = [candidate.item for candidate in candidates if candidate.fits]
        papers = papers_by_title_or_rank(question.question, fitting)
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
    """The question as a query. If it refers back, the previous question stands after it; only its
    names, if the paper of the last answer is the subject.
    """
    text = _without_ids(question.question) or question.question
    if question.history and _POINTS_BACK.search(text):
        previous = question.history[-1].question
        more = names_in(previous) if subject.papers else [previous]
        text = " ".join([text, *more])
    if subject.papers:
        # Their names are in few sentences of their papers.
        text = AUTHORS.sub("they", text)
    return searchable(text)


async def passages_to_read(
    query: str, subject: Subject, tools: Tools, steps: StepLog
) -> tuple[list[Passage], bool]:
    """The passages from which quotations are chosen, best first, and whether one may fit.

    They are those of the papers that the question names, else of the paper that half of the first
    passages are of, else of all papers.
    """
    papers: Sequence[str] = subject.papers
    may_fit = True
    if not papers:
        candidates = await search(tools, steps, query)
        passages = [candidate.item for candidate in candidates]
        fitting = [candidate.item for candidate in candidates[:_TOP] if candidate.fits]
        may_fit = any(candidate.fits for candidate in candidates)
        papers = _prevalent_paper(fitting or passages[:_TOP])
        if not papers:
            return passages, may_fit
    candidates = await search(tools, steps, query, papers=papers, most=_MOST_OF_PAPER * len(papers))
    return [candidate.item for candidate in candidates], may_fit


def _prevalent_paper(passages: Sequence[Passage]) -> list[str]:
    """The arXiv id of the paper of at least two and half of the passages; empty without one."""
    counts = Counter(passage.arxiv_id for passage in passages)
    if not counts:
        return []
    ((paper, count),) = counts.most_common(1)
    return [paper] if count > 1 and 2 * count >= counts.total() else []


def _hold_all_names(passages: Sequence[Passage], names: Sequence[str]) -> bool:
    """Whether each of these proper names stands in one of the passages, in any case."""
    words: set[str] = set()
    for passage in passages:
        words.update(title_words(f"{passage.heading()} {passage.content()}"))
    return all(words.issuperset(title_words(name)) for name in names)


def choose_quotes(
    question: str,
    passages: Sequence[Passage],
    similarities: Similarities,
    names: Sequence[str] = (),
) -> list[Quotation]:
    """The sentences and table cells of these passages that may answer a question, best first.

    names: proper names in the question. A question gets no quotation if one of the names is in no
    passage, or if the best score is below LEAST_SCORE, and the others only down to
    LEAST_SCORE_OF_OTHERS; a statement always gets some.
    """
    asks = is_question(question)
    if asks and not _hold_all_names(passages, names):
        return []
    scored = score_quotations(question, passages, similarities)
    words = set(title_words(question))
    scored = [(quote, score) for quote, score in scored if not quote.says_only(words)]
    if not scored:
        return []
    best_score = scored[0][1]
    if asks:
        if best_score < LEAST_SCORE:
            return []
        scored = [(quote, score) for quote, score in scored if score >= LEAST_SCORE_OF_OTHERS]
    return distinct_quotes(quote for quote, _ in scored)


def long_forms(question: str, passages: Sequence[Passage]) -> list[Quotation]:
    """The sentences that spell out an abbreviation of the question: "a recurrent hull (RH)"."""
    words = set(title_words(question))
    quotes = []
    for quote in chain.from_iterable(map(quotations_of, passages)):
        for bracket in IN_BRACKETS.finditer(quote.text):
            is_asked_for = words.issuperset(title_words(bracket[1]))
            if is_asked_for and long_form(bracket[1], quote.text[: bracket.start()]):
                quotes.append(quote)
    return quotes


def definitions(question: str, passages: Sequence[Passage]) -> list[Quotation]:
    """The sentences that spell out or define the term of a question, if it asks for nothing else:
    "a boat is a", "we call it a boat".
    """
    asked = _ASKS_FOR_DEFINITION.fullmatch(question)
    words = title_words(" ".join(filter(None, asked.groups()))) if asked else []
    if not words or set(words) - set(content_words(" ".join(words))):
        return []
    term = rf"{re.escape(' '.join(words))}s?"
    defines = re.compile(
        rf"\b{term} (?:(?:\w+ )?(?:is|are) (?:an?|the|defined)|refers? to|denotes?|posits?)\b"
        rf"|\b(?:define|call|term|name)(?:d|ed)?(?: it| this| these| them)?(?: an?| the)? {term}\b"
    )
    quotes = chain.from_iterable(map(quotations_of, passages))
    defining = [quote for quote in quotes if defines.search(" ".join(title_words(quote.text)))]
    return [*distinct_quotes(long_forms(question, passages)), *defining]


def words_beside_ids(question: str) -> set[str]:
    """The words of a question on its subject, without arXiv ids."""
    return set(content_words(_without_ids(question)))


def _without_ids(question: str) -> str:
    """A question without arXiv ids and addresses: as words they are in no sentence."""
    return " ".join(word for word in question.split() if not arxiv_ids_among_words(word))


def introductions(abstracts: Sequence[Passage], names: set[str]) -> list[Quotation]:
    """The sentences of each abstract from the one on that introduces the paper: the first that has
    all words of the names and says "we propose" or "is a", or else one of the two.
    """
    introductions: list[Quotation] = []
    for abstract in abstracts:
        quotes = [quote for quote in quotations_of(abstract) if len(quote.sentences) == 1]
        ranks = [_rank_of_introduction(quote.text, names) for quote in quotes]
        start = ranks.index(max(ranks)) if ranks else 0
        introductions += quotes[start:]
    return introductions


def _rank_of_introduction(sentence: str, names: set[str]) -> int:
    """How many of two marks of an introduction a sentence has: the names, and a verb for them."""
    defined = _DEFINES.search(sentence)
    defines = defined and names and names.issubset(title_words(sentence[: defined.start()]))
    says_so = bool(defines or INTRODUCES.search(sentence))
    return names.issubset(title_words(sentence)) + says_so


def distinct_quotes(ranked: Iterable[Quotation]) -> list[Quotation]:
    """The first MOST_QUOTES quotations without repetitions, at most _PER_PASSAGE of a passage;
    those that lack a citation only if no other is left.
    """
    quotes = list(ranked)
    chosen: list[Quotation] = []
    for quote in [quote for quote in quotes if not quote.has_hole()] or quotes:
        of_passage = sum(other.passage == quote.passage for other in chosen)
        if of_passage < _PER_PASSAGE and not any(map(quote.repeats, chosen)):
            chosen.append(quote)
        if len(chosen) == MOST_QUOTES:
            break
    return chosen
