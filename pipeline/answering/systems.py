"""The systems that answer questions, in the order of commands and reports."""

from __future__ import annotations

from pipeline.answering import arxivbot, direct, passages, wikichat
from pipeline.engine.systems import Writers
from pipeline.system_names import FORMER_ANSWERING_SYSTEMS

SYSTEMS = {
    system.name: system
    for system in (
        arxivbot.ARXIVBOT,
        arxivbot.ARXIVBOT_FUSED,
        direct.DIRECT,
        passages.PASSAGES,
        wikichat.WIKICHAT,
    )
}


def writes_answers(system: str) -> bool:
    """Whether the texts of a system are answers, which can be graded: `passages` only shows
    passages. system: also an imported or a former one.
    """
    return system not in SYSTEMS or SYSTEMS[system].calls_model


ANSWERING_WRITERS = Writers(
    SYSTEMS,
    "answer_systems",
    "arxivbot_fused",
    without_model="passages",
    former=FORMER_ANSWERING_SYSTEMS,
)
