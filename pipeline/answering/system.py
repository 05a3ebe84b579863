"""The declaration of a system that answers questions, which stands beside its function."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from pipeline.answering.model_calls import Tools
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import Answer
from pipeline.engine.systems import System
from pipeline.index.fusion import By

ASKING = ("llm_model", "llm_context", "answer_tokens")
"""The settings of every system that calls a model."""
READING = (*ASKING, "answer_candidates", "answer_passages")
"""Those of a system whose model reads passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringSystem(System):
    """A system that answers questions."""

    respond: Callable[[UserQuestion, Tools], Coroutine[Any, Any, Answer]]
    retrieves: bool = True
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
