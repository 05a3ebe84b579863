"""The system without a model: records of the papers that a question names, and the passages that a
search ranks first.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.answering.model_calls import StepLog, Tools
from pipeline.answering.ranking import find_records, search
from pipeline.answering.retriever import searchable
from pipeline.answering.system import AnsweringSystem
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import Answer, Passage
from pipeline.identity.identifiers import arxiv_ids_among_words
from pipeline.index.scored import NOTHING_FITS

CLOSEST = "Closest passages; no model wrote an answer"
"""The text of an answer that only shows passages."""
WITH_RECORDS = "Papers that the question names, then the closest passages; no model wrote an answer"
"""The text where records come first."""
MOST_PASSAGES, MOST_PAPERS = 5, 3
# Passages of a search, the first of which are shown.
_SEARCHED = 20


async def passages(question: UserQuestion, tools: Tools) -> Answer:
    """The records of papers and authors that the question names, then the passages that the search
    ranks first, without any claim.

    An arXiv id in the question limits the search to that paper. It calls no model and never
    abstains; a note says that nothing fits. Raises as the retriever does.
    """
    steps = StepLog(tools.on_step)
    text = question.question
    records = await find_records(tools, steps, text)
    ids = arxiv_ids_among_words(text)
    # As words, arXiv ids and addresses are in no passage.
    words = " ".join(word for word in text.split() if not arxiv_ids_among_words(word))
    query = searchable(words or text)
    without = {record.passage_id for record in records}
    ranking = await search(tools, steps, query, without=without, papers=ids, most=_SEARCHED)
    lines = [WITH_RECORDS if records else CLOSEST]
    if ids and not records and not ranking:
        lines = [f"No paper here is {', '.join(ids)}", CLOSEST]
        ranking = await search(tools, steps, query, most=_SEARCHED)
    fits = bool(records) or any(scored.fits for scored in ranking)
    return Answer(
        text="\n".join(lines),
        sentences=(),
        queries=(query,),
        shown=((*records, *first_passages(scored.item for scored in ranking)),),
        hops=1,
        fits=fits,
        note="" if fits else NOTHING_FITS,
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


PASSAGES = AnsweringSystem(name="passages", calls_model=False, answer=passages, reads_records=True)
