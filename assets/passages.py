"""The asset `passages`, with pictures of its lengths and kinds."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

import dagster as dg

from assets.shown import bars, histogram, markdown_table, share
from assets.stage_asset import stage_asset
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.passages.pack import FEWEST_WORDS, MOST_WORDS
from pipeline.passages.stages import PASSAGES


def lengths_and_kinds(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """A histogram of the month's passage lengths in words, and its kinds as bars and a table."""
    columns = workspace.root.read(tables.PASSAGES, month, ["words", "kind"])
    words, kinds = columns["words"].to_pylist(), columns["kind"].to_pylist()
    of_kind: dict[str, list[int]] = {}
    for kind, count in zip(kinds, words, strict=True):
        of_kind.setdefault(kind.replace("_", " "), []).append(count)
    most_first = dict(sorted(of_kind.items(), key=lambda item: (-len(item[1]), item[0])))
    picture = histogram(
        "lengths",
        words,
        range(0, max([MOST_WORDS, *words]) + 20, 10),
        (FEWEST_WORDS, MOST_WORDS),
        title=f"{len(words):,} passages of {month}",
        xlabel="words",
        ylabel="passages",
    )
    return {
        "lengths": dg.MetadataValue.md(picture),
        "kinds": dg.MetadataValue.md(f"{_kinds_picture(most_first, month)}\n\n{_kinds_table(most_first)}"),
    }


def _kinds_picture(lengths: Mapping[str, list[int]], month: str) -> str:
    counts = {kind: len(found) for kind, found in lengths.items()}
    return bars("kinds", counts, title=f"kinds of passages of {month}", xlabel="passages")


def _kinds_table(lengths: Mapping[str, list[int]]) -> str:
    total = sum(map(len, lengths.values()))
    rows = [
        (
            kind,
            f"{len(found):,}",
            share(len(found), total),
            int(median(found)),
            sum(count < FEWEST_WORDS for count in found),
            sum(count > MOST_WORDS for count in found),
        )
        for kind, found in lengths.items()
    ]
    head = ("kind", "passages", "share", "median words", f"under {FEWEST_WORDS} words", f"over {MOST_WORDS} words")
    return markdown_table(head, rows)


passages = stage_asset(
    PASSAGES,
    group="corpus",
    description="Passages of 20 to 300 words with title and section path: short neighbours of one section are packed, "
    "long ones split at sentence ends.",
    extras=lengths_and_kinds,
)
