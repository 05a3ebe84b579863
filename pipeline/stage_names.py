"""Names of all stages, in the order in which they run, and of all systems, for --help and
completion.

Written from `pipeline.stages` and the systems by `python -m tools.generate_reference`; do not edit
by hand. Importing it is cheap.
"""

STAGE_NAMES = (
    "pages",
    "dump_members",
    "metadata",
    "papers",
    "passages",
    "references",
    "citations",
    "embeddings",
    "index_receipts",
    "questions",
    "related_work_tasks",
    "key_elements",
    "summaries",
    "g_scores",
    "citation_support",
    "answers",
    "answer_grades",
    "scores",
    "answer_scores",
    "report",
)
"""Those of their tables."""
RELATED_WORK_SYSTEMS = (
    "chatcite",
    "chatcite_no_elements",
    "chatcite_no_incremental",
    "chatcite_no_reflection",
    "few_shot",
    "litllm",
    "zero_shot",
    "litllm_plan",
    "lead",
    "lexrank",
)
ANSWERING_SYSTEMS = (
    "arxivbot",
    "arxivbot_fused",
    "direct",
    "passages",
    "wikichat",
)

_PLAIN_NAMES = {
    "dump_members": "dump",
    "index_receipts": "index",
    "related_work_tasks": "tasks",
}


def plain_name(stage: str) -> str:
    """What commands and messages call a stage."""
    return _PLAIN_NAMES.get(stage, stage)
