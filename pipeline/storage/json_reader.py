"""JSON from others, within a bound on the objects that it becomes."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from pydantic import ValidationError

from pipeline.text import one_line

# Texts, members and brackets. Each may become an object of Python, and with pydantic an error of
# 600 bytes: 31 MB of `[1,1,…` took over 9.4 GB. A task of 1,000 references has 50,000.
MOST_PARTS = 100_000
# The description of an error names fields, which the writer may have invented.
_PLACE_CHARS = 60
_PART = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{]', re.DOTALL)


def check_parts(text: str) -> None:
    """Raise ValueError for JSON that would become too many objects."""
    if next(islice(_PART.finditer(text), MOST_PARTS, None), None) is not None:
        raise ValueError(f"it has over {MOST_PARTS:,} texts, members and brackets")


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON document. Raises ValueError for one that is none, is nested too deeply or
    has too many parts.
    """
    text = content if isinstance(content, str) else content.decode("utf-8-sig")
    check_parts(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def short(error: ValueError) -> str:
    """The error in an answer or a file, in few words."""
    if not isinstance(error, ValidationError):
        return one_line(str(error))[:200]
    problems = []
    for detail in error.errors(include_url=False, include_input=False)[:3]:
        field = one_line(".".join(map(str, detail["loc"])))[:_PLACE_CHARS]
        problems.append(f"{field or 'it'}: {detail['msg']}")
    return "; ".join(problems)
