"""Names of methods, systems and data sets, by the papers that introduce them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pipeline import tables
from pipeline.arxiv.titles import title_words
from pipeline.corpus.references.citation_index import count_citing_papers
from pipeline.engine.month_index import MonthIndex, TableSource
from pipeline.engine.stage import Workspace

_VERSION = 4
_SCHEMA = """
create table names (
    name text, paper text, strength integer, month text, primary key (name, paper)
) without rowid;
create index names_of_month on names (month)
"""
# What a paper is called, and what its abstract says to introduce.
_TITLE, _INTRODUCED = 2, 1
_MOST_WORDS = 6
# What more abstracts introduce is a common word.
_MOST_ABSTRACTS = 5
_TITLE_END = re.compile(r"[:?!]\s|\s[-–—]+\s")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
INTRODUCES = re.compile(
    r"\b(?:we|paper|work|article)(?:\s+\w+){0,4}?\s+(?:introduc|propos|present|develop|describ"
    r"|releas|creat|design|construct|build|built)\w*",
    re.IGNORECASE,
)
"""The words by which an abstract introduces what the paper is about: "we propose"."""
_NAME = r"((?:[A-Z][\w+.-]*\w|[A-Z])(?:\s+(?:[A-Z][\w+.-]*\w|\d+\w?)){0,4})"
# We propose a method for large language models (LLMs) does not introduce these.
_OTHER_OBJECT = re.compile(
    r"\b(?:and|as|based|by|for|from|how|in|of|on|that|to|using|via|where|which|with)\b"
)
# We introduce S2ORC, a large …; we propose a new network architecture, the Transformer, based …
_AFTER_VERB = re.compile(
    rf"^\s+(?:[a-z][\w\s-]{{0,80}}?(?:,\s+|\s(?=called|named|dubbed|termed)))?"
    rf"(?:the\s+|a\s+|an\s+)?(?:called\s+|named\s+|dubbed\s+|termed\s+)?{_NAME}"
    r"(?=\s*(?:[,.:;(]|$)|\s+(?:that|which|to|for|as|is)\b)"
)
# Our method (Iterative Normalization) transforms …
_OURS = re.compile(rf"\b[Oo]ur\s+(?:[\w-]+\s+){{1,3}}\({_NAME}\)")
# InterPlanetary counts as two words.
_INITIAL = re.compile(r"(?<![^\W_])[^\W\d_]|(?<=[a-z])[A-Z]")
IN_BRACKETS = re.compile(r"\(([A-Za-z][\w+.-]{1,14}|[A-Z][\w-]+(?:\s[A-Z][\w-]+){1,3})\)")


def paper_names(workspace: Workspace) -> MonthIndex:
    """The index of the names that titles and abstracts introduce."""
    return MonthIndex(
        workspace=workspace,
        name="names",
        version=_VERSION,
        schema=_SCHEMA,
        replace_month=_replace_month,
        source=TableSource(workspace, tables.PAPERS, ["arxiv_id", "title", "abstract"]),
    )


def paper_named(workspace: Workspace, query: str) -> str | None:
    """The paper that introduces what a query names: by its title rather than in its abstract, then
    the most cited one. None if no paper does, or too many. Raises as `MonthIndex.open` does.
    """
    with paper_names(workspace).open() as connection:
        papers = _named(connection, query)
    if not papers:
        return None
    citing = count_citing_papers(workspace, papers) if len(papers) > 1 else {}
    return str(max(papers, key=lambda paper: citing.get(paper, 0)))


def _named(connection: sqlite3.Connection, name: str) -> list[str]:
    """The papers that introduce a name: in their titles, or else in their abstracts, if few do."""
    key = _key(name)
    if not key:
        return []
    rows = connection.execute("select paper, strength from names where name = ?", (key,)).fetchall()
    best = max((strength for _, strength in rows), default=0)
    papers = sorted(paper for paper, strength in rows if strength == best)
    return [] if best == _INTRODUCED and len(papers) > _MOST_ABSTRACTS else papers


def papers_named_in(
    workspace: Workspace, text: str, may_be: Callable[[str], bool]
) -> dict[str, list[str]]:
    """The names in a text, in order, and the papers that introduce each. Of a name within a longer
    one only the longer one counts, and a name of many papers is none.

    may_be: whether words of the text may be a name. Raises as `MonthIndex.open` does.
    """
    words = [word.strip(",;:?!()[]“”\".'’") for word in text.split()]
    words = [word.removesuffix("'s").removesuffix("’s") for word in words]
    papers: dict[str, list[str]] = {}
    start = 0
    with paper_names(workspace).open() as connection:
        while start < len(words):
            named: list[str] = []
            length = min(_MOST_WORDS, len(words) - start) + 1
            while not named and length > 1:
                length -= 1
                run = " ".join(words[start : start + length])
                named = _named(connection, run) if may_be(run) else []
            if 0 < len(named) <= _MOST_ABSTRACTS:
                papers[run] = named
            start += length
    return papers


def introduced_names(title: str, abstract: str) -> dict[str, int]:
    """The names that a paper introduces, folded, 2 for the title and 1 for the abstract."""
    names: dict[str, int] = {}
    found = [(title, _TITLE)]
    head, *rest = _TITLE_END.split(title, maxsplit=1)
    if rest:
        found.append((head, _TITLE))
    for sentence in _SENTENCE_END.split(" ".join(abstract.split())):
        found += _names_of_sentence(sentence)
    for name, strength in found:
        key = _key(name)
        if key:
            names[key] = max(strength, names.get(key, 0))
    return names


def _names_of_sentence(sentence: str) -> Iterator[tuple[str, int]]:
    ours = _OURS.search(sentence)
    if ours is not None:
        yield ours[1], _INTRODUCED
    verb = INTRODUCES.search(sentence)
    if verb is not None:
        match = _AFTER_VERB.match(sentence[verb.end() :])
        if match is not None:
            yield match[1], _INTRODUCED
        for bracket in IN_BRACKETS.finditer(sentence, verb.end()):
            before, short = sentence[verb.end() : bracket.start()], bracket[1]
            long = long_form(short, before)
            described = before if long is None else before[: before.rfind(long)]
            if _OTHER_OBJECT.search(described):
                continue
            if long is not None:
                yield long, _INTRODUCED
            if long is not None or any(letter.isupper() for letter in short):
                yield short, _INTRODUCED
                if _is_plural(short):
                    yield short[:-1], _INTRODUCED


def long_form(short: str, before: str) -> str | None:
    """The end of a text whose initials are the abbreviation in the brackets after it; None if they
    are not.
    """
    letters = short.lower()
    if _is_plural(short):
        letters = letters[:-1]
    starts = [match.start() for match in _INITIAL.finditer(before)]
    if not 2 <= len(letters) <= len(starts):
        return None
    first = starts[-len(letters)]
    initials = "".join(before[start].lower() for start in starts[-len(letters) :])
    return before[first:].strip() if initials == letters else None


def _is_plural(short: str) -> bool:
    """Whether an abbreviation is a plural: DEFs."""
    return short.endswith("s") and short[:-1].isupper()


def _key(name: str) -> str:
    """The folded words of a name, joined: S2-ORC is S2ORC, and Mistral7B is Mistral 7B. Empty for
    one that is too long, or too short to be a name.
    """
    words = title_words(name)
    key = "".join(words)
    return key if len(words) <= _MOST_WORDS and len(key) >= 2 else ""


def _replace_month(
    connection: sqlite3.Connection, month: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    connection.execute("delete from names where month = ?", (month,))
    connection.executemany(
        "insert or replace into names values (?, ?, ?, ?)",
        (
            (name, row["arxiv_id"], strength, month)
            for row in rows
            for name, strength in introduced_names(
                row["title"] or "", row["abstract"] or ""
            ).items()
        ),
    )
