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
ABLATION_SYSTEMS = (
    "chatcite_no_elements",
    "chatcite_no_incremental",
    "chatcite_no_reflection",
)
# Table 2 has them beside the ablations.
_WHOLE_SYSTEMS = ("few_shot", "chatcite")


def candidate_sets(settings: Settings, writers: Iterable[str]) -> dict[str, list[str]]:
    """Name of a set → those of these writers that are in it, by name; sets without one left out.

    writers: names of writers (`system@model`). Where CITELOOM_CANDIDATE_SETS names no set, all
    writers but the ablations are the main set, and the ablations a set of their own, with ChatCite
    and few-shot by the same models.
    """
    by_name = {name: parse_writer(name) for name in sorted(set(writers))}
    if settings.candidate_sets:
        sets = {
            set_name: [
                name
                for name, writer in by_name.items()
                if name in members or writer.system in members
            ]
            for set_name, members in settings.candidate_sets.items()
        }
    else:
        models = {writer.model for writer in by_name.values() if writer.system in ABLATION_SYSTEMS}
        in_table_2 = (*ABLATION_SYSTEMS, *_WHOLE_SYSTEMS)
        sets = {
            MAIN: [
                name for name, writer in by_name.items() if writer.system not in ABLATION_SYSTEMS
            ],
            ABLATIONS: [
                name
                for name, writer in by_name.items()
                if writer.system in in_table_2 and writer.model in models
            ],
        }
    return {set_name: names for set_name, names in sets.items() if names}
