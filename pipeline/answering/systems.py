"""The systems that answer questions, by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from pipeline.answering import arxivbot, wikichat
from pipeline.answering.direct import direct
from pipeline.answering.model_calls import Tools
from pipeline.answering.passages import passages
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import Answer
from pipeline.engine.systems import System, Writers, in_order
from pipeline.index.fusion import By
from pipeline.system_names import ANSWERING_SYSTEMS, FORMER_ANSWERING_SYSTEMS


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringSystem(System):
    """A system that answers questions."""

    respond: Callable[[UserQuestion, Tools], Coroutine[Any, Any, Answer]]
    retrieves: bool
    """Whether it needs an index."""
    reads_facts: bool = False
    """Whether it makes claims from tables too."""
    search_by: By = "fused"
    """The vectors by which its searches rank."""

    async def answer(self, question: UserQuestion, tools: Tools) -> Answer:
        """The answer to a question. Raises as the client, the retriever and the tables do."""
        return await self.respond(
            question, tools if self.reads_facts else replace(tools, facts=None)
        )


_ASKING = ("llm_model", "llm_context", "answer_tokens")
_READING = (*_ASKING, "answer_candidates", "answer_passages")

# As the report describes it: dense vectors alone rank, and no claim is from a table.
_ARXIVBOT = AnsweringSystem(
    name="arxivbot",
    respond=arxivbot.arxivbot,
    settings=(*_READING, "answer_hops"),
    prompts=("query", "rank", "claims", "reflect", "answer"),
    version=2,
    retrieves=True,
    search_by="dense",
)
SYSTEMS = in_order(
    ANSWERING_SYSTEMS,
    (
        _ARXIVBOT,
        replace(_ARXIVBOT, name="arxivbot_fused", version=7, search_by="fused", reads_facts=True),
        AnsweringSystem(
            name="wikichat",
            respond=wikichat.wikichat,
            settings=_READING,
            prompts=("search", "rank", "bullets", "direct", "split", "verify", "draft", "refine"),
            version=4,
            retrieves=True,
        ),
        AnsweringSystem(
            name="direct",
            respond=direct,
            settings=_ASKING,
            prompts=("direct",),
            retrieves=False,
        ),
        AnsweringSystem(
            name="passages",
            calls_model=False,
            respond=passages,
            retrieves=True,
            reads_facts=True,
        ),
    ),
)


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
