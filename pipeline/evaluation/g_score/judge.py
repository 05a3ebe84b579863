"""The judge of G-Score: one conversation about the sections of a task, shown under neutral labels.

The paper prints neither prompt nor temperature nor order: the prompt (`prompts/g_score.j2`),
temperature 0 and the orders are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.errors import CiteloomError
from pipeline.evaluation.g_score.sample import TaskSections
from pipeline.evaluation.marks import Mark
from pipeline.llm.context import count_message_tokens, cut_to_share, fit
from pipeline.llm.messages import LlmAnswerError, Message, Spent
from pipeline.llm.prompts import PromptFolder
from pipeline.tables import CRITERIA

if TYPE_CHECKING:
    from pipeline.llm.client import LlmClient

PROMPT = "g_score"
PROMPTS = PromptFolder(Path(__file__).parent / "prompts")

# A judge that samples would make the scores of a rerun differ; the paper gives no temperature.
TEMPERATURE = 0.0
# The judge needs to know what the target is about, not the whole of it: the gold section is the
# measure.
_TARGET_TOKENS = 500
# A repair shows the judge its own answer again and some 150 tokens of complaint.
_REPAIR_TOKENS = 256
# Fewer tokens of a text than this cannot be judged.
_FEWEST_TOKENS = 48


class Marks(BaseModel):
    """The six marks of one section, whole numbers from 1 to 5, as in `tables.CRITERIA`."""

    model_config = ConfigDict(extra="forbid")

    consistency: Mark
    coherence: Mark
    comparative: Mark
    integrity: Mark
    fluency: Mark
    citation_accuracy: Mark


class NoRoom(CiteloomError):
    """The model's context has no room for all that must be judged in one conversation."""


@dataclass(frozen=True, slots=True)
class GScoreRequest:
    """Messages to the judge. labels: label → system, in order shown. cut: texts that were cut."""

    messages: Sequence[Message]
    labels: Mapping[str, str]
    cut: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one conversation.

    marks: writer → its marks, in the order shown; none where nothing was judged, and then `failure`
    says why, as (reason, detail) for the ledger. best: one of these writers, None where there was
    one alone, and so nothing to vote on. cut: texts of which the judge read the beginning alone.
    spent: its cost, also where nothing could be read.
    """

    marks: Mapping[str, Marks]
    best: str | None = None
    cut: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    failure: tuple[str, str] | None = None


def answer_schema(labels: Iterable[str]) -> type[BaseModel]:
    """The judge's answer: marks for each label, and the best where there are several."""
    names = tuple(labels)
    fields: dict[str, Any] = dict.fromkeys(names, (Marks, ...))
    if len(names) > 1:
        fields["best"] = (Literal[names], ...)
    return create_model("Judgement", __config__=ConfigDict(extra="forbid"), **fields)


def answer_tokens(sections: int) -> int:
    """Longest answer in tokens: SmolLM2 wrote 79 a section, the rest is for indented JSON."""
    return 64 + 128 * sections


def g_score_request(task: TaskSections, order: Sequence[str], context: int) -> GScoreRequest:
    """The request to judge these systems, shown in this order, by a model that reads and writes
    `context` tokens; what is too long is cut.

    Raises NoRoom where next to nothing of each text would be left, ValueError for more systems than
    letters.
    """
    labels = dict(zip(ascii_uppercase[: len(order)], order, strict=True))
    texts = {
        "target": fit(task.target, _TARGET_TOKENS).text,
        "references": task.references,
        "gold": task.gold,
        **{label: task.sections[system] for label, system in labels.items()},
    }
    empty = _messages(dict.fromkeys(texts, ""), labels)
    # The answer counts twice, since a repair repeats it.
    room = context - count_message_tokens(empty) - 2 * answer_tokens(len(labels)) - _REPAIR_TOKENS
    if room < _FEWEST_TOKENS * len(texts):
        raise NoRoom(
            f"{len(texts)} texts leave {max(room, 0)} tokens of the judge's context: raise"
            " CITELOOM_LLM_CONTEXT, or the judge's context in the file of CITELOOM_MODELS"
        )
    # The sections of all systems are cut to one length at most, so that no system loses more than
    # another.
    shares, _ = cut_to_share(list(texts.values()), room)
    shown = dict(zip(texts, shares, strict=True))
    cut = [labels.get(name, name) for name in texts if shown[name] != texts[name]]
    return GScoreRequest(_messages(shown, labels), labels, tuple(cut))


def _messages(texts: Mapping[str, str], labels: Iterable[str]) -> list[Message]:
    return PROMPTS.messages(
        PROMPT,
        sections=[(label, texts[label]) for label in labels],
        labels=list(labels),
        criteria=CRITERIA,
        target=texts["target"],
        references=texts["references"],
        gold=texts["gold"],
    )


async def judge(
    client: LlmClient, task: TaskSections, order: Sequence[str], context: int
) -> Judgement:
    """The judgement of these systems, shown in this order, by a model that reads and writes
    `context` tokens.

    It takes one call, or two where the answer had to be repaired; none without room.
    """
    try:
        request = g_score_request(task, order, context)
    except NoRoom as error:
        return Judgement({}, failure=("no_room_for_judge", str(error)))
    try:
        answer = await client.answer(
            request.messages,
            answer_schema(request.labels),
            max_tokens=answer_tokens(len(request.labels)),
            temperature=TEMPERATURE,
        )
    except LlmAnswerError as error:
        failure = ("unreadable_judgement", str(error))
        return Judgement({}, cut=request.cut, spent=error.spent, failure=failure)
    marks = {system: getattr(answer.value, label) for label, system in request.labels.items()}
    best: str | None = getattr(answer.value, "best", None)
    return Judgement(marks, request.labels[best] if best else None, request.cut, answer.spent)
