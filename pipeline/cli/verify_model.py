"""The command `citeloom verify-model`: our encoder beside FlagEmbedding's."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.options import AsJson
from pipeline.settings import load_settings


def verify_model(
    longest: Annotated[bool, typer.Option(help="Also a text beyond what the model reads; minutes on a CPU.")] = False,
    as_json: AsJson = False,
) -> int:
    """Compare BGE-M3's vectors with those that FlagEmbedding gives."""
    from pipeline.cli.console import out, print_json, verdict_table, waiting
    from pipeline.embedding.verify import verify_model as compare

    settings = load_settings()
    with waiting("loading the model twice, encoding"):
        verdict = compare(settings, longest=longest)
    if as_json:
        print_json(verdict.as_json())
    else:
        out.print(verdict_table(verdict))
    return 0 if verdict.holds else 1
