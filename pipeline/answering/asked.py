"""A question, with the conversation that it goes on, as every answering system is given it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.answering.prompting import first_that_fit
from pipeline.answering.retrieving import searchable
from pipeline.errors import SettingError
from pipeline.llm.context import fit

# Of a conversation a follow-up leans on its last few turns; answers are long, and their beginning says what they are
# of. Six turns are 1,440 tokens at most.
MOST_TURNS, _TURN_TOKENS = 6, 120


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation, and what was answered."""

    question: str
    answer: str

    def text(self) -> str:
        """As prompts show it, each part in one line, long ones cut."""
        return f"User: {_short(self.question)}\nAssistant: {_short(self.answer)}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. `history`: earlier turns of the conversation, oldest first. Raises SettingError for one that is
    empty or no Unicode text."""

    question: str
    history: tuple[Turn, ...] = ()
    question_id: str = ""

    def __post_init__(self) -> None:
        which = f"the question {self.question_id}" if self.question_id else "the question"
        # Bytes of an argument that are no UTF-8 come as lone surrogates (PEP 383), which no endpoint takes.
        if any("\ud800" <= sign <= "\udfff" for sign in self.question):
            raise SettingError(f"{which} is not valid UTF-8: type it again, or see that the terminal's locale is UTF-8")
        if not searchable(self.question):
            raise SettingError(f"{which} is empty: write what you want to know")

    def conversation(self, tokens: int) -> str:
        """The last turns as prompts show them, as many as fit into so many tokens; empty where there are none."""
        newest_first = [turn.text() for turn in reversed(self.history[-MOST_TURNS:])]
        return "\n".join(reversed(first_that_fit(newest_first, tokens)))


def _short(text: str) -> str:
    return fit(" ".join(text.split()), _TURN_TOKENS).text
