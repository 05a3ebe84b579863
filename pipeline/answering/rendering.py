"""Claims, passages and the steps of an answer as lines of text.

Papers and models may write anything: characters that control a terminal are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.corpus.links import passage_url, source_name
from pipeline.corpus.nouns import ClaimOrigin, Passage
from pipeline.corpus.parse.policies import with_printed_citations
from pipeline.text import number_of, one_line, visible

# Of a passage among the steps; the link leads to the whole.
PASSAGE_CHARS, TEXT_CHARS = 280, 400

CLAIM_ORIGINS: Mapping[ClaimOrigin, str] = {
    "passage": "",
    "model": "said by the model, which names this passage as its source",
    "front_matter": "from the tables",
}

# Fields of steps that name passages.
_PASSAGES = ("shown", "evidence", "read")

Step = Mapping[str, Any]


def terminal_line(text: str, most: int | None = None) -> str:
    """A text for a terminal on one line of at most `most` characters; control characters and lone
    surrogates are replaced.
    """
    line = one_line(visible(text)).encode("utf-8", "replace").decode()
    if most is None or len(line) <= most:
        return line
    return f"{line[:most].rpartition(' ')[0] or line[:most]} …"


class StepRenderer:
    """The steps of one question as lines. A passage that several steps read is printed once."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, step: Step, passages: Mapping[str, Passage]) -> list[str]:
        """The stage of a step with its fields, then a line for each passage and text; those without
        a value are left out. passages: those retrieved so far, by id.
        """
        fields: list[str] = []
        lines: list[str] = []
        for name, value in step.items():
            label = name.replace("_", " ")
            if name == "stage" or value in (None, "", [], {}):
                continue
            if name in _PASSAGES:
                for place in [value] if isinstance(value, Mapping) else value:
                    lines += self._passage_lines(place, passages)
            elif name == "found":
                fields.append(number_of(len(value), "passage"))
            elif isinstance(value, list) and not isinstance(value[0], int):
                lines += [f"  {label}: {_in_words(item)}" for item in value]
            else:
                fields.append(f"{label} {_in_words(value)}")
        return [terminal_line(f"{step['stage']}: {'; '.join(fields)}"), *lines]

    def _passage_lines(
        self, place: Mapping[str, str], passages: Mapping[str, Passage]
    ) -> Iterator[str]:
        passage = passages.get(place["passage_id"])
        if passage is None:
            yield f"  passage of {source_name(place['arxiv_id'])}"
        else:
            source = source_name(passage.arxiv_id)
            yield f"  {terminal_line(f'{passage.title} › {passage.place()} ({source})')}"
        if passage is not None and passage.passage_id not in self._printed:
            self._printed.add(passage.passage_id)
            yield f"    {terminal_line(with_printed_citations(passage.text), PASSAGE_CHARS)}"
        address = passage_url(place["arxiv_id"], place["anchor"])
        if address:
            yield f"    {terminal_line(address)}"


def _in_words(value: object) -> str:
    """A value of a step on one line."""
    if isinstance(value, Mapping):
        pairs = value.items()
        return ", ".join(f"{name.replace('_', ' ')} {_in_words(item)}" for name, item in pairs)
    if isinstance(value, list):
        return " ".join(map(_in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return terminal_line(str(value), TEXT_CHARS)
