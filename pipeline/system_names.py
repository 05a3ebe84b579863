"""The names of all systems, in the order of commands and reports. Importing it is cheap."""

RELATED_WORK_SYSTEMS = (
    "chatcite", "chatcite_no_elements", "chatcite_no_incremental", "chatcite_no_reflection",
    "few_shot", "litllm", "zero_shot", "litllm_plan", "extractive",
    "lead", "lexrank",
)  # fmt: skip
ANSWERING_SYSTEMS = ("arxivbot", "arxivbot_report", "direct", "extractive", "wikichat")
