"""Structured answers: request a schema, parse an answer, ask for a repair."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import json_repair
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from pipeline.llm.prompts import as_data
from pipeline.storage.json_reader import check_parts, parse_json, short
from pipeline.text import without_lone_surrogates

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

Form = TypeVar("Form", bound=BaseModel)
# TeX macros whose first letter is one of JSON's escapes: a model that copies a formula writes
# \frac, which JSON reads as a form feed and "rac". Not among them are those with which a new line
# may begin, such as \ni.
_MACROS = (
    "bar|begin|beta|beth|big|bigl|bigr|binom|bm|bmod|boldsymbol|bot|bullet|forall|frac|nabla|natural|nearrow|neg|neq|"
    "not|notin|nu|rangle|rceil|rfloor|rho|right|rightarrow|rm|tan|tanh|tau|text|textbf|textit|textrm|textsc|texttt|"
    "tfrac|theta|tilde|times|top|triangle"
)
_BACKSLASH = re.compile(
    rf'\\(?:(?P<macro>(?:{_MACROS})(?![A-Za-z]))|["\\/bfnrt]|u[0-9a-fA-F]{{4}}|(?P<stray>.))',
    re.DOTALL,
)
_RUN = re.compile(r"(?<!\\)\\{2,}+(?=[A-Za-z])")
# json-repair takes 3 s for 5,000 characters of brackets with letters, and 40 s for 20,000.
_MOST_REPAIRED = 5_000


class AnswerForm(BaseModel):
    """A form that a structured answer fills, without any other field."""

    model_config = ConfigDict(extra="forbid")


def make_form(name: str, /, **fields: Any) -> type[Any]:
    """A form with these fields (name → type), all required, and no others."""
    definitions: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=AnswerForm, **definitions)


@dataclass(frozen=True, slots=True)
class AtMost:
    """The most characters of a text, or members of a list, that are asked for. More are accepted.

    The bound ends the answer of a small model under constrained decoding. It is no reason to reject
    an answer: endpoints without bounds (OpenAI's strict mode has no maxLength) may give one that is
    a word longer.
    """

    number: int

    def __get_pydantic_json_schema__(
        self, core_schema: Mapping[str, Any], handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        bound = "maxLength" if schema.get("type") == "string" else "maxItems"
        return schema | {bound: self.number}


@lru_cache(maxsize=64)
def response_format(schema: type[BaseModel]) -> Mapping[str, Any]:
    """The `response_format` of a request for an answer in the form of `schema`. Requests share it:
    do not change it.

    Cached, as pydantic takes 2 ms for it, as long as everything else that a call costs here.
    """
    form = {"name": schema.__name__, "strict": True, "schema": schema.model_json_schema()}
    return {"type": "json_schema", "json_schema": form}


def copyable(text: str) -> str:
    """A text for a model that answers in JSON: backslashes twice, so that a copy is valid.

    Constrained to JSON, Qwen2.5-Coder-1.5B wrote \\beta for \\delta and \\binom for \\in, since no
    escape begins as these macros do; with doubled backslashes it kept every formula of the six
    claims tried. This takes 3 to 4 % more tokens in paragraphs full of formulas (175 of real
    papers, by the tokenizers of SmolLM2 and Qwen2.5), for which `count_tokens` is 29 to 34 % too
    high: callers that count tokens need not consider it.
    """
    return text.replace("\\", "\\\\")


def parse_answer(text: str, schema: type[Form]) -> Form:
    """The JSON object in a text, validated; a formula's backslashes need not be escaped.

    Where it is not JSON, json-repair reads it: other quotes, Python's None, missing or trailing
    commas, comments, and a list that breaks off, without its last member. Raises ValueError
    (pydantic's is one) if nothing fits the schema.
    """
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object in the answer")
    content = _BACKSLASH.sub(_escape, _unescape_once(text[start : end + 1]))
    check_parts(content)
    try:
        return schema.model_validate_json(content)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            raise
    if len(content) > _MOST_REPAIRED:
        raise ValueError("the JSON object in the answer is broken and too long to be mended")
    try:
        repaired = json.dumps(json_repair.loads(content), ensure_ascii=False)
    except RecursionError:
        raise ValueError("the JSON object in the answer is nested too deeply") from None
    return schema.model_validate(parse_json(without_lone_surrogates(repaired)))


def _unescape_once(text: str) -> str:
    """JSON whose macros have one backslash each, if all of them have two: a model that escapes what
    it copies has read `copyable` text.
    """
    runs = _RUN.findall(text)
    if not runs or min(map(len, runs)) < 4:
        return text
    return text.replace("\\" * 4, "\\" * 2)


def _escape(match: re.Match[str]) -> str:
    if match["stray"] == "'":  # an escape of other languages
        return "'"
    return f"\\{match[0]}" if match["macro"] or match["stray"] else match[0]


def repair(error: ValueError, schema: type[BaseModel]) -> str:
    """The message that asks for another answer; names that the model invented are data in it."""
    fields, reason = ", ".join(schema.model_fields), as_data(short(error))
    return (
        f"That answer cannot be used: {reason}. Answer again with one JSON object alone; its"
        f" fields: {fields}."
    )
