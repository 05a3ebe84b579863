"""A summary's trace as a page shows it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pipeline.evaluation.cited import paragraphs
from pipeline.related_work.summary import cited_numbers, normalize
from pipeline.report.filters import number_of, reference
from pipeline.report.views import DraftView, RoundView, TraceView

Told = Mapping[str, Any]

# 30 references with 6 drafts of 3 KB each are 540 KB: up to here a page has every draft whole, beyond it those that
# were kept, and of the others their beginnings.
_MOST_DRAFT_CHARS = 600_000
_BEGINNING = 400
# What `chatcite_grounded` does to a kept draft that lost a reference; its text here is the one before.
_MENDED = ("repaired", "patched")


def trace_view(trace: str, numbers: Collection[int]) -> TraceView:
    """The trace that a summary keeps as JSON; rounds only where its system searched in rounds, as ChatCite does."""
    told: Told = json.loads(trace or "{}")
    citations = told.get("citations", {})
    return TraceView(
        rounds=list(_rounds(told, numbers)),
        respelt=citations.get("respelt", 0),
        bare=citations.get("bare", 0),
        out_of_range=citations.get("out_of_range", ()),
        uncited=citations.get("uncited", ()),
        plan=[(line["about"], line["cites"]) for line in told.get("plan", {}).get("lines", ())],
        groups=[(group["name"], group["references"]) for group in told.get("groups", {}).get("groups", ())],
        revised=[(each["sentence"], each["before"]) for each in told.get("revision", {}).get("sentences", ())],
        summaries=told.get("summaries", ()),
        notes=list(_notes(told)),
        failures=list(_failures(told)),
    )


def _rounds(told: Told, numbers: Collection[int]) -> Iterator[RoundView]:
    rounds = told.get("rounds", ())
    whole = sum(len(draft["text"]) for each in rounds for draft in each["drafts"]) <= _MOST_DRAFT_CHARS
    before: list[int] = []
    for each in rounds:
        yield _round(each, numbers, whole, len(before), _lost(each, before))
        before.append(each["reference"])


def _lost(told: Told, before: Sequence[int]) -> list[int]:
    """The references of earlier rounds that the best kept draft does not cite; one that was mended cites them all."""
    if not told["kept"] or any(guard["how"] in _MENDED for guard in told.get("guard", ())[:1]):
        return []
    cited = cited_numbers(normalize(told["drafts"][told["kept"][0] - 1]["text"])[0])
    return [number for number in before if number not in cited]


def _round(told: Told, numbers: Collection[int], whole: bool, earlier: int, lost: Sequence[int]) -> RoundView:
    kept: Sequence[int] = told["kept"]
    drafts = [
        _draft(draft, tally, kept.index(draft["choice"]) + 1 if draft["choice"] in kept else 0, numbers, whole)
        for draft, tally in zip(told["drafts"], told["tallies"], strict=True)
    ]
    guards = [_guard(each) for each in told.get("guard", ())]
    return RoundView(told["reference"], drafts, tuple(told["votes"]), len(kept), told["cut"], earlier, lost, guards)


def _draft(told: Told, votes: int, rank: int, numbers: Collection[int], whole: bool) -> DraftView:
    text: str = told["text"]
    shown = text if whole or rank or len(text) <= _BEGINNING else f"{text[:_BEGINNING]}…"
    return DraftView(told["choice"], told["parent"], votes, rank, paragraphs(shown, numbers), shown == text)


def _guard(told: Told) -> tuple[str, str]:
    """What became of a kept draft, and what was amiss with it."""
    amiss = [
        f"it lacked {_listed(told['missing'])}" if told["missing"] else "",
        f"it cited {_listed(told['out_of_range'])}, which it may not" if told["out_of_range"] else "",
        f"it named {number_of(told['unknown_passages'], 'passage')} that there are not"
        if told["unknown_passages"]
        else "",
        f"a plain sentence was made for {_listed(told['made'])}" if told["made"] else "",
    ]
    return f"draft {told['choice']} {told['how']}", "; ".join(filter(None, amiss))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(reference, numbers))


def _notes(told: Told) -> Iterator[str]:
    """What was mended, cut or shown besides, in words."""
    if told.get("examples"):
        yield f"{number_of(len(told['examples']), 'example')} of style shown."
    if told.get("steps"):
        yield "The papers were read whole." if told["steps"] == 1 else "The papers were summarised first, one by one."
    for name, said in (("contents_cut", "cut to be summarised"), ("summaries_cut", "cut to fit the prompt")):
        if told.get(name):
            papers = ["the target" if number == 0 else f"reference {number}" for number in told[name]]
            yield f"{', '.join(papers).capitalize()}: {said}."
    if told.get("truncated"):
        texts = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in told["truncated"].items())
        yield f"Texts that ended at the longest answer allowed: {texts}."
    yield from _mended("The plan", told.get("plan", {}))
    yield from _mended("The grouping", told.get("groups", {}))
    cut = [each["reference"] for each in told.get("evidence", ()) if each["cut"]]
    if cut:
        yield f"Not all passages were shown for {_listed(cut)}."


def _mended(what: str, told: Told) -> Iterator[str]:
    done = {
        "dropped": "named {} that there are not",
        "repeated": "named {} twice",
        "added": "left out {}, put in after",
    }
    for name, said in done.items():
        if told.get(name):
            yield f"{what} {said.format(_listed(told[name]))}."


def _failures(told: Told) -> Iterator[tuple[str, str]]:
    """Structured answers that could not be read, after one repair each; the system went on without them."""
    for name, at in (("plan", "plan"), ("groups", "grouping"), ("support", "own judge"), ("revision", "revision")):
        if told.get(name, {}).get("failure"):
            yield at, told[name]["failure"]
    for each in told.get("evidence", ()):
        if each["failure"]:
            yield f"evidence of reference {each['reference']}", each["failure"]
    for each in told.get("rounds", ()):
        for guard in each.get("guard", ()):
            if guard["failure"]:
                yield f"draft for reference {each['reference']}", guard["failure"]
