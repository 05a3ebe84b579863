"""How a section was written, from the trace that its summary keeps."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pipeline.evaluation.cited import paragraphs
from pipeline.related_work.summary import cited_numbers, normalize
from pipeline.report.formatting import number_of, references

Row = Mapping[str, Any]

# 30 references with 6 drafts of 3 KB each are 540 KB: up to here a page has every draft whole, beyond it those that
# were kept, and the beginnings of the others.
_MOST_DRAFT_CHARS = 600_000
_BEGINNING_CHARS = 400
# What `chatcite_grounded` does to a kept draft that lost a reference; its text in the trace is the one before.
_REPAIRED = ("repaired", "patched")
# Parts of a trace that a system may lack.
_NOTHING: dict[str, Any] = {"citations": {}, "plan": {}, "groups": {}, "revision": {}, "summaries": (), "rounds": ()}


def read_trace(text: str | None, numbers: Collection[int]) -> dict[str, Any]:
    """The trace that a summary keeps as JSON, with what its pages need beside it. numbers: of the task's references.

    Added are notes: what was repaired or cut, one sentence each; failures: (step, reason) of answers that could not be
    read; has_steps: whether there is more to show than the section; and what `_rounds` adds to each round.
    """
    trace: dict[str, Any] = _NOTHING | json.loads(text or "{}")
    laid_out = {
        "rounds": list(_rounds(trace["rounds"], numbers)),
        "notes": list(_notes(trace)),
        "failures": list(_failures(trace)),
    }
    parts = (trace["plan"].get("lines"), trace["groups"].get("groups"), trace["summaries"])
    return trace | laid_out | {"has_steps": any((*laid_out.values(), *parts))}


def _rounds(rounds: Sequence[Row], numbers: Collection[int]) -> Iterator[Row]:
    """Rounds of the search, one for each reference.

    Added are earlier: how many references the rounds before had; lost: those that the best kept draft does not cite;
    and to each draft its votes, its paragraphs, its rank among the kept, 0 where it was dropped, and whether its text
    is whole.
    """
    whole = sum(len(draft["text"]) for item in rounds for draft in item["drafts"]) <= _MOST_DRAFT_CHARS
    earlier: list[int] = []
    for item in rounds:
        kept: Sequence[int] = item["kept"]
        drafts = []
        for draft, votes in zip(item["drafts"], item["tallies"], strict=True):
            rank = kept.index(draft["choice"]) + 1 if draft["choice"] in kept else 0
            text = draft["text"]
            if not (whole or rank) and len(text) > _BEGINNING_CHARS:
                text = f"{text[:_BEGINNING_CHARS]}…"
            added = {"votes": votes, "rank": rank, "paragraphs": paragraphs(text, numbers)}
            drafts.append(draft | added | {"whole": text == draft["text"]})
        yield {**item, "drafts": drafts, "earlier": len(earlier), "lost": _lost(item, earlier)}
        earlier.append(item["reference"])


def _lost(item: Row, earlier: Sequence[int]) -> list[int]:
    """The references of earlier rounds that the best kept draft does not cite; a repaired draft cites them all."""
    if not item["kept"] or any(guard["how"] in _REPAIRED for guard in item.get("guard", ())[:1]):
        return []
    cited = cited_numbers(normalize(item["drafts"][item["kept"][0] - 1]["text"])[0])
    return [number for number in earlier if number not in cited]


def _notes(trace: Row) -> Iterator[str]:
    """What was repaired, cut or added, in words."""
    if trace.get("examples"):
        yield f"The prompt had {number_of(len(trace['examples']), 'example')} of style."
    if trace.get("steps"):
        yield "The papers were read in full." if trace["steps"] == 1 else "The papers were first summarised one by one."
    for name, text in (("contents_cut", "cut before the summary"), ("summaries_cut", "cut to fit the prompt")):
        if trace.get(name):
            papers = ["the target" if number == 0 else f"reference {number}" for number in trace[name]]
            yield f"{', '.join(papers).capitalize()}: {text}."
    if trace.get("truncated"):
        texts = ", ".join(f"{kind.replace('_', ' ')} {number}" for kind, number in trace["truncated"].items())
        yield f"Texts that ended at the token limit: {texts}."
    for name, subject in (("plan", "The plan"), ("groups", "The grouping")):
        for key, text in (
            ("dropped", "named {}, which the task does not have"),
            ("repeated", "named {} twice"),
            ("added", "left out {}, which was added"),
        ):
            if trace[name].get(key):
                yield f"{subject} {text.format(references(trace[name][key]))}."
    cut = [item["reference"] for item in trace.get("evidence", ()) if item["cut"]]
    if cut:
        yield f"Not all passages were shown for {references(cut)}."


def _failures(trace: Row) -> Iterator[tuple[str, str]]:
    """Structured answers that could not be read, after one repair each; the system went on without them."""
    for name, step in (("plan", "plan"), ("groups", "grouping"), ("support", "own judge"), ("revision", "revision")):
        if trace.get(name, {}).get("failure"):
            yield step, trace[name]["failure"]
    for item in trace.get("evidence", ()):
        if item["failure"]:
            yield f"evidence of reference {item['reference']}", item["failure"]
    for item in trace["rounds"]:
        for guard in item.get("guard", ()):
            if guard["failure"]:
                yield f"draft for reference {item['reference']}", guard["failure"]
