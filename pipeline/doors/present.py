"""The two renderings of the nouns, for every door: JSON, and Markdown.

A paper's text is data: characters that Markdown or a terminal would interpret are escaped or
replaced, and for assistants texts stand between tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatch
from typing import Any

from pipeline.answering.rendering import CLAIM_ORIGINS, terminal_line
from pipeline.corpus.links import source_name
from pipeline.corpus.nouns import (
    Answer,
    CitingPaper,
    FullPaper,
    Hit,
    Paper,
    Passage,
    Reference,
    Results,
    Section,
    sections_of,
)
from pipeline.corpus.parse.policies import with_printed_citations
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.llm.prompts import fenced
from pipeline.text import number_of, one_line, visible

# Properties of nouns that JSON has beside their fields.
_DERIVED = ("month", "url", "title", "fits", "sections")
HIDDEN = ("trace", "spent")
"""Fields that JSON leaves out; `citeloom ask --show-work` adds the trace."""
# Fields that hold no words of a paper. Between tags they would be of no use to an assistant's next
# call, so they lose the characters that could imitate a tag instead.
_COORDINATES = frozenset(
    ("arxiv_id", "passage_id", "passage_ids", "anchor", "kind", "url", "month", "subset", "grade",
     "categories", "reason", "of", "named", "source", "system", "model")
)  # fmt: skip
_NO_COORDINATE = re.compile(r"[^\w.:/#%?=@+-]")
# Characters of a text between tags, and items of a list of texts.
MOST_FENCED, _MOST_ITEMS = 2_000, 50

# What Markdown reads anywhere, and what it reads at the beginning of a line alone.
_INLINE = re.compile(r"[\\`*_\[\]<>&~$|]|(?<!\w)#|:(?=//)|(?<=www)\.")
CELL_BORDER = re.compile(r"(?<!\\)\|")
_AT_START = re.compile(r"^(\d+)(?=[.)](?:\s|$))|^(?=[+\-=])")
_AUTHORS_SHOWN = 4
# Characters of an abstract that a result shows, in whole sentences, and lines of an excerpt.
_ABSTRACT, _MOST_LINES = 320, 15


def as_json(value: Any, fence: str | None = None) -> Any:
    """A noun, or a collection of them, as JSON values: its fields and those properties that say
    where it is; a part that was not read is left out.

    fence: name of tags around each text of a paper, for readers that could take it for
    instructions; such texts and lists are cut.
    """
    if is_dataclass(value):
        names = [
            part.name
            for part in fields(value)
            if part.name not in HIDDEN
            and not ("part" in part.metadata and getattr(value, part.name) is None)
        ]
        names += derived(type(value))
        return {name: _field_json(name, getattr(value, name), fence) for name in names}
    if isinstance(value, Mapping):
        return {name: _field_json(name, item, fence) for name, item in value.items()}
    if isinstance(value, list | tuple):
        is_cut = fence and value and isinstance(value[0], str)
        return [as_json(item, fence) for item in (value[:_MOST_ITEMS] if is_cut else value)]
    if isinstance(value, str):
        # A model's JSON may hold lone surrogates, which no stream takes.
        text = value.encode("utf-8", "replace").decode()
        return fenced(text[:MOST_FENCED], fence) if fence and text else text
    return value


def derived(noun: type) -> list[str]:
    """The properties of a noun that its JSON has."""
    return [name for name in _DERIVED if isinstance(getattr(noun, name, None), property)]


def _field_json(name: str, value: Any, fence: str | None) -> Any:
    if fence and name in _COORDINATES:
        plain = as_json(value)
        if isinstance(plain, list):
            return [_NO_COORDINATE.sub("", item) for item in plain]
        return plain and _NO_COORDINATE.sub("", plain)
    return as_json(value, fence)


@singledispatch
def as_markdown(noun: Any) -> str:
    """A noun, or a collection of them, as Markdown with links."""
    raise TypeError(f"{type(noun).__name__} has no Markdown")


@as_markdown.register(list)
@as_markdown.register(tuple)
def _(items: Sequence[Any]) -> str:
    return "\n".join(f"- {as_markdown(item)}" for item in items) or "This corpus has none."


@as_markdown.register
def _(results: Results) -> str:
    parts = [at_start(escaped(results.note))] if results.note else []
    if not results.hits and not results.note:
        parts.append("Nothing found." if results.first == 1 else "No more results.")
    for number, hit in enumerate(results.hits, results.first):
        parts.append(_numbered(number, list(_hit_lines(hit, of=results.of))))
    return "\n\n".join(parts)


def _hit_lines(hit: Hit, of: str) -> Iterator[str]:
    facts = facts_of(hit.paper)
    if of == "passages":
        facts = f"{facts} · {hit.reason} · score {hit.score:.3f}"
    yield f"**{_title_link(hit.paper)}**\\"
    yield at_start(escaped(facts))
    if of == "papers" and hit.paper.abstract:
        yield ""
        yield at_start(escaped(first_sentences(hit.paper.abstract)))
    for passage in hit.passages:
        yield ""
        yield f"{_link(passage.place(), passage.url)}:"
        yield ""
        yield from _quoted(passage, whole=of == "passages")


@as_markdown.register
def _(paper: FullPaper) -> str:
    outline = [
        f"{'  ' * (len(section.path) - 1)}- {at_start(escaped(section.heading()))}"
        for section in paper.sections
    ]
    known = sum(reference.arxiv_id is not None for reference in paper.references)
    references = "this page has no bibliography"
    if paper.references:
        references = f"{number_of(len(paper.references), 'reference')}, {known} known to arXiv"
    facts = f"{facts_of(paper, authors=len(paper.authors))} · {references}"
    parts = [f"## {_title_link(paper)}", at_start(escaped(facts)), escaped(paper.abstract or "")]
    return "\n\n".join(filter(None, [*parts, "\n".join(outline)]))


@as_markdown.register
def _(reference: Reference) -> str:
    year = f" ({reference.year})" if reference.year else ""
    known = f" · {source_name(reference.arxiv_id)}" if reference.arxiv_id else ""
    held = " · in this corpus" if reference.in_corpus else ""
    return f"{at_start(escaped(reference.title or reference.raw))}{year}{known}{held}"


@as_markdown.register
def _(citing: CitingPaper) -> str:
    places = number_of(len(citing.passage_ids), "passage")
    return f"{_title_link(citing.paper)} · {source_name(citing.paper.arxiv_id)} · {places}"


@as_markdown.register
def _(section: Section) -> str:
    """The texts as the table has them, under the headings of the subsections."""
    passages = section.passages or ()
    headings = {each.path: each.heading() for each in sections_of(passages)}
    lines: list[str] = []
    path: tuple[str, ...] = ()
    for passage in passages:
        if passage.section_path != path:
            path = passage.section_path
            lines.append(f"{'#' * min(len(path), 6)} {headings[path]}")
        lines.append(with_printed_citations(passage.text))
    return "\n\n".join(lines)


@as_markdown.register
def _(answer: Answer) -> str:
    """The sentences, each with the numbers of its claims, then these claims with sources; or the
    closest passages with their best sentences marked.
    """
    if not answer.claims or answer.abstained:
        lines = filter(None, [answer.note, *answer.text.splitlines()])
        parts = ["\\\n".join(at_start(escaped(line)) for line in lines)]
        for number, passage in enumerate(answer.closest_passages(), 1):
            quoted = [f"{_source_link(passage)}:", "", *_quoted(passage)]
            parts.append(_numbered(number, quoted))
        return "\n\n".join(parts)
    sentences = [
        f"{escaped(sentence.text)} {''.join(map(_mark, sentence.claims))}"
        for sentence in answer.sentences
    ]
    texts = {sentence.text for sentence in answer.sentences}
    used = {number for sentence in answer.sentences for number in sentence.claims}
    parts = [at_start(" ".join(sentences)), "Sources:"]
    for claim in answer.claims:
        if claim.number in used:
            # No text is printed twice.
            text = f"{escaped(claim.text)}\\\n" if claim.text not in texts else ""
            origin = CLAIM_ORIGINS[claim.source]
            remark = f" ({origin})" if origin else ""
            source = _source_link(answer.passages[claim.passage_id])
            parts.append(f"{_mark(claim.number)} {text}{source}{remark}")
    return "\n\n".join(parts)


def _mark(number: int) -> str:
    return rf"\[{number}\]"


def answer_notes(answer: Answer) -> Iterator[str]:
    """Notes beside an answer: why there is none, or that no paper supports it."""
    from pipeline.answering.systems import SYSTEMS

    if not SYSTEMS[answer.system].retrieves:
        yield f"{answer.system} reads no paper: this is what {answer.model} says by itself"
    elif answer.abstained:
        yield f"searched for: {'; '.join(map(one_line, answer.queries)) or 'nothing'}"
        read = (
            f"{number_of(len(answer.passages), 'passage')} read,"
            f" {number_of(len(answer.claims), 'claim')} extracted"
        )
        yield f"{read}: they do not hold the answer"


def cost_line(answer: Answer) -> str:
    """Calls, tokens, money if prices are set, and time, of this answer alone."""
    cost = answer.cost
    seconds = f"{cost['seconds']:.1f} s"
    if answer.model is None:
        return f"{answer.system} · no model · {seconds}"
    parts = [
        answer.system,
        one_line(visible(answer.model)),
        f"{number_of(int(cost['llm_calls']), 'call')},"
        f" {cost['llm_cached']} of them answered by the cache",
        f"{cost['llm_prompt_tokens']:,} tokens read, {cost['llm_completion_tokens']:,} written",
    ]
    if "llm_cost" in cost:
        parts.append(f"{cost['llm_cost']:,.4f} to pay")
    return " · ".join([*parts, seconds])


def author_line(paper: Paper, most: int) -> str:
    """The first authors of a paper, and how many others there are."""
    more = len(paper.authors) - most
    return ", ".join(paper.authors[:most]) + (f" and {more} more" if more > 0 else "")


def facts_of(paper: Paper, authors: int = _AUTHORS_SHOWN) -> str:
    """Authors, year, categories, id and citations of a paper in one line. authors: most of them."""
    citing = f"cited by {number_of(paper.cited_by, 'paper')} here" if paper.cited_by else ""
    named = author_line(paper, authors)
    facts = (named, str(paper.year or ""), ", ".join(paper.categories), paper.arxiv_id, citing)
    return " · ".join(filter(None, facts))


def first_sentences(abstract: str) -> str:
    """The first sentences of an abstract, at least one."""
    first: list[str] = []
    length = 0
    for sentence in split_sentences(with_printed_citations(abstract)):
        length += len(sentence)
        if first and length > _ABSTRACT:
            return f"{' '.join(first)} …"
        first.append(sentence)
    return " ".join(first)


def escaped(text: str) -> str:
    """A text in one line, with a backslash before each character that Markdown would read inside
    of it.
    """
    return _INLINE.sub(r"\\\g<0>", terminal_line(text))


def _escaped_row(line: str) -> str:
    """A line as `escaped` gives it; a row of a table keeps the borders of its cells."""
    if not line.startswith("|"):
        return escaped(line)
    cells = (cell.replace("\\|", "|") for cell in CELL_BORDER.split(line))
    return " | ".join(map(escaped, cells)).strip()


def at_start(line: str) -> str:
    """A line with a backslash before what would begin a list or underline a heading."""
    return _AT_START.sub(r"\1\\", line)


def _link(text: str, address: str) -> str:
    """A Markdown link; the text alone without an address."""
    return f"[{escaped(text)}]({address})" if address else escaped(text)


def _title_link(paper: Paper) -> str:
    return _link(paper.title or paper.arxiv_id, paper.url)


def _source_link(passage: Passage) -> str:
    place = f"{passage.title} › {passage.place()} ({source_name(passage.arxiv_id)})"
    return _link(place, passage.url)


def _numbered(number: int, lines: Sequence[str]) -> str:
    """Lines as an item of a list that begins with this number."""
    first, *others = "\n".join(lines).split("\n")
    mark = f"{number}. "
    indent = " " * len(mark)
    return "\n".join([mark + first, *(indent + line if line else "" for line in others)])


def _quoted(passage: Passage, *, whole: bool = False) -> Iterator[str]:
    """A passage as a quotation that keeps its lines, its best sentences bold.

    whole: all of it in place of its excerpt.
    """
    shown = passage.excerpt
    text = passage.text if whole or shown is None else shown
    lines = []
    for line in visible(with_printed_citations(text)).splitlines():
        is_rule = line.startswith("|") and set(line) <= set("|-: ")
        if line.strip() and not is_rule:
            quoted = at_start(_escaped_row(line))
            for sentence in map(_escaped_row, passage.best_sentences or ()):
                quoted = quoted.replace(sentence, f"**{sentence}**", 1)
            lines.append(quoted)
    if not whole and len(lines) > _MOST_LINES:
        marked = (place for place, line in enumerate(lines) if "**" in line)
        first = min(next(marked, 0), len(lines) - _MOST_LINES)
        above, below = ["…"] if first else [], ["…"] if first + _MOST_LINES < len(lines) else []
        lines = [*above, *lines[first : first + _MOST_LINES], *below]
    yield from "\\\n".join(f"> {line}" for line in lines).split("\n")
