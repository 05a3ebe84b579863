"""What the corpus is about, for every door: papers, passages, sections, references, hits of a
search, and answers. Each is made once, from a row of a table, a point of the index or a writer.

`pipeline.doors.present` has their two renderings, JSON and Markdown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from pipeline.corpus.links import abstract_url, passage_url
from pipeline.corpus.parse.policies import without_markers
from pipeline.identity.identifiers import month_of
from pipeline.llm.messages import Spent
from pipeline.text import clip

PASSAGE_COLUMNS = ["passage_id", "arxiv_id", "anchor", "kind", "title", "section_path", "text"]
"""Columns of `passages` that `Passage.from_row` needs."""
PAPER_COLUMNS = [
    "arxiv_id", "title", "authors", "year", "categories", "abstract", "grade", "subset"
]  # fmt: skip
"""Columns of `papers` that `Paper.from_row` needs."""
PART: Mapping[str, bool] = {"part": True}
"""Metadata of a field that is None where it was not read; JSON leaves it out then."""
_SECTION_ANCHOR = re.compile(r"S+[1-9]\d*")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a paper.

    anchor: id of its first element in the page. title: of the paper; empty if it has none.
    section_path: titles of the sections around it, outermost first. text: formulas as `$TeX$`,
    citations as `[@key]`. best_sentences: its sentences and table rows that fit a query best.
    excerpt: these and what is around them, citations as `[12]`.
    """

    passage_id: str
    arxiv_id: str
    anchor: str
    kind: str
    title: str
    section_path: tuple[str, ...]
    text: str
    excerpt: str | None = field(default=None, metadata=PART)
    best_sentences: tuple[str, ...] | None = field(default=None, metadata=PART)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Passage:
        """The passage of a row with PASSAGE_COLUMNS."""
        return cls(
            passage_id=row["passage_id"],
            arxiv_id=row["arxiv_id"],
            anchor=row["anchor"],
            kind=row["kind"],
            title=clip(row["title"] or ""),
            section_path=tuple(map(clip, row["section_path"] or ())),
            text=row["text"],
        )

    @property
    def month(self) -> str:
        """The month of its paper's id, YYYY-MM, whose tables hold it; empty for a malformed id."""
        return month_of(self.arxiv_id) or ""

    @property
    def url(self) -> str:
        """Its place in the paper's HTML."""
        return passage_url(self.arxiv_id, self.anchor)

    def place(self) -> str:
        """Where in its paper it is: its sections, or its kind outside of sections."""
        outside = "Affiliations" if self.anchor == "authors" else self.kind.replace("_", " ")
        return " › ".join(self.section_path) or outside

    def heading(self) -> str:
        """The paper's title and the sections around the passage."""
        return " > ".join(filter(None, (self.title, *self.section_path)))

    def content(self) -> str:
        """The text without citation markers."""
        return without_markers(self.text).strip()

    def prompt_text(self) -> str:
        """Heading and content."""
        return f"{self.heading()}\n{self.content()}"


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, of which at least the id is known. authors: names. categories: primary first.

    grade: quality of its page, A (clean) to D. subset: conversion severity of its page in the dump.
    cited_by: how many papers of the corpus cite it.
    """

    arxiv_id: str
    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    categories: tuple[str, ...] = ()
    abstract: str | None = field(default=None, metadata=PART)
    grade: str | None = field(default=None, metadata=PART)
    subset: str | None = field(default=None, metadata=PART)
    cited_by: int | None = field(default=None, metadata=PART)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Paper:
        """The paper of a row with PAPER_COLUMNS."""
        return Paper(
            arxiv_id=row["arxiv_id"],
            title=clip(row["title"] or ""),
            authors=tuple(clip(author["name"]) for author in row["authors"] or ()),
            year=row["year"],
            categories=tuple(row["categories"] or ()),
            abstract=row["abstract"] or "",
            grade=row["grade"],
            subset=row["subset"],
        )

    @property
    def month(self) -> str:
        """The month of its id, YYYY-MM, whose tables hold it; empty for a malformed id."""
        return month_of(self.arxiv_id) or ""

    @property
    def url(self) -> str:
        """Its page on arXiv, with abstract and versions."""
        return abstract_url(self.arxiv_id)


@dataclass(frozen=True, slots=True)
class Reference:
    """An item of a paper's bibliography. raw: as printed. arxiv_id: of the cited paper, if it is
    known to arXiv. in_corpus: whether the corpus holds that paper, whose title then is `title`.
    """

    key: str
    raw: str
    title: str | None
    authors: tuple[str, ...]
    year: int | None
    venue: str | None
    doi: str | None
    arxiv_id: str | None
    in_corpus: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a paper. path: its title after those of the sections around it. passage_id: its
    first passage. number: as printed, 4.2; empty for none. passages: its own and those of its
    subsections.
    """

    path: tuple[str, ...]
    passage_id: str
    number: str = ""
    passages: tuple[Passage, ...] | None = field(default=None, metadata=PART)

    @property
    def title(self) -> str:
        """The last title of its path."""
        return self.path[-1]

    def heading(self) -> str:
        """Number and title."""
        return f"{self.number} {self.title}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class FullPaper(Paper):
    """A paper with its passages and references in the order of the page."""

    passages: tuple[Passage, ...]
    references: tuple[Reference, ...]

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections in order, each once, without their texts."""
        return sections_of(self.passages)


def sections_of(passages: Iterable[Passage]) -> tuple[Section, ...]:
    """The sections of passages and those around them, in order, each once, without their texts."""
    sections: dict[tuple[str, ...], Section] = {}
    for passage in passages:
        # LaTeXML's anchors hold the numbers: S4.SS2.p1.
        anchors = takewhile(_SECTION_ANCHOR.fullmatch, passage.anchor.split("."))
        numbers = [anchor.strip("S") for anchor in anchors]
        for depth in range(1, len(passage.section_path) + 1):
            path = passage.section_path[:depth]
            section = sections.setdefault(path, Section(path, passage.passage_id))
            if not section.number and len(numbers) >= depth:
                number = ".".join(numbers[:depth])
                sections[path] = Section(path, section.passage_id, number)
    return tuple(sections.values())


Reason = Literal[
    "named", "fits", "nearest", "exact", "near", "meaning", "shared", "similar", "listed"
]


@dataclass(frozen=True, slots=True)
class Hit:
    """A paper that was asked for, with its passages.

    score: comparable only among hits that were returned together. reason: of a search, `named` (the
    query names the paper), `fits`, or `nearest` (it does not fit, nothing is nearer); of a quote,
    `exact` (the same words), `near` (almost the same) or `meaning`; of a related paper, `shared`
    (both cite the same works, `score` of them) or `similar` (by text); `listed` by title, author or
    year.
    """

    paper: Paper
    score: float
    reason: Reason
    passages: tuple[Passage, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it fits; true where that is unknown."""
        return self.reason != "nearest"


@dataclass(frozen=True, slots=True)
class CitingPaper:
    """A paper that cites another one. passage_ids: its passages that do so, in order; empty if no
    passage does.
    """

    paper: Paper
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """A page of hits, best first, to iterate over and to index.

    of: `papers`, each with its best passages, or `passages`, whatever their papers. searched: the
    words that were searched for, if their spelling was corrected, else None. named: arXiv id of the
    paper that the query names; it comes first, or, where the corpus does not hold it, cited_by are
    the papers that cite it. fits: whether any hit of the first page fits the query; if not, they
    are the nearest ones. first: number of the page's first hit. has_more: whether others follow.
    note: all of this in words; empty for an ordinary search.
    """

    query: str
    of: Literal["papers", "passages"]
    hits: tuple[Hit, ...] = ()
    searched: str | None = None
    named: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()
    fits: bool = True
    first: int = 1
    has_more: bool = False
    note: str = ""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]


ClaimOrigin = Literal["passage", "model", "front_matter"]
"""Origin of a claim: its passage, the model (supported by its passage), or a row of a table."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact, numbered from 1, with the passage that it rests on and the hop that read it."""

    number: int
    text: str
    passage_id: str
    arxiv_id: str
    anchor: str
    hop: int
    source: ClaimOrigin = "passage"

    @property
    def url(self) -> str:
        """The place of its passage in the paper's HTML."""
        return passage_url(self.arxiv_id, self.anchor)

    def line(self) -> str:
        """The claim in a prompt."""
        return f"[{self.number}] {self.text}"


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence of an answer, and the numbers of the claims that it rests on."""

    text: str
    claims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One system's answer to one question.

    Every claim rests on a passage that was shown, and every sentence on a claim. Only a system that
    retrieves nothing has sentences without claims.

    queries: of each hop. shown: the passages that were read in each hop; in place of an answer,
    those closest to the question, with excerpts. fits: whether any of these fits the question; if
    not, note says so. question, system, model (None for a system that calls none) and cost (calls,
    tokens, seconds; answers from the cache are free) are of an answer to somebody who asked just
    now.
    """

    text: str
    sentences: tuple[AnswerSentence, ...]
    claims: tuple[Claim, ...] = ()
    queries: tuple[str, ...] = ()
    shown: tuple[tuple[Passage, ...], ...] = ()
    hops: int = 0
    abstained: bool = False
    fits: bool = True
    note: str = ""
    trace: Mapping[str, Any] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    question: str = ""
    system: str = ""
    model: str | None = None
    cost: Mapping[str, float] = field(default_factory=dict)

    @property
    def passages(self) -> dict[str, Passage]:
        """The passages that were shown, by id."""
        return {passage.passage_id: passage for hop in self.shown for passage in hop}

    def closest_passages(self) -> tuple[Passage, ...]:
        """The passages that are shown in place of an answer; none beside an answer."""
        return () if self.claims or self.abstained else tuple(self.passages.values())

    def trace_json(self) -> str:
        """The trace as text, the same for the same answer."""
        return json.dumps(self.trace, ensure_ascii=False, sort_keys=True)
