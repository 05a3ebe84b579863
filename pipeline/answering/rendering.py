"""Claims, passages and the steps of an answer as lines of text.

Papers and models may write anything: characters that control a terminal are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.corpus.links import passage_url, source_name
from pipeline.corpus.nouns import ClaimOrigin, Passage
from pipeline.text import number_of, one_line, visible

# Of a passage among the steps; the link leads to the whole.
PASSAGE_CHARS, TEXT_CHARS = 280, 400

CLAIM_ORIGINS: Mapping[ClaimOrigin, str] = {
    "passage": "",
    "model": "said by the model, which names this passage as its source",
    "front_matter": "from the tables",
}

_DROPPED = {
    "unknown": "of no passage that was shown",
    "irrelevant": "of passages that the model called irrelevant",
    "repeated": "empty or already known",
    "questions": "questions",
    "headings": "only the heading of their passage",
    "over": "beyond the most",
}

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a question's steps, by id. printed: ids of those whose text was printed."""

    by_id: Mapping[str, Passage]
    printed: set[str]


def terminal_safe(text: str) -> str:
    """A text for a terminal: control characters and lone surrogates are replaced."""
    return visible(text).encode("utf-8", "replace").decode()


def terminal_line(text: str, most: int | None = None) -> str:
    """A text for a terminal on one line of at most `most` characters."""
    line = one_line(terminal_safe(text))
    if most is None or len(line) <= most:
        return line
    return f"{line[:most].rpartition(' ')[0] or line[:most]} …"


def place_in_paper(passage: Passage) -> str:
    """Title and sections, or the kind of a passage outside of sections."""
    return f"{passage.title} › {passage.place()}"


def place_and_paper(passage: Passage) -> str:
    place = terminal_line(place_in_paper(passage))
    return f"{place} ({terminal_line(source_name(passage.arxiv_id))})"


class StepRenderer:
    """The steps of one question in words. A passage that several steps read is printed once."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, step: Step, passages: Mapping[str, Passage]) -> list[str]:
        """The lines of a step. passages: those retrieved so far, by id."""
        render = _RENDERERS.get(step["stage"])
        if render:
            lines = list(render(step, Passages(passages, self._printed)))
        else:
            lines = [f"{step['stage']}: {terminal_line(json.dumps(dict(step)), TEXT_CHARS)}"]
        if step.get("failure"):
            failure = terminal_line(step["failure"], TEXT_CHARS)
            lines.append(f"  the model's answer could not be read: {failure}")
        return lines


def _query(step: Step, passages: Passages) -> Iterator[str]:
    if step["query"] is None:
        yield "query: none, the model wants no search"
        return
    own = " (the question's own words: the model gave none)" if step["made"] == "question" else ""
    yield f"query: {terminal_line(step['query'])}{own}"
    yield f"  for the question: {terminal_line(step['question'])}"


def _search(step: Step, passages: Passages) -> Iterator[str]:
    yield f"search: {number_of(len(step['found']), 'passage')} for {terminal_line(step['query'])}"


def _rank(step: Step, passages: Passages) -> Iterator[str]:
    for window in step["windows"]:
        missing = len(window["missing"])
        unnamed = f", {missing} of them not named by the model" if missing else ""
        yield f"ranking: passages {window['from']} to {window['to']}{unnamed}"


def _facts(step: Step, passages: Passages) -> Iterator[str]:
    yield "from the tables:"
    yield from (f"  claim: {terminal_line(text)}" for text in step["claims"])


def _count_papers(step: Step, passages: Passages) -> Iterator[str]:
    yield f"counted in the tables: {terminal_line(step['text']) or 'they do not say how many'}"


def _claims(step: Step, passages: Passages) -> Iterator[str]:
    yield f"reading {number_of(len(step['shown']), 'passage')}:"
    for place in step["shown"]:
        yield from _passage_lines(place, passages, step["suspicious"])
    # The step's own claims are the last ones.
    own_claims = step["claims"][len(step["claims"]) - len(step["texts"]) :]
    # Rows of earlier versions lack both keys.
    moved = {move["claim"] for move in step.get("moved", ())}
    loose = step.get("loose", ())
    for number, text in zip(own_claims, step["texts"], strict=True):
        yield f"  claim [{number}]: {terminal_line(text)}"
        if number in moved:
            yield (
                "    its names and figures are in another passage than the model named; it rests on"
                " that one"
            )
        elif number in loose:
            yield "    no passage that was shown has all of its names and figures"
    dropped = {reason: count for reason, count in step["dropped"].items() if count}
    if dropped:
        reasons = [f"{count} {_DROPPED.get(reason, reason)}" for reason, count in dropped.items()]
        yield f"  {number_of(sum(dropped.values()), 'claim')} dropped: {', '.join(reasons)}"
    if not step["texts"]:
        yield "  no claim"


def _passage_lines(
    place: Mapping[str, str], passages: Passages, suspicious: Sequence[str]
) -> Iterator[str]:
    passage_id = place["passage_id"]
    passage = passages.by_id.get(passage_id)
    if passage is None:
        yield f"  passage of {terminal_line(source_name(place['arxiv_id']))}"
    else:
        yield f"  {place_and_paper(passage)}"
    if passage is not None and passage_id not in passages.printed:
        passages.printed.add(passage_id)
        yield f"    {terminal_line(passage.content(), PASSAGE_CHARS)}"
    address = passage_url(place["arxiv_id"], place["anchor"])
    if address:
        yield f"    {address}"
    if passage_id in suspicious:
        yield "    it looks like a prompt injection; the model reads it as data"


def _quote(step: Step, passages: Passages) -> Iterator[str]:
    yield f"reading {number_of(len(step['read']), 'passage')}:"
    for place in step["read"]:
        yield from _passage_lines(place, passages, ())
    yield from (f"  quoted: {terminal_line(text)}" for text in step["quotes"])
    if not step["quotes"]:
        yield "  nothing that fits the question"


def _reflect(step: Step, passages: Passages) -> Iterator[str]:
    if step["query"]:
        yield f"reflection: not enough; next search: {terminal_line(step['query'])}"
    else:
        yield f"reflection: {'not enough, and no query named' if step['silent'] else 'enough'}"
    if step["reasoning"]:
        yield f"  {terminal_line(step['reasoning'], TEXT_CHARS)}"


def _answer(step: Step, passages: Passages) -> Iterator[str]:
    if "abstained" in step:
        yield f"{step['stage']}: none, {terminal_line(step['abstained'])}"
        return
    verdicts = {
        "yes": "hold the answer",
        "partly": "hold part of the answer",
        "no": "do not hold the answer",
    }
    yield f"{step['stage']}: the claims {verdicts.get(step['answered'], 'were not judged')}"
    if step["made"]:
        yield "  the claims themselves are the answer"
    yield from _dropped(step)


def _dropped(step: Step) -> Iterator[str]:
    yield from (
        f"  dropped, as it rests on no claim: {terminal_line(text)}" for text in step["dropped"]
    )


def _bullets(step: Step, passages: Passages) -> Iterator[str]:
    yield "reading a passage:"
    yield from _passage_lines(step["shown"], passages, step["suspicious"])
    yield from (f"  claim: {terminal_line(text)}" for text in step["texts"])
    if not step["texts"]:
        yield "  no claim"


def _generate(step: Step, passages: Passages) -> Iterator[str]:
    yield f"the model by itself: {terminal_line(step['text'], TEXT_CHARS)}"


def _split(step: Step, passages: Passages) -> Iterator[str]:
    yield f"what it says, in {number_of(len(step['claims']), 'claim')}:"
    yield from (f"  {terminal_line(text)}" for text in step["claims"])


def _verify(step: Step, passages: Passages) -> Iterator[str]:
    yield f"checked: {step['verdict']}: {terminal_line(step['claim'])}"
    for place in step["evidence"]:
        yield from _passage_lines(place, passages, step["suspicious"])
    if step["reasoning"]:
        yield f"  {terminal_line(step['reasoning'], TEXT_CHARS)}"


def _refine(step: Step, passages: Passages) -> Iterator[str]:
    marks = ", ".join(f"{name.replace('_', ' ')} {mark}" for name, mark in step["marks"].items())
    result = f"the draft stays, {terminal_line(step['kept'])}" if step["kept"] else "a new text"
    yield f"refinement: {result}"
    if marks:
        yield f"  marks of the draft: {marks}"
    yield from _dropped(step)


_RENDERERS: Mapping[str, Callable[[Step, Passages], Iterator[str]]] = {
    "query": _query,
    "search": _search,
    "rank": _rank,
    "facts": _facts,
    "count": _count_papers,
    "claims": _claims,
    "reflect": _reflect,
    "answer": _answer,
    "bullets": _bullets,
    "quote": _quote,
    "generate": _generate,
    "split": _split,
    "verify": _verify,
    "draft": _answer,
    "refine": _refine,
}
