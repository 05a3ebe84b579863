"""Earlier names of systems, and names of those that were removed. Importing it is cheap."""

from collections.abc import Mapping

FORMER_RELATED_WORK_SYSTEMS = {
    "extractive": "write lead or lexrank, or notes for `citeloom relate`"
}
"""Systems that were removed, of which earlier data roots have rows → what to name instead."""
FORMER_ANSWERING_SYSTEMS = {
    "extractive": "write passages",
    "arxivbot_report": "its name is arxivbot",
}
EARLIER_NAMES = {"arxivbot_fused": "arxivbot", "arxivbot": "arxivbot_report"}
"""Systems → the name that earlier files and settings have for them, and that digests keep."""
_PRESENT_NAMES = {earlier: name for name, earlier in EARLIER_NAMES.items()}


def present_name(writer: str) -> str:
    """The name now of what an earlier file calls `system` or `system@model`."""
    return _renamed(writer, _PRESENT_NAMES)


def name_in_digests(writer: str) -> str:
    """The name of `system` or `system@model` in digests, which no new name changes."""
    return _renamed(writer, EARLIER_NAMES)


def present_names(writers: tuple[str, ...]) -> tuple[str, ...]:
    """The writers of a setting as they are called now, where it names `arxivbot_report`: it was
    written when `arxivbot` meant `arxivbot_fused`.
    """
    earlier = any(writer.partition("@")[0] == "arxivbot_report" for writer in writers)
    return tuple(map(present_name, writers)) if earlier else writers


def _renamed(writer: str, names: Mapping[str, str]) -> str:
    system, at, model = writer.partition("@")
    return f"{names.get(system, system)}{at}{model}"
