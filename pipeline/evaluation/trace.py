"""A summary's trace as a page shows it. Not here: how a search goes and what it records (`related_work.chatcite`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline.evaluation.cited import paragraphs
from pipeline.evaluation.report import DraftView, RoundView, TraceView


def trace_view(trace: str, numbers: Collection[int]) -> TraceView:
    """The trace that a summary keeps as JSON; rounds only where its system searched in rounds, as ChatCite does."""
    told: Mapping[str, Any] = json.loads(trace or "{}")
    citations = told.get("citations", {})
    return TraceView(
        rounds=[_round(each, numbers) for each in told.get("rounds", ())],
        respelt=citations.get("respelt", 0),
        out_of_range=citations.get("out_of_range", ()),
        uncited=citations.get("uncited", ()),
        at_once=told.get("at_once", False),
    )


def _round(told: Mapping[str, Any], numbers: Collection[int]) -> RoundView:
    kept: Sequence[int] = told["kept"]
    drafts = [
        DraftView(
            choice=draft["choice"],
            parent=draft["parent"],
            votes=tally,
            rank=kept.index(draft["choice"]) + 1 if draft["choice"] in kept else 0,
            paragraphs=paragraphs(draft["text"], numbers),
        )
        for draft, tally in zip(told["drafts"], told["tallies"], strict=True)
    ]
    return RoundView(told["reference"], drafts, tuple(told["votes"]), len(kept), told["cut"])
