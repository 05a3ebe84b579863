"""The asset `passages`, with a picture of its lengths. Not here: packing (`pipeline.passages`)."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline import tables
from pipeline.passages.pack import FEWEST_WORDS, MOST_WORDS
from pipeline.passages.stages import PASSAGES
from pipeline.stages import Workspace


def length_histogram(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """A histogram of the month's passage lengths in words, as a picture for the UI."""
    from matplotlib.figure import Figure

    words = workspace.root.read(tables.PASSAGES, month, ["words"])["words"].to_pylist()
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.hist(words, bins=range(0, max([MOST_WORDS, *words]) + 20, 10), color="#3b6ea5")
    for bound in (FEWEST_WORDS, MOST_WORDS):
        axes.axvline(bound, color="#b5523b", linewidth=1, linestyle="--")
    axes.set(title=f"{len(words)} passages of {month}", xlabel="words", ylabel="passages")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return {"lengths": dg.MetadataValue.md(f"![lengths]({_data_url(picture.getvalue())})")}


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


passages = stage_asset(
    PASSAGES,
    group="corpus",
    description="Passages of 20 to 300 words with title and section path: short neighbours of one section are packed, "
    "long ones split at sentence ends.",
    extras=length_histogram,
)
