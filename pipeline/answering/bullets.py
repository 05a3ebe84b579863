"""What one passage says on a question, in bullets, or none: WikiChat's third stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from pipeline.answering.prompting import CHARS_PER_TOKEN, NOTHING, PROMPTS, ask, room, short_question
from pipeline.answering.retrieving import Found
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.context import fit
from pipeline.llm.structured import AtMost

# WikiChat allows 200 tokens for the bullets of a passage, which are two or three sentences.
MOST_BULLETS, BULLET_CHARS = 3, 240
_ANSWER_TOKENS = 24 + MOST_BULLETS * (8 + int(BULLET_CHARS / CHARS_PER_TOKEN))


class Bullets(BaseModel):
    """Empty where the passage has nothing on the question."""

    model_config = ConfigDict(extra="forbid")
    bullets: Annotated[list[Annotated[str, AtMost(BULLET_CHARS)]], AtMost(MOST_BULLETS)]


@dataclass(frozen=True, slots=True)
class Summary:
    """The bullets of one passage."""

    bullets: tuple[str, ...]
    cut: bool
    over: int = 0
    """Bullets beyond those that were asked for."""
    spent: Spent = NOTHING
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {"bullets": len(self.bullets), "cut": self.cut, "over": self.over, "failure": self.failure}


async def bullets_of(client: LlmClient, question: str, found: Found, context: int) -> Summary:
    """What a passage says on a question, at temperature 0."""
    frame = {"question": short_question(question, context), "most": MOST_BULLETS, "characters": BULLET_CHARS}
    left = room(context, _ANSWER_TOKENS + REPAIR_TOKENS, "bullets", passage="", **frame)
    shown = fit(found.told(), left)
    told = await ask(client, PROMPTS.messages("bullets", passage=shown.text, **frame), Bullets, _ANSWER_TOKENS)
    if told.value is None:
        return Summary((), shown.cut, 0, told.spent, told.failure)
    given = tuple(dict.fromkeys(text for each in told.value.bullets if _says(text := " ".join(each.split()))))
    return Summary(given[:MOST_BULLETS], shown.cut, max(len(given) - MOST_BULLETS, 0), told.spent)


def _says(text: str) -> bool:
    """Whether a bullet is one, and not what a model writes in place of an empty list."""
    return text.strip("-. ").casefold() not in {"", "none", "nothing", "n/a"}
