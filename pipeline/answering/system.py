"""The declaration of a system that answers questions, which stands beside its function."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
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

    answer: Callable[[UserQuestion, Tools], Coroutine[Any, Any, Answer]]
    """Answers a question. Raises as the client and the retriever do."""
    retrieves: bool = True
    """Whether it needs an index."""
    reads_records: bool = False
    """Whether it reads the records of the papers that a question names."""
    search_by: By = "fused"
    """The vectors by which its searches rank."""
