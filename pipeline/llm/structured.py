"""Structured answers: the form that is asked for, reading a text as it, and the words of a repair.

Not here: asking, and asking again (`client`).
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """What a request bears so that its answer has the form of `schema`."""
    form = {"name": schema.__name__, "strict": True, "schema": schema.model_json_schema()}
    return {"type": "json_schema", "json_schema": form}


def parse_answer(text: str, schema: type[Model]) -> Model:
    """The JSON object in a text, validated. Raises ValueError (pydantic's is one) where there is none that fits."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object in the answer")
    return schema.model_validate_json(text[start : end + 1])


def repair(error: ValueError, schema: type[BaseModel]) -> str:
    """What a model is told of an answer that could not be read."""
    fields = ", ".join(schema.model_fields)
    return f"That answer cannot be used: {short(error)}. Answer again with one JSON object alone; its fields: {fields}."


def short(error: ValueError) -> str:
    """What is wrong with an answer, in few words."""
    if isinstance(error, ValidationError):
        faults = [f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in error.errors()[:3]]
        return "; ".join(faults)
    return re.sub(r"\s+", " ", str(error))[:200]
