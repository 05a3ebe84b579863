"""How a section was written, from the trace that its summary keeps."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.evaluation.cited import Piece, paragraphs
from pipeline.related_work.summary import cited_numbers, normalize
from pipeline.report.formatting import number_of, references

Row = Mapping[str, Any]

# 30 references with 6 drafts of 3 KB each are 540 KB: up to here a page has every draft whole, beyond it those that
# were kept, and the beginnings of the others.
_MOST_DRAFT_CHARS = 600_000
_BEGINNING_CHARS = 400
# What `chatcite_grounded` does to a kept draft that lost a reference; its text in the trace is the one before.
_REPAIRED = ("repaired", "patched")


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft of a round. parent: the rank of the kept draft that it continues, 0 for the empty one. rank: its own
    among the kept, 0 where it was dropped. whole: whether its text is complete."""

    choice: int
    parent: int
    votes: int
    rank: int
    paragraphs: Sequence[Sequence[Piece]]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class SearchRound:
    """One step of ChatCite's search, for one reference.

    votes: the choice of each vote, None for one that named no draft. kept: how many drafts go on. earlier: references
    of the rounds before; lost: those that the best kept draft does not cite. guards: what the guard did to each kept
    draft, where the system has one.
    """

    reference: int
    drafts: Sequence[Draft]
    votes: Sequence[int | None]
    kept: int
    cut: bool
    earlier: int = 0
    lost: Sequence[int] = ()
    guards: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """How a section was written, and which of its citations do not fit the task.

    respelt: citations written otherwise than [Reference i]; bare: numbers such as [3]. notes: what was repaired or cut,
    one sentence each. failures: (step, reason) of answers that could not be read.
    """

    rounds: Sequence[SearchRound] = ()
    respelt: int = 0
    bare: int = 0
    out_of_range: Sequence[int] = ()
    uncited: Sequence[int] = ()
    plan: Sequence[tuple[str, Sequence[int]]] = ()
    groups: Sequence[tuple[str, Sequence[int]]] = ()
    revised: Sequence[tuple[int, str]] = ()
    summaries: Sequence[str] = ()
    notes: Sequence[str] = ()
    failures: Sequence[tuple[str, str]] = ()

    @property
    def has_steps(self) -> bool:
        """Whether there is more to show than the section."""
        return bool(self.rounds or self.plan or self.groups or self.summaries or self.notes or self.failures)


def parse_trace(text: str, numbers: Collection[int]) -> Trace:
    """The trace that a summary keeps as JSON. numbers: of the task's references."""
    trace: Row = json.loads(text or "{}")
    citations = trace.get("citations", {})
    return Trace(
        rounds=list(_rounds(trace, numbers)),
        respelt=citations.get("respelt", 0),
        bare=citations.get("bare", 0),
        out_of_range=citations.get("out_of_range", ()),
        uncited=citations.get("uncited", ()),
        plan=[(line["about"], line["cites"]) for line in trace.get("plan", {}).get("lines", ())],
        groups=[(group["name"], group["references"]) for group in trace.get("groups", {}).get("groups", ())],
        revised=[(item["sentence"], item["before"]) for item in trace.get("revision", {}).get("sentences", ())],
        summaries=trace.get("summaries", ()),
        notes=list(_notes(trace)),
        failures=list(_failures(trace)),
    )


def _rounds(trace: Row, numbers: Collection[int]) -> Iterator[SearchRound]:
    rounds = trace.get("rounds", ())
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
            complete = text == draft["text"]
            drafts.append(Draft(draft["choice"], draft["parent"], votes, rank, paragraphs(text, numbers), complete))
        guards = [_guard(guard) for guard in item.get("guard", ())]
        lost = _lost(item, earlier)
        yield SearchRound(
            item["reference"], drafts, tuple(item["votes"]), len(kept), item["cut"], len(earlier), lost, guards
        )
        earlier.append(item["reference"])


def _lost(item: Row, earlier: Sequence[int]) -> list[int]:
    """The references of earlier rounds that the best kept draft does not cite; a repaired draft cites them all."""
    if not item["kept"] or any(guard["how"] in _REPAIRED for guard in item.get("guard", ())[:1]):
        return []
    cited = cited_numbers(normalize(item["drafts"][item["kept"][0] - 1]["text"])[0])
    return [number for number in earlier if number not in cited]


def _guard(guard: Row) -> str:
    """What the guard did to a kept draft, and why."""
    reasons = [
        f"it did not cite {references(guard['missing'])}" if guard["missing"] else "",
        f"it cited {references(guard['out_of_range'])}, not yet allowed" if guard["out_of_range"] else "",
        f"it named {number_of(guard['unknown_passages'], 'unknown passage')}" if guard["unknown_passages"] else "",
        f"a plain sentence was added for {references(guard['made'])}" if guard["made"] else "",
    ]
    return "; ".join(filter(None, [f"draft {guard['choice']} {guard['how']}", *reasons]))


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
            if trace.get(name, {}).get(key):
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
    for item in trace.get("rounds", ()):
        for guard in item.get("guard", ()):
            if guard["failure"]:
                yield f"draft for reference {item['reference']}", guard["failure"]
