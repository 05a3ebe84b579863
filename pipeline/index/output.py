"""Papers and hits as commands, the API and Python return them: JSON, and Markdown.

A paper's text is data: marks that Markdown or a terminal would interpret are escaped or replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict

from pipeline.corpus.nouns import Reference
from pipeline.corpus.parse.policies import without_known_markers
from pipeline.index.paper_results import PaperHit, SearchResults
from pipeline.index.scored import Hit
from pipeline.text import number_of, one_line, visible

# What Markdown reads anywhere, and what it reads at the beginning of a line alone.
_INLINE = re.compile(r"[\\`*_\[\]<>&~$|]|(?<!\w)#|:(?=//)|(?<=www)\.")
_AT_START = re.compile(r"^(\d+)(?=[.)])|^(?=[+\-=])")
_AUTHORS_SHOWN = 4


class PassageJson(BaseModel):
    """A passage of a paper. text: formulas as `$TeX$`, citations as `[@key]`. url: its place in the
    paper's HTML.
    """

    model_config = ConfigDict(from_attributes=True)

    passage_id: str
    anchor: str
    kind: str
    section_path: tuple[str, ...]
    text: str
    url: str


class PaperJson(BaseModel):
    """A paper with its passages and references in the order of the page.

    month: YYYY-MM, of the tables that hold it. url: its page on arXiv.
    """

    model_config = ConfigDict(from_attributes=True)

    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    abstract: str
    categories: tuple[str, ...]
    year: int | None
    month: str
    url: str
    passages: tuple[PassageJson, ...]
    references: tuple[Reference, ...]


def as_rows(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Every field of every hit."""
    return [asdict(hit) for hit in hits]


def batch_rows(queries: Sequence[str], answers: Sequence[Sequence[Hit]]) -> list[dict[str, Any]]:
    """Each query with its hits, in the order of the queries."""
    return [
        {"query": query, "hits": as_rows(hits)}
        for query, hits in zip(queries, answers, strict=True)
    ]


def place(hit: Hit) -> str:
    """Where in its paper a passage is: its sections, or its kind."""
    return " › ".join(hit.section_path) or hit.kind.replace("_", " ")


def as_markdown(hits: Sequence[Hit], first: int = 1) -> str:
    """A numbered list: title, place, kind and score, and the passage as a quotation. first: the
    first number.
    """
    if not hits:
        return "Nothing found."
    return "\n\n".join(_item(number, hit) for number, hit in enumerate(hits, first))


def batch_markdown(queries: Sequence[str], answers: Sequence[Sequence[Hit]], first: int = 1) -> str:
    """The list of each query under a heading of its own."""
    pairs = zip(queries, answers, strict=True)
    return "\n\n".join(f"## {_line(query)}\n\n{as_markdown(hits, first)}" for query, hits in pairs)


def papers_markdown(answers: Sequence[SearchResults], *, headings: bool = False) -> str:
    """The papers of queries as numbered lists. headings: each query stands above its list."""
    return "\n\n".join(_papers_of_query(answer, headings=headings) for answer in answers)


def _papers_of_query(results: SearchResults, *, headings: bool) -> str:
    parts = [f"## {_line(results.query)}"] if headings else []
    if results.note:
        parts.append(_at_start(_line(results.note)))
    if not results.papers and not results.note:
        parts.append("Nothing found.")
    for number, paper in enumerate(results.papers, results.first):
        mark = f"{number}. "
        about = [f"{_link(paper.title, paper.url)}\\", _at_start(_line(facts_of(paper)))]
        about += ["", _at_start(_line(paper.abstract))] if paper.abstract else []
        for passage in paper.passages:
            link = _link(place(passage), passage.passage_url)
            about += ["", f"{link}:", "", *_quoted(passage.excerpt).split("\n")]
        parts.append(_numbered(mark, about))
    return "\n\n".join(parts)


def facts_of(paper: PaperHit) -> str:
    """Authors, year, categories, id and citations of a paper in one line."""
    authors = ", ".join(paper.authors[:_AUTHORS_SHOWN])
    if len(paper.authors) > _AUTHORS_SHOWN:
        authors += f" and {len(paper.authors) - _AUTHORS_SHOWN} more"
    citing = number_of(paper.cited_by, "paper")
    facts = (
        authors,
        str(paper.year or ""),
        ", ".join(paper.categories),
        paper.arxiv_id,
        f"cited by {citing} here",
    )
    return " · ".join(filter(None, facts))


def _item(number: int, hit: Hit) -> str:
    mark = f"{number}. "
    facts = (" › ".join(hit.section_path), hit.kind.replace("_", " "), f"score {hit.score:.3f}")
    about = _at_start(_line(" · ".join(filter(None, facts))))
    paper, by_id = _link(hit.title, hit.passage_url), _link(hit.arxiv_id, hit.url)
    head = f"{paper} ({by_id})\\\n{about}"
    return _numbered(mark, f"{head}\n\n{_quoted(hit.text)}".split("\n"))


def _link(text: str, address: str) -> str:
    """A Markdown link; the text alone without an address."""
    return f"[{_line(text)}]({address})" if address else _line(text)


def _numbered(mark: str, lines: Sequence[str]) -> str:
    """Lines as an item of a list that begins with this mark."""
    first, *others = lines
    indent = " " * len(mark)
    return "\n".join([mark + first, *(indent + line if line else "" for line in others)])


def _quoted(text: str) -> str:
    """A text as a quotation that keeps its lines."""
    lines = [
        _at_start(_line(line))
        for line in visible(without_known_markers(text)).splitlines()
        if line.strip()
    ]
    return "\\\n".join(f"> {line}" for line in lines)


def _line(text: str) -> str:
    """A text in one line, with a backslash before each sign that Markdown would read inside of
    it.
    """
    return _INLINE.sub(r"\\\g<0>", one_line(visible(text)))


def _at_start(line: str) -> str:
    """A line with a backslash before what would begin a list or underline a heading."""
    return _AT_START.sub(r"\1\\", line)
