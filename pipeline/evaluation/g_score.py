"""G-Score: six marks and a vote by a language model, all systems of a task in one conversation, or
one by itself.

After ChatCite, arXiv 2403.02574, section 4: criteria from 1 to 5, the gold section as the measure,
and a vote for the best, so that scores compare systems within one conversation and nowhere else.
The paper prints neither prompt nor temperature nor order; the prompt (`prompts/g_score.j2`),
temperature 0 and the orders below are ours, and so is
judging a repeat of a section by itself: the same prompt and criteria, without a vote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from math import factorial
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from pipeline.errors import CiteloomError
from pipeline.evaluation.statistics import mean_mark
from pipeline.llm.context import count_message_tokens, cut_to_share, fit
from pipeline.llm.messages import LlmAnswerError, Message, Spent
from pipeline.llm.prompts import PromptFolder
from pipeline.tables import CRITERIA
from pipeline.tables.writers import writer_name

if TYPE_CHECKING:
    from pipeline.llm.client import LlmClient

PROMPT = "g_score"
NO_GOLD = ("no_gold", "the task has no gold section, which is what sections are measured by")

# A judge that samples would make the scores of a rerun differ; the paper gives no temperature.
TEMPERATURE = 0.0
# The judge needs to know what the target is about, not the whole of it: the gold section is the
# measure.
_TARGET_TOKENS = 500
# A repair shows the judge its own answer again and some 150 tokens of complaint.
_REPAIR_TOKENS = 256
# Fewer tokens of a text than this cannot be judged.
_FEWEST_TOKENS = 48

Mark = Annotated[int, Field(ge=1, le=5)]


class Marks(BaseModel):
    """The six marks of one section, whole numbers from 1 to 5."""

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
class Case:
    """One task as the judge sees it. `sections`: writer's name → text; `references`: one line
    each.
    """

    task_id: str
    target: str
    references: str
    gold: str
    sections: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What goes to the judge. `labels`: neutral label → system, in the order shown; `cut`: texts
    that were cut.
    """

    messages: Sequence[Message]
    labels: Mapping[str, str]
    cut: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one conversation.

    marks: writer → its marks, in the order shown; none where nothing was judged, and then `failure`
    says why, as (reason, detail) for the ledger. best: one of these writers, None where there was
    one alone, and so nothing to vote on. cut: texts of which the judge read the beginning alone.
    spent: what it cost, also where nothing could be read.
    """

    marks: Mapping[str, Marks]
    best: str | None = None
    cut: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    failure: tuple[str, str] | None = None


def shown_orders(task_id: str, systems: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Every order of the systems once, the best balanced ones first: the n-th repeat shows the n-th
    of them.

    A judge favours what it reads first. They are the rows of Williams's square (1949, Experimental
    designs balanced for the estimation of residual effects of treatments) over the systems by
    digest, each followed by its mirror image. So after every second repeat each system's mean place
    is the middle one; and after n repeats of n systems, 2n where n is odd, each was in every place,
    and right behind every other, equally often. A task of one system has one order,
    one of two has two: shown in the same order again, a judge at temperature 0 would say the same
    again, and it would count twice.
    """
    names = sorted(systems)
    seen: set[tuple[str, ...]] = set()
    for salt in count() if names else ():
        for row in _square(_by_digest(task_id, names, salt)):
            for order in (row, row[::-1]):
                if order not in seen:
                    seen.add(order)
                    yield order
        if len(seen) == factorial(len(names)):
            return


def _by_digest(task_id: str, names: Sequence[str], salt: int) -> tuple[str, ...]:
    begin = f"{task_id}\0{salt}\0" if salt else f"{task_id}\0"
    return tuple(sorted(names, key=lambda name: hashlib.sha256(f"{begin}{name}".encode()).digest()))


def _square(first: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The rows of Williams's square whose first row is given: 0, 1, n-1, 2, n-2, … and each of
    these one higher.
    """
    size = len(first)
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) % size for place in range(size)]
    named = dict(zip(zigzag, first, strict=True))
    for step in range(size):
        yield tuple(named[(number + step) % size] for number in zigzag)


def labels_of(order: Sequence[str]) -> dict[str, str]:
    """Neutral label → system: A, B, C …; raises ValueError for more systems than letters."""
    return dict(zip(ascii_uppercase[: len(order)], order, strict=True))


def write_order(order: Sequence[str]) -> str:
    """The order as the column `order` of scores keeps it: names, with commas between."""
    return ",".join(order)


def answer_schema(labels: Iterable[str]) -> type[BaseModel]:
    """The shape of the judge's answer for these labels: marks for each, and the best where there
    are several.
    """
    names = tuple(labels)
    fields: dict[str, Any] = dict.fromkeys(names, (Marks, ...))
    if len(names) > 1:
        fields["best"] = (Literal[names], ...)
    return create_model("Judgement", __config__=ConfigDict(extra="forbid"), **fields)


def answer_tokens(sections: int) -> int:
    """Longest answer in tokens. SmolLM2 wrote 79 for each section; the rest is for indented
    JSON.
    """
    return 64 + 128 * sections


def metrics(marks: Mapping[str, Any], best: str | None) -> dict[str, float]:
    """Metric → value of one system: the six marks, their mean, and whether it was voted the best (0
    or 1), where
    anything was. marks: of one system, as a row of `g_scores` has them.
    """
    found = {f"g_{criterion}": float(marks[criterion]) for criterion in CRITERIA}
    vote = {} if best is None else {"g_vote": float(best == writer_name(marks))}
    return {**found, "g_score": mean_mark(marks), **vote}


def prompt_digest() -> str:
    """SHA-256 of the judge's prompt."""
    return _prompts().digest(PROMPT)


@cache
def _prompts() -> PromptFolder:
    return PromptFolder(Path(__file__).parent / "prompts")


def conversation(case: Case, context: int, order: Sequence[str]) -> Conversation:
    """The conversation over one case in a model that reads and writes `context` tokens; what is too
    long is cut.

    order: the systems to judge, as they are shown. Raises NoRoom where next to nothing of each text
    would be left.
    """
    labels = labels_of(order)
    parts = {
        "target": fit(case.target, _TARGET_TOKENS).text,
        "references": case.references,
        "gold": case.gold,
        **{label: case.sections[system] for label, system in labels.items()},
    }
    fitting, cut = _fitting(parts, _room(labels, context))
    names = {**labels, "references": "references", "gold": "gold", "target": "target"}
    return Conversation(_messages(fitting, labels), labels, tuple(names[part] for part in cut))


def _room(labels: Mapping[str, str], context: int) -> int:
    """Tokens left for texts: without the prompt's own, an answer, and a repair that repeats the
    answer.
    """
    empty = _messages(dict.fromkeys(("target", "references", "gold", *labels), ""), labels)
    return context - count_message_tokens(empty) - 2 * answer_tokens(len(labels)) - _REPAIR_TOKENS


def _messages(parts: Mapping[str, str], labels: Mapping[str, str]) -> list[Message]:
    sections = [(label, parts[label]) for label in labels]
    others = {name: parts[name] for name in ("target", "references", "gold")}
    return _prompts().messages(
        PROMPT, sections=sections, labels=list(labels), criteria=CRITERIA, **others
    )


def _fitting(parts: Mapping[str, str], room: int) -> tuple[dict[str, str], list[str]]:
    """The parts cut so that they fit together, and the names of those that were cut."""
    if room < _FEWEST_TOKENS * len(parts):
        raise NoRoom(
            f"{len(parts)} texts leave {max(room, 0)} tokens of the judge's context: raise"
            " CITELOOM_LLM_CONTEXT, or the judge's context in the file of CITELOOM_MODELS"
        )
    # The sections of all systems are cut to one length at most, so that no system loses more than
    # another.
    texts, _ = cut_to_share(list(parts.values()), room)
    fitting = dict(zip(parts, texts, strict=True))
    return fitting, [name for name in parts if fitting[name] != parts[name]]


async def judge(client: LlmClient, case: Case, order: Sequence[str], context: int) -> Judgement:
    """The judgement of these systems of a case, shown in this order, by a model that reads and
    writes `context` tokens.

    It takes one call, or two where the answer had to be repaired; none without a gold section, or
    without room.
    """
    if not case.gold.strip():
        return Judgement({}, failure=NO_GOLD)
    try:
        request = conversation(case, context, order)
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
