"""Claims, passages and the steps of an answer as lines of text.

Papers and models may write anything: characters that control a terminal are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

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


def terminal_line(text: str, most: int | None = None) -> str:
    """A text for a terminal on one line of at most `most` characters; control characters and lone
    surrogates are replaced.
    """
    line = one_line(visible(text)).encode("utf-8", "replace").decode()
    if most is None or len(line) <= most:
        return line
    return f"{line[:most].rpartition(' ')[0] or line[:most]} …"


class StepRenderer:
    """The steps of one question in words. A passage that several steps read is printed once."""

    def __init__(self) -> None:
        self._printed: set[str] = set()
        self._passages: Mapping[str, Passage] = {}

    def __call__(self, step: Step, passages: Mapping[str, Passage]) -> list[str]:
        """The lines of a step. passages: those retrieved so far, by id."""
        self._passages = passages
        render = self._renderers.get(step["stage"])
        if render:
            lines = list(render(self, step))
        else:
            lines = [f"{step['stage']}: {terminal_line(json.dumps(dict(step)), TEXT_CHARS)}"]
        if step.get("failure"):
            failure = terminal_line(step["failure"], TEXT_CHARS)
            lines.append(f"  the model's answer could not be read: {failure}")
        return [
            f"{line[: len(line) - len(line.lstrip(' '))]}{terminal_line(line)}" for line in lines
        ]

    def _query(self, step: Step) -> Iterator[str]:
        if step["query"] is None:
            yield "query: none, the model wants no search"
            return
        own = (
            " (the question's own words: the model gave none)" if step["made"] == "question" else ""
        )
        yield f"query: {step['query']}{own}"
        yield f"  for the question: {step['question']}"

    def _search(self, step: Step) -> Iterator[str]:
        yield f"search: {number_of(len(step['found']), 'passage')} for {step['query']}"

    def _rank(self, step: Step) -> Iterator[str]:
        for window in step["windows"]:
            missing = len(window["missing"])
            unnamed = f", {missing} of them not named by the model" if missing else ""
            yield f"ranking: passages {window['from']} to {window['to']}{unnamed}"

    def _records(self, step: Step) -> Iterator[str]:
        yield "records of papers that the question names, or of their authors:"
        for place in step["shown"]:
            yield from self._passage_lines(place)

    def _claims(self, step: Step) -> Iterator[str]:
        yield f"reading {number_of(len(step['shown']), 'passage')}:"
        for place in step["shown"]:
            yield from self._passage_lines(place)
        # The step's own claims are the last ones.
        own_claims = step["claims"][len(step["claims"]) - len(step["texts"]) :]
        # Rows of earlier versions lack both keys.
        moved = {move["claim"] for move in step.get("moved", ())}
        loose = step.get("loose", ())
        for number, text in zip(own_claims, step["texts"], strict=True):
            yield f"  claim [{number}]: {text}"
            if number in moved:
                yield (
                    "    its names and figures are in another passage than the model named; it"
                    " rests on that one"
                )
            elif number in loose:
                yield "    no passage that was shown has all of its names and figures"
        dropped = {reason: count for reason, count in step["dropped"].items() if count}
        if dropped:
            reasons = [
                f"{count} {_DROPPED.get(reason, reason)}" for reason, count in dropped.items()
            ]
            yield f"  {number_of(sum(dropped.values()), 'claim')} dropped: {', '.join(reasons)}"
        if not step["texts"]:
            yield "  no claim"

    def _passage_lines(self, place: Mapping[str, str]) -> Iterator[str]:
        passage_id = place["passage_id"]
        passage = self._passages.get(passage_id)
        if passage is None:
            yield f"  passage of {source_name(place['arxiv_id'])}"
        else:
            source = source_name(passage.arxiv_id)
            yield f"  {passage.title} › {passage.place()} ({source})"
        if passage is not None and passage_id not in self._printed:
            self._printed.add(passage_id)
            yield f"    {terminal_line(passage.content(), PASSAGE_CHARS)}"
        address = passage_url(place["arxiv_id"], place["anchor"])
        if address:
            yield f"    {address}"

    def _reflect(self, step: Step) -> Iterator[str]:
        if step["query"]:
            yield f"reflection: not enough; next search: {step['query']}"
        else:
            yield f"reflection: {'not enough, and no query named' if step['silent'] else 'enough'}"
        if step["reasoning"]:
            yield f"  {terminal_line(step['reasoning'], TEXT_CHARS)}"

    def _answer(self, step: Step) -> Iterator[str]:
        if "abstained" in step:
            yield f"{step['stage']}: none, {step['abstained']}"
            return
        verdicts = {
            "yes": "hold the answer",
            "partly": "hold part of the answer",
            "no": "do not hold the answer",
        }
        yield f"{step['stage']}: the claims {verdicts.get(step['answered'], 'were not judged')}"
        if step["made"]:
            yield "  the claims themselves are the answer"
        yield from self._dropped(step)

    def _dropped(self, step: Step) -> Iterator[str]:
        yield from (f"  dropped, as it rests on no claim: {text}" for text in step["dropped"])

    def _bullets(self, step: Step) -> Iterator[str]:
        yield "reading a passage:"
        yield from self._passage_lines(step["shown"])
        yield from (f"  claim: {text}" for text in step["texts"])
        if not step["texts"]:
            yield "  no claim"

    def _generate(self, step: Step) -> Iterator[str]:
        yield f"the model by itself: {terminal_line(step['text'], TEXT_CHARS)}"

    def _split(self, step: Step) -> Iterator[str]:
        yield f"what it says, in {number_of(len(step['claims']), 'claim')}:"
        yield from (f"  {text}" for text in step["claims"])

    def _verify(self, step: Step) -> Iterator[str]:
        yield f"checked: {step['verdict']}: {step['claim']}"
        for place in step["evidence"]:
            yield from self._passage_lines(place)
        if step["reasoning"]:
            yield f"  {terminal_line(step['reasoning'], TEXT_CHARS)}"

    def _refine(self, step: Step) -> Iterator[str]:
        marks = ", ".join(
            f"{name.replace('_', ' ')} {mark}" for name, mark in step["marks"].items()
        )
        result = f"the draft stays, {step['kept']}" if step["kept"] else "a new text"
        yield f"refinement: {result}"
        if marks:
            yield f"  marks of the draft: {marks}"
        yield from self._dropped(step)

    _renderers: ClassVar[Mapping[str, Callable[[Any, Step], Iterator[str]]]] = {
        "query": _query,
        "search": _search,
        "rank": _rank,
        "records": _records,
        "claims": _claims,
        "reflect": _reflect,
        "answer": _answer,
        "bullets": _bullets,
        "generate": _generate,
        "split": _split,
        "verify": _verify,
        "draft": _answer,
        "refine": _refine,
    }
