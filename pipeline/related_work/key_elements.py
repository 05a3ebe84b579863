"""Key elements of a paper: ChatCite's seven questions, asked in one call (section 3.1 and Figure 2 of the paper).

Not here: which papers are asked about (`stages`), and what the answers are used for (`chatcite`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent
from pipeline.llm.context import fit
from pipeline.related_work.prompting import PROMPTS, Source, room

# Characters of English per token, for the bound on an answer: 4.4 to 6 were seen with SmolLM2, fewer are safe.
_CHARS_PER_TOKEN = 3.5
# An answer's frame: seven names, quotes, commas and the white space that constrained decoding allows, 170 seen.
_FRAME_TOKENS = 200


@dataclass(frozen=True, slots=True)
class KeyElements:
    """The seven answers on one paper; an empty text where the paper does not say or no answer could be read."""

    research_questions: str = ""
    methodology: str = ""
    results: str = ""
    conclusions: str = ""
    contributions: str = ""
    innovations: str = ""
    limitations: str = ""

    def named(self) -> Iterator[tuple[str, str]]:
        """(question in words, answer) in the order of the paper's questions."""
        for field in fields(self):
            yield field.name.replace("_", " ").capitalize(), getattr(self, field.name)

    def text(self, title: str) -> str:
        """Title and answers as a prompt shows them, one line each."""
        return "\n".join([f"Title: {title}", *(f"{name}: {answer or 'not stated'}" for name, answer in self.named())])

    def gist(self) -> str:
        """What the paper adds, as short as the answers have it."""
        return self.contributions or self.methodology or self.research_questions

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> KeyElements:
        """From a row of the table `key_elements`."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})


ELEMENT_NAMES = tuple(field.name for field in fields(KeyElements))


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of asking about one paper. `failure` says why the answers are empty, where they could not be read."""

    elements: KeyElements
    content_cut: bool
    spent: Spent
    failure: str | None = None


async def extract(client: LlmClient, content: str, *, context: int, element_tokens: int) -> Extraction:
    """The seven answers on a paper's text, at temperature 0.

    `context`: tokens that the model reads and writes in a call; the content is cut at a section's end to fit.
    `element_tokens`: longest of the seven answers.
    """
    characters = int(element_tokens * _CHARS_PER_TOKEN)
    longest = len(ELEMENT_NAMES) * element_tokens + _FRAME_TOKENS
    empty = {"fields": ELEMENT_NAMES, "characters": characters}
    cut = fit(content, room(context, longest + REPAIR_TOKENS, "elements", content="", **empty))
    messages = PROMPTS.messages("elements", content=cut.text, **empty)
    try:
        answer = await client.answer(messages, answer_model(characters), max_tokens=longest)
    except LlmAnswerError as error:
        return Extraction(KeyElements(), cut.cut, error.spent, str(error))
    return Extraction(KeyElements(**answer.value.model_dump()), cut.cut, answer.spent)


async def extract_known(
    client: LlmClient, content: str, source: Source, context: int, element_tokens: int
) -> Extraction:
    """As `extract`; of a work known by its bibliography item alone nothing is asked, since nothing could be told."""
    if source == "item":
        return Extraction(KeyElements(), False, Spent())
    return await extract(client, content, context=context, element_tokens=element_tokens)


@cache
def answer_model(characters: int) -> type[BaseModel]:
    """The form of an answer, its texts bounded so that a small model under constrained decoding comes to an end.

    A model whose endpoint does not constrain it may answer with lists or too long a text: these are joined and cut,
    not refused.
    """
    text = Annotated[str, BeforeValidator(partial(_plain_text, characters)), Field(max_length=characters)]
    names: dict[str, Any] = dict.fromkeys(ELEMENT_NAMES, (text, ...))
    return create_model("KeyElements", __config__=ConfigDict(extra="forbid"), **names)


def _plain_text(characters: int, value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list):
        value = " ".join(str(item) for item in value)
    if not isinstance(value, str | int | float):
        return value
    folded = " ".join(str(value).split())
    return folded if len(folded) <= characters else folded[:characters].rsplit(" ", 1)[0]
