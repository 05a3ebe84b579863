"""Counts and lists of papers from the tables: all, of an author, of a year, citing a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.answering.question_words import AUTHORS
from pipeline.answering.retriever import MonthSpan
from pipeline.corpus.paper_index import find_papers, ids_of_year, papers_with_ids
from pipeline.corpus.references.citation_index import read_citing_papers
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.identity.identifiers import month_of
from pipeline.identity.titles import title_words
from pipeline.text import number_of, one_line

_MOST_LISTED = 20
_NOUNS = r"(?:papers|articles|publications|preprints)"
_HOW_MANY_PAPERS = rf"\bhow many (?:\w+ )?{_NOUNS}"
# "Which papers …", "list the papers …", and "papers by …" as a whole question.
_PAPERS = (
    rf"(?:{_HOW_MANY_PAPERS}|\b(?:which|what|list|show|name)(?: \w+){{0,3}} {_NOUNS}"
    rf"|^\W*(?:all )?{_NOUNS})"
)
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
# Not "which papers does it cite?", which asks for references.
_CITING = re.compile(
    rf"{_PAPERS}(?![^?]{{0,199}}\b(?:do|does|did)\b)[^?]{{0,199}}\bcit(?:e|es|ed|ing)\b",
    re.IGNORECASE,
)
_PERSON = r"(?P<name>(?:[A-Z][\w.'’-]*\s+){1,3}[A-Z][\w'’-]+)"
_BY_PERSON = re.compile(rf"(?i:{_PAPERS}[^?]{{0,199}}?\b(?:did|has|have|by|of|from))\s+{_PERSON}")
# Also a family name alone: "what did Lovelace write?", "papers by lovelace".
_BY_NAME = re.compile(
    r"\b(?:what|which)\b[^?]{0,60}\b(?:did|has|have)\s++(?P<subject>[^?]{2,60}?)\s+"
    r"(?:write|written|publish|published|author|authored)\b"
    rf"|{_PAPERS} (?:written |published )?(?:by|of|from)\s++(?P<agent>[^?]{{2,60}}?)\W*$",
    re.IGNORECASE,
)
_NAME_OF_PERSON = re.compile(rf"(?<=\s){_PERSON}")
# "… are there", "… does this corpus hold", "… are from 2024", and nothing more.
_OF_CORPUS_WORDS = (
    r"(?: (?:are|is|were|was|do|does|there|you|have|hold|contain|in|from|of|the|this|your|our|all"
    r"|corpus|collection|index|published))*"
)
_OF_CORPUS = re.compile(
    rf"{_PAPERS}{_OF_CORPUS_WORDS}(?: (?P<year>(?:19|20)\d\d)\b{_OF_CORPUS_WORDS})?\W*$",
    re.IGNORECASE,
)
_HOW_MANY_ON_SUBJECT = re.compile(
    rf"{_HOW_MANY_PAPERS}\s+(?:are there\s+)?(?:\w+\s+)?(?:about|on|mention|use|discuss|stud"
    r"|propos|deal|treat|cover|address)",
    re.IGNORECASE,
)


def list_papers(
    workspace: Workspace, span: MonthSpan, question: str, papers: Sequence[str]
) -> list[str] | None:
    """Sentences with the number of papers that a question asks for, and with the newest of them
    where it does not ask how many.

    None for a question that asks for no such papers; none if the tables do not hold the number, as
    for papers on a subject. papers: arXiv ids of the papers that the question names. Raises as the
    indexes of the tables do.
    """
    if _CITING.search(question):
        sentences = []
        for paper in papers:
            citing = [citing.paper.arxiv_id for citing in read_citing_papers(workspace, paper)]
            found = _in_span(reversed(citing), span)
            verb = "cites" if len(found) == 1 else "cite"
            predicate = f"of this corpus {verb} arXiv:{paper}"
            sentences.append(_sentence(workspace, question, found, predicate))
        return sentences
    if papers:
        return None
    author = _author_asked_for(workspace, question)
    if author is not None:
        by_author = find_papers(workspace, author=author, limit=None)
        found = _in_span([paper.arxiv_id for paper in by_author], span)
        verb = "has" if len(found) == 1 else "have"
        predicate = f"of this corpus {verb} {author} among the authors"
        return [_sentence(workspace, question, found, predicate)]
    if _HOW_MANY_ON_SUBJECT.search(question):
        return []
    of_corpus = _OF_CORPUS.search(question)
    if of_corpus is None:
        return None
    year = int(of_corpus["year"]) if of_corpus["year"] else None
    found = _in_span(ids_of_year(workspace, year), span)
    verb = "is" if len(found) == 1 else "are"
    predicate = f"of this corpus {verb} of {year}" if year else f"{verb} in this corpus"
    return [_sentence(workspace, question, found, predicate)]


def _sentence(workspace: Workspace, question: str, arxiv_ids: Sequence[str], predicate: str) -> str:
    """How many papers there are of which the predicate is true; which, unless a question asks for
    their number alone.

    arxiv_ids: newest first.
    """
    subject = f"{number_of(len(arxiv_ids), 'paper')} {predicate}"
    if not arxiv_ids or _HOW_MANY.search(question):
        return f"{subject}."
    listed = arxiv_ids[:_MOST_LISTED]
    papers = papers_with_ids(workspace, listed)
    titles = [
        f'"{one_line(papers[each].title)}" (arXiv:{each})' for each in listed if each in papers
    ]
    more = len(arxiv_ids) - len(listed)
    return f"{subject}: {', '.join(titles)}{f', and {more:,} others' if more else ''}."


def papers_of_author(workspace: Workspace, span: MonthSpan, question: str) -> list[str]:
    """The papers of the first author whom a question names in full, or of those whom it
    names as "Quill et al."; newest months first.

    Raises as the index of papers does.
    """
    for match in _NAME_OF_PERSON.finditer(question):
        papers = find_papers(workspace, author=match["name"], limit=None)
        if papers:
            return _in_span([paper.arxiv_id for paper in papers], span)
    for match in AUTHORS.finditer(question):
        family = title_words(match[1])
        papers = [
            paper
            for paper in find_papers(workspace, author=match[1], limit=None)
            if paper.authors and title_words(paper.authors[0])[-len(family) :] == family
        ]
        if papers:
            return _in_span([paper.arxiv_id for paper in papers], span)
    return []


def _author_asked_for(workspace: Workspace, question: str) -> str | None:
    """The name of the author whose papers a question asks for; other names than those in full only
    where an author has them.
    """
    match = _BY_PERSON.search(question)
    if match is not None:
        return match["name"]
    match = _BY_NAME.search(question)
    if match is None:
        return None
    name = match["subject"] or match["agent"]
    try:
        return name if find_papers(workspace, author=name, limit=1) else None
    except SettingError:  # no word in it
        return None


def _in_span(arxiv_ids: Iterable[str], span: MonthSpan) -> list[str]:
    return [arxiv_id for arxiv_id in arxiv_ids if span.holds(month_of(arxiv_id) or "")]
