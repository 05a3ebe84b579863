"""How numbers, names and addresses are told in a report."""

from __future__ import annotations

import hashlib
import re

from pipeline.index.links import abstract_url

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
# Names as their authors write them, and the ablations by what they lack.
_NAMES = {
    "chatcite": "ChatCite",
    "chatcite_grounded": "ChatCite, grounded",
    "chatcite_no_elements": "ChatCite without key elements",
    "chatcite_no_incremental": "ChatCite without incremental steps",
    "chatcite_no_reflection": "ChatCite without reflection",
    "litllm": "LitLLM",
    "arxivbot": "arXivBot",
    "arxivbot_report": "arXivBot as reported",
    "wikichat": "WikiChat",
    "direct": "the model alone",
    "zero_shot": "zero-shot",
    "few_shot": "few-shot",
    "no_text": "no text of it is known",
    "item": "bibliography item alone",
    "abstract": "abstract alone",
    "full_text": "full text",
}


def abs_url(arxiv_id: str) -> str:
    """The abstract page of a paper. Whatever the identifier holds, the address stays on arxiv.org."""
    return abstract_url(arxiv_id)


def fixed(number: float, digits: int) -> str:
    """A number with a fixed count of decimals; never minus nothing."""
    told = f"{number:.{digits}f}"
    return told.removeprefix("-") if float(told) == 0 else told


def percent(share: float) -> str:
    """A share, 0 to 1, in whole percent; never 100 % for what is not all, nor 0 % for what is not nothing."""
    whole = round(100 * share)
    if share < 1 and whole == 100:
        return "over 99 %"
    return "under 1 %" if share > 0 and whole == 0 else f"{whole} %"


def count(number: int) -> str:
    """A count with commas between thousands."""
    return f"{number:,}"


def number_of(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def words(name: str) -> str:
    """A name of the code as words: `not_in_corpus` → `not in corpus`, `chatcite@gpt-4` → `ChatCite (gpt-4)`."""
    system, at, model = name.partition("@")
    shown = _NAMES.get(system, system.replace("_", " "))
    return f"{shown} ({model})" if at else shown


def reference(number: int) -> str:
    """A reference as texts name it: `[Reference 3]`."""
    return f"[Reference {number}]"


def month_name(month: str) -> str:
    """`2024-03` → `March 2024`."""
    year, number = month.split("-")
    return f"{_MONTHS[int(number) - 1]} {year}"


def task_file(task_id: str, part: str = "") -> str:
    """The name of a task's page: safe on every file system, one per task, readable as far as that goes.

    part: empty for the page with the sections, else what stands before `.html`, as `-written`.
    """
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", task_id).strip("-.")[:60]
    return f"task-{readable}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}{part}.html"
