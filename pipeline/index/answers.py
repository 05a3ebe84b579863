"""What a search found, for programs and for readers: JSON rows, and Markdown.

A paper's text is data: whatever in it means something to Markdown or to a terminal is made
harmless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline.corpus.parse.policies import without_markers
from pipeline.index.hits import Hit
from pipeline.text import one_line

# Control characters but tab and line feed, and those that turn the direction of what follows them.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What Markdown reads anywhere, and what it reads at the beginning of a line alone.
_INLINE = re.compile(r"[\\`*_\[\]<>&~$|]|(?<!\w)#|:(?=//)|(?<=www)\.")
_AT_START = re.compile(r"^(\d+)(?=[.)])|^(?=[+\-=])")


def visible(text: str) -> str:
    """The text with a sign in place of every character that would steer a terminal."""
    return _UNSHOWN.sub("\ufffd", text)


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


def _item(number: int, hit: Hit) -> str:
    mark = f"{number}. "
    facts = (" › ".join(hit.section_path), hit.kind.replace("_", " "), f"score {hit.score:.3f}")
    about = _at_start(_line(" · ".join(filter(None, facts))))
    head = (
        f"[{_line(hit.title)}]({hit.passage_url}) ([{_line(hit.arxiv_id)}]({hit.url}))\\\n{about}"
    )
    indented = f"{head}\n\n{_quoted(hit.text)}".split("\n")
    return mark + "\n".join(
        [indented[0], *(" " * len(mark) * bool(line) + line for line in indented[1:])]
    )


def _quoted(text: str) -> str:
    """A text as a quotation that keeps its lines."""
    lines = [
        _at_start(_line(line))
        for line in visible(without_markers(text)).splitlines()
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
