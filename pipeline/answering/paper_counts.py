"""Counts of papers from the tables: all, of an author, of a year, citing a paper."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.answering.retriever import MonthSpan
from pipeline.arxiv.identifiers import month_of
from pipeline.corpus.paper_index import find_papers, paper_index
from pipeline.corpus.references.citation_index import read_citing_papers
from pipeline.engine.stage import Workspace
from pipeline.text import number_of

_MOST_COUNTED = 100_000
_PAPERS = r"\bhow many (?:\w+ )?(?:papers|articles|publications|preprints)\b"
_CITING = re.compile(rf"{_PAPERS}[^?]{{0,199}}\bcit(?:e|es|ed|ing)\b", re.IGNORECASE)
_PERSON = r"(?P<name>(?:[A-Z][\w.'’-]*\s+){1,3}[A-Z][\w'’-]+)"
_BY_AUTHOR = re.compile(rf"(?i:{_PAPERS}[^?]{{0,199}}?\b(?:did|has|have|by|of|from))\s+{_PERSON}")
_NAME_OF_PERSON = re.compile(rf"(?<=\s){_PERSON}")
_IN_CORPUS = re.compile(
    rf"{_PAPERS}[^?]{{0,199}}"
    r"(?:\b(?:corpus|collection|index|data root)\b|\bare there\b|\bdo you\b)",
    re.IGNORECASE,
)
_ON_SUBJECT = re.compile(
    rf"{_PAPERS}\s+(?:\w+\s+)?(?:about|on|mention|use|discuss|stud|propos|deal|treat"
    r"|cover|address)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def count_papers(
    workspace: Workspace, span: MonthSpan, question: str, papers: Sequence[str]
) -> str | None:
    """A sentence with the number of papers that a question asks for.

    None for a question that asks for no such number; empty if the tables do not hold the number,
    as for papers on a subject. papers: arXiv ids of the papers that the question names. Raises as
    the indexes of the tables do.
    """
    if _CITING.search(question):
        sentences = []
        for paper in papers:
            citing = read_citing_papers(workspace, paper)
            count = sum(span.holds(citing_paper.month) for citing_paper in citing)
            verb = "cites" if count == 1 else "cite"
            sentences.append(f"{number_of(count, 'paper')} of this corpus {verb} arXiv:{paper}.")
        return " ".join(sentences)
    if papers:
        return None
    author = _BY_AUTHOR.search(question)
    if author is not None:
        by_author = find_papers(workspace, author=author["name"], limit=_MOST_COUNTED)
        count = _count_in_span([paper.arxiv_id for paper in by_author], span)
        verb = "has" if count == 1 else "have"
        subject = f"{number_of(count, 'paper')} of this corpus"
        return f"{subject} {verb} {author['name']} among the authors."
    if _ON_SUBJECT.search(question):
        return ""
    if not _IN_CORPUS.search(question):
        return None
    year = _YEAR.search(question)
    if year is not None:
        of_year = find_papers(workspace, year=int(year[0]), limit=_MOST_COUNTED)
        count = _count_in_span([paper.arxiv_id for paper in of_year], span)
        return f"This corpus holds {number_of(count, 'paper')} of {year[0]}."
    with paper_index(workspace).open() as connection:
        ids = [row[0] for row in connection.execute("select arxiv_id from papers")]
    return f"This corpus holds {number_of(_count_in_span(ids, span), 'paper')}."


def papers_of_author(workspace: Workspace, span: MonthSpan, question: str) -> list[str]:
    """The papers of the first author whom a question names in full, newest months first.

    Raises as the index of papers does.
    """
    for match in _NAME_OF_PERSON.finditer(question):
        papers = find_papers(workspace, author=match["name"], limit=_MOST_COUNTED)
        if papers:
            ids = [paper.arxiv_id for paper in papers]
            return [arxiv_id for arxiv_id in ids if span.holds(month_of(arxiv_id) or "")]
    return []


def _count_in_span(arxiv_ids: Sequence[str], span: MonthSpan) -> int:
    return sum(span.holds(month_of(arxiv_id) or "") for arxiv_id in arxiv_ids)
