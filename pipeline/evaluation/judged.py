"""What every judge shares: a request for each item, answered by a form or a named failure.

A failure is never a verdict: it is in the ledger with its kind, and the next run asks for it again.
A row counts cached calls and their tokens as the rest, so that a resumed run writes the same bytes
as an undisturbed one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator

from pipeline import tables
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Workspace
from pipeline.llm.client import LlmClient
from pipeline.llm.messages import LlmAnswerError, Message, Spent
from pipeline.llm.models import judge_model
from pipeline.llm.prompts import PromptFolder
from pipeline.llm.stage_loop import ask_all
from pipeline.llm.structured import AnswerForm, AtMost, Form
from pipeline.text import one_line

Item = TypeVar("Item")
Result = TypeVar("Result")

# A judge that samples would make the verdicts of a rerun differ.
TEMPERATURE = 0.0
# Bounds that are in the form alone: SmolLM2 took "240 characters at most" for what to copy, in 7 of
# 12 answers.
QUOTE_CHARS = 240
# Of a quote and a verdict. 240 characters are 60 tokens of prose, and 240 of digits, which a small
# model may run on with: of 53 answers that had 192 tokens it lost 10 so. Frame and verdict are 20,
# the rest is for indented JSON.
FINDING_TOKENS = 288


def read_prompts(module: str) -> PromptFolder:
    """The prompts beside a module, given by its `__file__`."""
    return PromptFolder(
        Path(module).parent / "prompts",
        fewest=96,
        hint="raise CITELOOM_LLM_CONTEXT, or the judge's context in the file of CITELOOM_MODELS",
    )


class Quoting(AnswerForm):
    """A form that begins with the words that decide, in one line, so that the verdict is given with
    them at hand; `AtMost` asks for its length.
    """

    quote: Annotated[str, AtMost(QUOTE_CHARS), AfterValidator(one_line)]


@dataclass(frozen=True, slots=True)
class Reply(Generic[Form]):
    """A judge's answer in a form, or None and the failure; its cost."""

    form: Form | None
    spent: Spent
    failure: LlmAnswerError | None = None

    @property
    def failed(self) -> str:
        """The kind of the failure as rows name it; empty for an answer."""
        if self.failure is None:
            return ""
        kind = self.failure.kind
        return "unreadable_answer" if kind == "unreadable" else f"failed_{kind}"


async def ask(
    client: LlmClient, messages: Sequence[Message], form: type[Form], max_tokens: int
) -> Reply[Form]:
    """An answer of at most so many tokens: one call, or two with a repair."""
    try:
        answer = await client.answer(messages, form, max_tokens=max_tokens, temperature=TEMPERATURE)
    except LlmAnswerError as error:
        return Reply(None, error.spent, error)
    return Reply(answer.value, answer.spent)


def judge_all(
    job: Job,
    items: Sequence[Item],
    judge: Callable[[LlmClient, Item], Awaitable[Result]],
    begin: Callable[[Item], Any] | None = None,
) -> list[Result]:
    """The judgement of each item, in their order; many are judged at once.

    begin: the key by which they begin, where that is not their order. Raises PermanentFailure where
    the first items all fail alike.
    """
    model = judge_model(job.settings)
    return ask_all(job, model.name, items, judge, model.concurrency, begin) if items else []


def evidence_digests(workspace: Workspace, months: Sequence[str], whose: str) -> Mapping[str, str]:
    """Digests of the passages and vectors of these months, as inputs of a stage."""
    return {
        f"{table.name} of {whose}": digest_of(workspace, table, months)
        for table in (tables.PASSAGES, tables.EMBEDDINGS)
    }
