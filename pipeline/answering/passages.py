"""The system without a model: facts from the tables, or the passages that a search ranks first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from pipeline.answering.answer import MOST_CLAIMS, grounded_answer, number_claims
from pipeline.answering.facts import (
    asks_only_for_facts,
    facets_of,
    fact_claims,
    named_papers,
    papers_by_title_or_rank,
    subject_words,
)
from pipeline.answering.front_matter import FrontMatterTables
from pipeline.answering.model_calls import StepLog, Tools
from pipeline.answering.question_words import names_in
from pipeline.answering.ranking import search
from pipeline.answering.retriever import distinct_passages, searchable
from pipeline.answering.system import AnsweringSystem
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import Answer, AnswerSentence, Passage
from pipeline.identity.identifiers import arxiv_ids_among_words
from pipeline.identity.titles import title_words
from pipeline.llm.messages import Spent

CLOSEST = "Closest passages; no model wrote an answer"
"""The text of an answer that only shows passages."""
MOST_PASSAGES, MOST_PAPERS = 5, 3
# Passages of a search, the first of which are shown.
_SEARCHED = 20


async def passages(question: UserQuestion, tools: Tools) -> Answer:
    """Facts from the tables if the question asks for some that they hold, else the passages that
    the search ranks first, without any claim.

    An arXiv id in the question limits the search to that paper. Names that no passage has come
    first in the text. It calls no model and never abstains. Raises as the retriever and the tables
    do.
    """
    steps = StepLog(tools.on_step)
    text = question.question
    absent: list[str] = []
    if tools.facts is not None:
        named = await tools.facts.papers_named_in(text)
        facts = await _facts(question, named, tools, tools.facts, steps)
        if facts is not None:
            return facts
        known = {word for name in named for word in title_words(name)}
        absent = await tools.facts.absent_names(
            [
                name
                for name in names_in(_without_ids(text))
                if not known.issuperset(title_words(name))
            ]
        )
    query = searchable(_without_ids(text) or text)
    ids = arxiv_ids_among_words(text)
    ranking = await search(tools, steps, query, papers=ids, most=_SEARCHED)
    if ids and not ranking:
        absent += ids
        ranking = await search(tools, steps, query, most=_SEARCHED)
    lines = [f"No paper here names {', '.join(absent)}"] if absent else []
    return Answer(
        text="\n".join([*lines, CLOSEST]),
        sentences=(),
        queries=(query,),
        shown=(tuple(first_passages(scored.item for scored in ranking)),),
        hops=1,
        trace={"steps": steps.steps},
    )


def first_passages(ranking: Iterable[Passage]) -> list[Passage]:
    """The first MOST_PASSAGES of those passages of a ranking that are of its first MOST_PAPERS
    papers.
    """
    papers: set[str] = set()
    first: list[Passage] = []
    for passage in ranking:
        if len(first) < MOST_PASSAGES and (passage.arxiv_id in papers or len(papers) < MOST_PAPERS):
            papers.add(passage.arxiv_id)
            first.append(passage)
    return first


async def _facts(
    question: UserQuestion,
    named: Mapping[str, Sequence[str]],
    tools: Tools,
    facts: FrontMatterTables,
    steps: StepLog,
) -> Answer | None:
    """The answer from the tables; None if the question asks for nothing that they hold.

    named: names of papers in the question → the papers of each.
    """
    text = question.question
    papers = named_papers(text, ()) or list(chain.from_iterable(named.values()))
    listed = await facts.list_papers(text, papers)
    if listed:
        steps.add("count", Spent(), text=" ".join(listed))
        return grounded_answer([AnswerSentence(line, ()) for line in listed], (), (), (), steps)
    if not facets_of(text):
        return None
    if not papers and question.history and asks_only_for_facts(text):
        papers = list(question.history[-1].papers[:1])
    papers = papers or await facts.papers_of_author(text)
    if not papers:
        # The paper of a question that names none in full, by a search for its subject.
        ranking = await search(tools, steps, searchable(subject_words(_without_ids(text))))
        papers = papers_by_title_or_rank(text, [scored.item for scored in ranking if scored.fits])
    claims = await fact_claims(facts, text, papers, MOST_CLAIMS)
    if not claims:
        return None
    steps.add("facts", Spent(), hop=1, claims=[claim.text for claim in claims])
    numbered = number_claims(claims, hop=1)
    sentences = [AnswerSentence(claim.text, (claim.number,)) for claim in numbered]
    shown = distinct_passages(claim.passage for claim in claims)
    return grounded_answer(sentences, numbered, [searchable(text)], [shown], steps)


def _without_ids(question: str) -> str:
    """A question without arXiv ids and addresses: as words they are in no passage."""
    return " ".join(word for word in question.split() if not arxiv_ids_among_words(word))


PASSAGES = AnsweringSystem(name="passages", calls_model=False, respond=passages, reads_facts=True)
