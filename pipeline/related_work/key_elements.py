"""Key elements of a paper: ChatCite's seven questions, asked in one call (section 3.1 and Figure 2
of the paper).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator

from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import fit
from pipeline.llm.messages import Spent
from pipeline.llm.structured import make_form
from pipeline.related_work.prompt_files import PROMPTS, answer_length, at_most
from pipeline.related_work.task import ReferenceSource
from pipeline.settings import Settings
from pipeline.text import one_line

# Characters of English per token, for the bound on an answer: 4.4 to 6 were seen with SmolLM2,
# fewer are safe.
_CHARS_PER_TOKEN = 3.5
# An answer's frame: seven names, quotes, commas and the white space that constrained decoding
# allows, 170 seen.
_FRAME_TOKENS = 200


@dataclass(frozen=True, slots=True)
class KeyElements:
    """The seven answers on one paper; an empty text where the paper does not say."""

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
        return "\n".join(
            [
                f"Title: {title}",
                *(f"{name}: {answer or 'not stated'}" for name, answer in self.named()),
            ]
        )

    def gist(self) -> str:
        """The paper's contribution in short, else its methodology, else its research questions."""
        return self.contributions or self.methodology or self.research_questions

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> KeyElements:
        """From a row of the table `key_elements`."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})


ELEMENT_NAMES = tuple(field.name for field in fields(KeyElements))


@dataclass(frozen=True, slots=True)
class Extraction:
    """The key elements of one paper.

    shortened: the answers that reached their longest, and were cut there.
    """

    elements: KeyElements
    content_cut: bool
    spent: Spent
    shortened: tuple[str, ...] = ()


async def extract(client: LlmClient, content: str, settings: Settings) -> Extraction:
    """The seven answers on a paper's text, at temperature 0.

    The content is cut at a section's end to fit the context. A model that repeats the paper's
    questions as answers is asked once more, with descriptions in their place; an answer that
    still is a question becomes empty. Raises LlmAnswerError where there is no answer.
    """
    context, element_tokens = settings.llm_context, settings.element_tokens
    characters = int(element_tokens * _CHARS_PER_TOKEN) if element_tokens else None
    limit = len(ELEMENT_NAMES) * element_tokens + _FRAME_TOKENS if element_tokens else None
    length = answer_length(limit, context)
    values = {"fields": ELEMENT_NAMES, "characters": characters}
    room = PROMPTS.room(
        context, length.room + REPAIR_TOKENS, "elements", content="", described=False, **values
    )
    cut = fit(content, room)
    ask = partial(client.answer, schema=answer_model(characters), max_tokens=length.limit)
    answer = await ask(PROMPTS.messages("elements", content=cut.text, described=False, **values))
    cost = answer.spent
    if any(map(_repeats_question, _texts(answer.value).values())):
        answer = await ask(PROMPTS.messages("elements", content=cut.text, described=True, **values))
        cost += answer.spent
    texts = _texts(answer.value)
    shortened: tuple[str, ...] = ()
    if characters is not None:
        # Constrained decoding lets no answer be longer; others are cut at a word's end.
        shortened = tuple(name for name, text in texts.items() if len(text) >= characters)
        for name in shortened:
            if len(texts[name]) > characters:
                texts[name] = texts[name][:characters].rsplit(" ", 1)[0]
    elements = {name: "" if _repeats_question(text) else text for name, text in texts.items()}
    return Extraction(KeyElements(**elements), cut.cut, cost, shortened=shortened)


def _texts(value: BaseModel) -> dict[str, str]:
    return {name: getattr(value, name) for name in ELEMENT_NAMES}


async def extract_known(
    client: LlmClient, content: str, source: ReferenceSource, settings: Settings
) -> Extraction:
    """As `extract`, but no call for a work known by its bibliography item alone, which answers no
    question.
    """
    if source == "item":
        return Extraction(KeyElements(), False, Spent())
    return await extract(client, content, settings)


def _repeats_question(answer: str) -> bool:
    """Whether an answer begins as one of the seven questions does: Qwen2.5-Coder-1.5B gave back all
    seven, whatever was around them, and answered where they were put as descriptions.
    """
    return _folded(answer).startswith(_questions())


@cache
def _questions() -> tuple[str, ...]:
    """The questions of the prompt, without their heads and last words, folded."""
    lines = PROMPTS.text("_questions").splitlines()
    return tuple(_folded(line.split(": ", 1)[1])[:-1] for line in lines if ": " in line)


def _folded(text: str) -> str:
    return one_line(text.lower())


@cache
def answer_model(characters: int | None) -> type[BaseModel]:
    """The form of an answer; `characters` bounds its texts, so that a small model under constrained
    decoding comes to an end.

    A model whose endpoint does not constrain it may answer with lists or longer texts: these are
    joined, not refused.
    """
    text = at_most(Annotated[str, BeforeValidator(_plain_text)], characters)
    return make_form("KeyElements", **dict.fromkeys(ELEMENT_NAMES, text))


def _plain_text(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list):
        value = " ".join(str(item) for item in value)
    return one_line(str(value)) if isinstance(value, str | int | float) else value
