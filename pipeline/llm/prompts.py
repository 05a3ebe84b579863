"""Prompts as files: Jinja2 templates beside the domain that uses them, rendered to messages.

A template is divided by lines `=== system ===` and `=== user ===`, each beginning a message. It is
divided before values are inserted, so no text from a paper can begin a message. Text from papers
goes through the filter `fenced`, which marks it as data, or through `as_data` alone where a prompt
is printed without marks.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from pipeline.errors import SettingError
from pipeline.llm.context import count_message_tokens
from pipeline.llm.messages import Message, Role
from pipeline.storage.read_cache import once

if TYPE_CHECKING:
    import jinja2

_HEAD = re.compile(r"^=== (\w+) ===\n", re.MULTILINE)
# Marks that a text from a paper must not contain: tags, of which `fenced` makes its fences, and the
# marks by which chat templates divide messages, since a server that reads one inside a text would
# let a paper speak as the user or the system: ChatML and Llama 3 (<|…|>), DeepSeek (<｜…｜>, its
# bars of full width), Llama 2 (<<SYS>>, <s>), Mistral ([INST], [SYSTEM_PROMPT]), EXAONE ([|user|]),
# Gemma (<start_of_turn>), GLM ([gMASK]).
_IN_BRACKETS = (
    r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_CONTENT|TOOL_RESULTS|gMASK)\]"
    r"|\|\w+\|\]"
)
_MARKS = re.compile(
    rf"<(?=[|｜]|/?[A-Za-z_][\w-]*\s*>)|[|｜](?=>)|\[(?={_IN_BRACKETS})", re.IGNORECASE
)
_FENCED = re.compile(r'fenced\("(\w+)"\)')
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def fenced(text: str, name: str) -> str:
    """The text between `<name>` and `</name>`, neither of which it can contain.

    Tags, because SmolLM2 copied `<<<` into its own text, in 5 of 6 sections.
    """
    return f"<{name}>\n{as_data(str(text)).strip()}\n</{name}>"


def as_data(text: str) -> str:
    """The text without control characters, and with a space inside every tag and chat mark.

    A space breaks a mark permanently; removing marks could join the text around them to new ones.
    """
    return _MARKS.sub(r"\g<0> ", _CONTROLS.sub("", text))


class PromptFolder:
    """The prompt files (`*.j2`) of one domain; others include those that begin with `_`.

    fewest: tokens that a prompt must leave for texts. hint: what to set where it does not.
    """

    def __init__(
        self, folder: Path, *, fewest: int = 1, hint: str = "raise CITELOOM_LLM_CONTEXT"
    ) -> None:
        self._folder, self._fewest, self._hint = folder, fewest, hint
        self._parts = lru_cache(maxsize=None)(self._read)

    def messages(self, name: str, **values: object) -> list[Message]:
        """The messages of the prompt `name`. Raises jinja2.UndefinedError for a missing value."""
        return [
            Message(role, template.render(**values).strip()) for role, template in self._parts(name)
        ]

    def room(self, context: int, answer: int, name: str, /, **values: object) -> int:
        """Tokens that a prompt with these values and an answer of `answer` tokens leave free.

        Raises SettingError where too few are left.
        """
        left = context - answer - count_message_tokens(self.messages(name, **values))
        if left < self._fewest:
            raise SettingError(
                f"the prompt {name!r} and an answer of {answer} tokens fill the context of"
                f" {context} tokens: {self._hint}"
            )
        return left

    def text(self, name: str) -> str:
        """A file as is, such as `_questions`."""
        return self._file(name).read_text(encoding="utf-8")

    def unwrapped(self, text: str) -> str:
        """A model's text without fences of these prompts around it.

        Small models begin an answer as the texts of the prompt begin, with `<related_work>`; a
        draft that goes into the next prompt would gain one in each round.
        """
        return self._fences.sub("", text).strip()

    @cached_property
    def _environment(self) -> jinja2.Environment:
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._folder),
            autoescape=False,  # noqa: S701 - a prompt is not HTML; `fenced` separates data
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {"fenced": fenced, "as_data": as_data}
        return environment

    @cached_property
    def _fences(self) -> re.Pattern[str]:
        """Fences around a text, also as models misspell them: `< related-work>`."""
        names: set[str] = set()
        for file in self._folder.glob("*.j2"):
            names.update(_FENCED.findall(file.read_text(encoding="utf-8")))
        spellings = "|".join(name.replace("_", "[_ -]") for name in sorted(names))
        fence = rf"<\s*/?\s*(?:{spellings})\s*>"
        return re.compile(rf"\A(?:\s*{fence})+|(?:{fence}\s*)+\Z", re.IGNORECASE)

    def digest(self, *names: str) -> str:
        """SHA-256 of these prompts and of every file that prompts include."""

        def read() -> str:
            digest = hashlib.sha256()
            included = sorted(self._folder.glob("_*.j2"))
            for file in [*map(self._file, sorted(names)), *included]:
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
            return digest.hexdigest()

        return once(("prompts", self._folder, names), read)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.j2"

    def _read(self, name: str) -> list[tuple[Role, jinja2.Template]]:
        pieces = _HEAD.split(self._file(name).read_text(encoding="utf-8"))
        roles, sources = pieces[1::2], pieces[2::2]
        if pieces[0].strip() or not roles or not set(roles) <= set(get_args(Role)):
            raise ValueError(
                f"{self._file(name)} must consist of parts headed === system ===, === user ==="
            )
        return [
            (cast(Role, role), self._environment.from_string(source))
            for role, source in zip(roles, sources, strict=True)
        ]
