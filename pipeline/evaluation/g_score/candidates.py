"""Candidate sets: the writers whose sections are marked and voted on in one conversation.

ChatCite's Tables 1 and 2 have a set each: its own sections are 4.0642 in one and 4.1064 in the
other.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.settings import Settings
from pipeline.tables.writers import parse_writer

MAIN, ABLATIONS = "main", "ablations"
"""The sets of Table 1 and of Table 2."""
_ABLATION_SYSTEMS = (
    "chatcite_no_elements",
    "chatcite_no_incremental",
    "chatcite_no_reflection",
)
# Table 2 has ChatCite and few-shot beside the ablations.
_TABLE_2_SYSTEMS = (*_ABLATION_SYSTEMS, "few_shot", "chatcite")


def candidate_sets(settings: Settings, writers: Iterable[str]) -> dict[str, list[str]]:
    """Name of a set → those of these writers that are in it, by name; sets without one left out.

    writers: names of writers (`system@model`). Where CITELOOM_CANDIDATE_SETS names no set, all
    writers but the ablations are the main set, and the ablations a set of their own, with ChatCite
    and few-shot by the same models.
    """
    parsed = [parse_writer(name) for name in sorted(set(writers))]
    sets: dict[str, list[str]] = {}
    for set_name, members in settings.candidate_sets.items():
        sets[set_name] = [
            writer.name for writer in parsed if writer.name in members or writer.system in members
        ]
    if not settings.candidate_sets:
        models = {writer.model for writer in parsed if writer.system in _ABLATION_SYSTEMS}
        sets[MAIN] = [writer.name for writer in parsed if writer.system not in _ABLATION_SYSTEMS]
        sets[ABLATIONS] = [
            writer.name
            for writer in parsed
            if writer.system in _TABLE_2_SYSTEMS and writer.model in models
        ]
    return {set_name: names for set_name, names in sets.items() if names}
