"""Claims from tables, not from a model, on a paper's authors, their affiliations, its date and its
categories.

Author information is one of the question topics of the arXivBot report, whose own system answers it
by search.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.answering.answer import Fact
from pipeline.answering.corpus_retriever import ALL_MONTHS, MonthSpan
from pipeline.answering.retrieval import PASSAGE_COLUMNS, RetrievedPassage
from pipeline.arxiv.identifiers import month_of, normalize_arxiv_id
from pipeline.engine.stage import Workspace
from pipeline.index.papers import rows_of_papers
from pipeline.text import one_line

MOST_AUTHORS = 30
_FEWEST_TITLE_SIGNS = 4

# Words of questions for each facet. "Who" by itself also asks for users and annotators.
_ASKS = {
    "authors": r"\bauthors?\b|\b(?:who|whom)\b[^.?!]{0,40}\b(?:wrote|written|published|proposed"
    r"|developed|introduced"
    r"|created|behind)\b|\b(?:written|proposed|developed|created) by wh",
    "affiliations": r"\baffiliat\w*|\bwhere (?:do|does|did)\b[^.?!]{0,100}\b(?:work|come from)\b"
    r"|\bwhere (?:is|are|was|were)\b[^.?!]{0,60}\b(?:based|employed)\b"
    r"|\bfor whom\b[^.?!]{0,60}\bwork"
    r"|\bauthors?\b[^.?!]{0,80}\b(?:work(?:s|ed)? (?:at|for)|employed (?:at|by)|based (?:at|in))\b"
    r"|\b(?:which|what) (?:\w+ )?(?:universit\w+|institut\w+|compan\w+|organi[sz]ations?|labs?"
    r"|laborator\w+"
    r"|employers?|workplaces?)\b|\b(?:which|what) (?:groups?|teams?|departments?|countr(?:y|ies)"
    r"|cit(?:y|ies)|schools?)"
    r" (?:do|does|did|are|is)\b[^.?!]{0,30}\bauthors?\b",
    "date": r"\bwhen\b[^.?!]{0,80}\b(?:publish|appear|written|submitted|released|posted|come out"
    r"|put)\w*"
    r"|\b(?:which|what) (?:year|month|date)\b|\b(?:publication|submission|release) date\b",
    "categories": r"\b(?:arxiv|primary|subject) (?:subject )?(?:categor|class|area)\w*"
    r"|\bcategor\w+\b[^.?!]{0,40}\b(?:arxiv|filed|listed|posted|belong)|\b(?:filed|listed"
    r"|posted) (?:in|under)\b",
}
_FACETS = {facet: re.compile(pattern, re.IGNORECASE) for facet, pattern in _ASKS.items()}
# A question that names the authors as those who say something does not ask who they are: "What do
# the authors concede?" asks for limitations.
_SAYING = (
    r"(?:acknowledge|admit|argue|believe|call|caution|claim|concede|conclude|consider|describe|discuss|expect|explain"
    r"|find|give|identify|leave|list|mention|name|note|plan|point|raise|recommend|regard|report|say|see|state|suggest"
    r"|think|use|warn)(?:s|d|ed)?\b"
)
_AS_SPEAKERS = re.compile(
    # "do the paper's authors …", also "have they", "would they"
    r"\b(?:do|does|did|have|has|had|can|could|would|should)\s+(?:(?:the|its|their|these)\s+)?(?:[\w'’-]+\s+)?authors?\b"
    r"(?!['’])"
    # "limits that the authors …", "what its authors …", "according to the authors"
    r"|\b(?:that|what|which|how|why|as|to)\s+(?:the|its|their)\s+(?:[\w'’-]+\s+)?authors?\b"
    r"(?!['’]|\s+(?:are|is|were|was)\b)"
    # "by its authors' own account", and not "the authors' names"
    r"|\bauthors?['’]s?\s+(?!(?:\w+\s+)?(?:names?|affiliat|e-?mail|address|employer|institut|universit|workplace))\w"
    # "the authors themselves admit", "conceded by the authors", "author questions", "questions
    # about authors"
    rf"|(?<!which )(?<!what )(?<!many )\bauthors?\s+(?:themselves\s+|also\s+)?{_SAYING}"
    r"|\b(?!written)\w+(?:ed|en)\s+by\s+(?:the|its|their)\s+authors?\b"
    r"|\bauthors?\s+questions?\b|\bquestions?\s+(?:about|on)\s+authors?\b",
    re.IGNORECASE,
)
_ID = re.compile(
    r"(?<![\w.])(?:arxiv:\s*)?(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?(?![\w/])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Author:
    """An author with affiliations, from the tables."""

    name: str
    affiliations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The authors, date and categories of one paper, and the passage of its front matter, on which
    claims rest.

    date: of the first version, YYYY-MM-DD or YYYY-MM; None if unknown. categories: primary first.
    """

    passage: RetrievedPassage
    authors: tuple[Author, ...] = ()
    date: str | None = None
    categories: tuple[str, ...] = ()


class FrontMatterTables:
    """The front matter of the papers of a span, from the tables `papers`, `metadata` and
    `passages`.
    """

    def __init__(self, workspace: Workspace, span: MonthSpan = ALL_MONTHS) -> None:
        self._root, self._span = workspace.root, span

    async def front_matter(self, arxiv_ids: Sequence[str]) -> list[FrontMatter]:
        """The front matter of these papers, in order; papers that are not there or have no such
        passage are missing.

        The tables are read off the event loop. Raises PermanentFailure if one is broken.
        """
        return await asyncio.to_thread(self._read, arxiv_ids)

    def _read(self, arxiv_ids: Sequence[str]) -> list[FrontMatter]:
        in_span = [
            paper
            for paper in dict.fromkeys(arxiv_ids)
            if (month := month_of(paper)) is not None and self._span.holds(month)
        ]
        columns = ["arxiv_id", "authors", "categories"]
        pages = {
            row["arxiv_id"]: row
            for row in rows_of_papers(self._root, tables.PAPERS, in_span, columns)
        }
        columns.append("published")
        metadata = {
            row["arxiv_id"]: row
            for row in rows_of_papers(self._root, tables.METADATA, in_span, columns)
        }
        passages: dict[str, dict[str, Any]] = {}
        for row in rows_of_papers(
            self._root, tables.PASSAGES, in_span, [*PASSAGE_COLUMNS, "ordinal"]
        ):
            # Long front matter has several parts; the first names the authors.
            earlier = passages.get(row["arxiv_id"])
            if row["kind"] == "front_matter" and (
                earlier is None or row["ordinal"] < earlier["ordinal"]
            ):
                passages[row["arxiv_id"]] = row
        return [
            _front_matter(passages[paper], pages.get(paper, {}), metadata.get(paper, {}))
            for paper in in_span
            if paper in passages
        ]


def _front_matter(
    passage: Mapping[str, Any], page: Mapping[str, Any], metadata: Mapping[str, Any]
) -> FrontMatter:
    month = month_of(passage["arxiv_id"]) or ""
    return FrontMatter(
        RetrievedPassage.of(passage, month),
        _authors(page.get("authors") or (), metadata.get("authors") or ()),
        # An arXiv id says the month.
        metadata.get("published") or month,
        tuple(page.get("categories") or metadata.get("categories") or ()),
    )


def _authors(page: Sequence[Mapping[str, Any]], metadata: Sequence[str]) -> tuple[Author, ...]:
    """The authors of the page, with affiliations; if metadata names more or fewer people, its
    authors.
    """
    authors = tuple(Author(author["name"], tuple(author["affiliations"])) for author in page)
    if not metadata or len(authors) == len(metadata):
        return authors
    affiliations = {_name_key(author.name): author.affiliations for author in authors}
    return tuple(Author(name, affiliations.get(_name_key(name), ())) for name in metadata)


def _name_key(name: str) -> str:
    return one_line(unicodedata.normalize("NFKC", name).casefold())


def facets_of(question: str) -> tuple[str, ...]:
    """Which of authors, affiliations, date and categories a question asks for."""
    by_name = {"authors": _AS_SPEAKERS.sub(" ", question)}
    return tuple(
        facet for facet, pattern in _FACETS.items() if pattern.search(by_name.get(facet, question))
    )


def named_papers(question: str, passages: Iterable[RetrievedPassage]) -> list[str]:
    """The papers that a question is about: those whose ids it names, else those of the passages
    whose titles it names, else the paper of the first passage.

    A question names a title if it holds the whole title, or the part before its colon in the same
    case ("QuillNet: Reading Margins"); in another case that part may be a common word.
    """
    ids = [
        paper
        for text in _ID.findall(question)
        if (paper := normalize_arxiv_id(text)) and month_of(paper)
    ]
    if ids:
        return list(dict.fromkeys(ids))
    candidates = list(passages)
    titled = [passage.arxiv_id for passage in candidates if _is_named(passage.title, question)]
    return list(dict.fromkeys(titled or [passage.arxiv_id for passage in candidates[:1]]))


def _is_named(title: str, question: str) -> bool:
    head, colon, _ = title.partition(":")
    whole = _holds(question.casefold(), title.casefold())
    return whole or (bool(colon) and head != head.lower() and _holds(question, head))


def _holds(text: str, name: str) -> bool:
    """Whether a text holds the words of a name, in order and one after the other."""
    text, name = (f" {' '.join(_WORD.findall(part))} " for part in (text, name))
    return len(name.strip()) >= _FEWEST_TITLE_SIGNS and name in text


async def fact_claims(
    facts: FrontMatterTables | None, question: str, passages: Sequence[RetrievedPassage], most: int
) -> list[Fact]:
    """At most `most` claims from tables, paper by paper, each with the front matter on which it
    rests.

    There are none without tables or if the question asks for no facet, and none on what the tables
    do not hold.
    """
    facets = facets_of(question)
    papers = named_papers(question, passages) if facets else []
    if facts is None or not papers:
        return []
    claims: list[Fact] = []
    for front in await facts.front_matter(papers):
        claims += [(text, front.passage, "front_matter") for text in _sentences(front, facets)]
    return claims[:most]


def _sentences(front: FrontMatter, facets: Collection[str]) -> Iterator[str]:
    """A sentence on each facet of one paper that the tables hold; authors and affiliations share
    one.
    """
    paper = f'"{one_line(front.passage.title)}" (arXiv:{front.passage.arxiv_id})'
    if front.authors and {"authors", "affiliations"} & set(facets):
        names = [
            f"{author.name} ({', '.join(author.affiliations)})"
            if author.affiliations
            else author.name
            for author in front.authors[:MOST_AUTHORS]
        ]
        more = len(front.authors) - len(names)
        others = f", and {more} others" if more else ""
        yield f"{paper} was written by {'; '.join(names)}{others}."
    if front.date and "date" in facets:
        yield f"{paper} first appeared on arXiv in {front.date}."
    if front.categories and "categories" in facets:
        primary, *further = front.categories
        also = f", also in {', '.join(further)}" if further else ""
        yield f"{paper} is in arXiv's primary category {primary}{also}."
