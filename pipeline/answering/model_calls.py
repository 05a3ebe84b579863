"""Calls of the model: their prompts, the tools of a system, and the log of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from pipeline.answering.retriever import PassageSearch
from pipeline.corpus.nouns import Passage
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, StructuredAnswer
from pipeline.llm.context import fit
from pipeline.llm.messages import Spent
from pipeline.llm.prompts import PromptFolder
from pipeline.settings import Settings
from pipeline.text import one_line

Form = TypeVar("Form", bound=BaseModel)

NOTHING = Spent()
"""The cost of no call."""

# Fewer tokens of passages or claims are of no use.
PROMPTS = PromptFolder(
    Path(__file__).parent / "prompts",
    fewest=64,
    hint="raise CITELOOM_LLM_CONTEXT, or lower CITELOOM_ANSWER_TOKENS or CITELOOM_ANSWER_PASSAGES",
)

# A model that samples would search for something else in a rerun; both papers run their systems at
# 0.
TEMPERATURE = 0.0
# Of JSON in English, with quotes and escapes; the longest answer is computed from it.
CHARS_PER_TOKEN = 3.5
# A question takes at most this part of the context.
_QUESTION_SHARE = 8

StepCallback = Callable[[Mapping[str, Any]], None]
"""Called after each step, so that a reader sees queries and passages before the answer."""


@dataclass(slots=True)
class StepLog:
    """The steps of an answer in order, as JSON values, and their total cost."""

    on_step: StepCallback | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)

    def add(self, stage: str, cost: Spent, **values: Any) -> None:
        """Add a finished step."""
        step = {"stage": stage} | values
        self.steps.append(step)
        self.spent += cost
        if self.on_step is not None:
            self.on_step(step)

    def append(self, *logs: StepLog) -> None:
        """Add the steps of other logs, which have called back already.

        Concurrent steps have a log each, so that the order does not depend on their speed.
        """
        for log in logs:
            self.steps += log.steps
            self.spent += log.spent


def passage_trace(passage: Passage) -> dict[str, Any]:
    """A passage in a trace: its ids and kind."""
    return {
        "passage_id": passage.passage_id,
        "arxiv_id": passage.arxiv_id,
        "anchor": passage.anchor,
        "kind": passage.kind,
    }


@dataclass(frozen=True, slots=True)
class Tools:
    """A model and a search that a system works with."""

    client: LlmClient | None
    retriever: PassageSearch
    settings: Settings
    on_step: StepCallback | None = None

    @property
    def model(self) -> LlmClient:
        """The client of the model. Raises ValueError if there is none."""
        if self.client is None:
            raise ValueError("a system that calls a model needs a client")
        return self.client

    def shorten(self, question: str) -> str:
        """The question as prompts show it."""
        return short_question(question, self.settings.llm_context)

    def room(self, prompt: str, longest: int, /, **values: object) -> int:
        """Tokens that a prompt with these values leaves for texts, beside an answer of at most
        `longest` tokens and its repair. Raises SettingError where too few are left.
        """
        context = self.settings.llm_context
        return PROMPTS.room(context, longest + REPAIR_TOKENS, prompt, **values)

    async def ask(
        self, prompt: str, form: type[Form], longest: int, /, **values: object
    ) -> StructuredAnswer[Form]:
        """The answer to a prompt, of at most `longest` tokens, at temperature 0: one call, or two
        with a repair. Raises LlmAnswerError where there is none.
        """
        return await self.model.answer(
            PROMPTS.messages(prompt, **values), form, max_tokens=longest, temperature=TEMPERATURE
        )


def as_word(value: object) -> object:
    """A word such as "Yes.", or a truth value, as the forms spell it; for a `BeforeValidator`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip(" .\"'").casefold()


def short_question(question: str, context: int) -> str:
    """The question in one line, cut to its share of the context."""
    return fit(one_line(question), context // _QUESTION_SHARE).text
