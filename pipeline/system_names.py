"""The names of all systems, in the order of commands and reports. Importing it is cheap."""

RELATED_WORK_SYSTEMS = (
    "chatcite", "chatcite_no_elements", "chatcite_no_incremental", "chatcite_no_reflection",
    "few_shot", "litllm", "zero_shot", "litllm_plan",
    "lead", "lexrank",
)  # fmt: skip
FORMER_RELATED_WORK_SYSTEMS = {
    "extractive": "write lead or lexrank, or notes for `citeloom relate`"
}
"""Systems that were removed, of which earlier data roots have rows → what to name instead."""
ANSWERING_SYSTEMS = ("arxivbot", "arxivbot_report", "direct", "passages", "wikichat")
FORMER_ANSWERING_SYSTEMS = {"extractive": "write passages"}
