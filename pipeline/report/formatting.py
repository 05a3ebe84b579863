"""How numbers, names, months and file names are written in a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.corpus.links import abstract_url, passage_url
from pipeline.evaluation.prose import printable
from pipeline.identity.identifiers import month_of
from pipeline.identity.months import month_name
from pipeline.tables.writers import parse_writer
from pipeline.text import text_digest

ANSWERS_PAGE, FAILURES_PAGE = "answers.html", "failed.html"
PUBLISHED, OURS = "As published", "Ours"
"""Headings of the rows of a paper's table."""
MISSING = "–"
"""Stands for a number that does not exist."""
FEW = 20
"""Bootstrap intervals over fewer tasks, questions or papers are too narrow."""

# Names as their authors write them, and the ablations by what they lack.
_NAMES = {
    "chatcite": "ChatCite",
    "chatcite_no_elements": "ChatCite without key elements",
    "chatcite_no_incremental": "ChatCite without incremental steps",
    "chatcite_no_reflection": "ChatCite without reflection",
    "litllm": "LitLLM",
    "litllm_plan": "LitLLM with a separate plan",
    "lexrank": "LexRank",
    "lead": "LEAD",
    "arxivbot": "arXivBot",
    "arxivbot_fused": "arXivBot with fused search and tables",
    "wikichat": "WikiChat",
    "direct": "the model alone",
    "zero_shot": "zero-shot",
    "few_shot": "few-shot",
    "no_text": "no known text",
    "item": "bibliography item only",
    "abstract": "abstract only",
    "full_text": "full text",
}
# A passage of the corpus has some 200 words; an abstract given by a file may be a book.
_MOST_PASSAGE_CHARS = 6_000
# Of a text in a trace.
_BEGINNING_CHARS = 2_000
_SAFE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
_ENDS_LIKE_DIGEST = re.compile(r"-[0-9a-f]{8}$")


def fixed(number: float, digits: int) -> str:
    """A number with a fixed count of decimals; never a negative zero."""
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def percent(share: float) -> str:
    """A share, 0 to 1, in whole percent; 100 % only for all, and 0 % only for none."""
    whole = round(100 * share)
    if share < 1 and whole == 100:
        return "over 99 %"
    return "under 1 %" if share > 0 and whole == 0 else f"{whole} %"


def count(number: int) -> str:
    """A count with commas between thousands."""
    return f"{number:,}"


def words(name: str) -> str:
    """A name of the code as words: `not_in_corpus` → `not in corpus`, `chatcite@gpt-4` → `ChatCite
    (gpt-4)`.
    """
    system, at, model = name.partition("@")
    shown = _NAMES.get(system, system.replace("_", " "))
    return f"{shown} ({model})" if at else shown


def answering_system(name: str) -> str:
    """An answering system with its model where that is shown; an imported system exactly as its
    file names it.
    """
    writer = parse_writer(name)
    shown = _NAMES.get(writer.system, writer.system)
    return shown if writer.model is None else f"{shown} ({writer.model})"


def criterion_name(criterion: str) -> str:
    """`citation_accuracy` → `Citation accuracy`."""
    return words(criterion).capitalize()


def reference(number: int) -> str:
    """A reference as texts cite it: `[Reference 3]`."""
    return f"[Reference {number}]"


def beginning(text: str, most: int = _BEGINNING_CHARS) -> str:
    """The first characters of a text, with an ellipsis where there are more."""
    return text if len(text) <= most else f"{text[:most]}…"


def words_pattern(text: str) -> re.Pattern[str]:
    """A pattern of these words, in any case, with any white space between them."""
    return re.compile(r"\s+".join(map(re.escape, printable(text).split())), re.IGNORECASE)


def at_quote(text: str | None, quote: str | None) -> tuple[str, str, str]:
    """A passage before, in and after a quote, which is found apart from white space and case."""
    shown = beginning(printable(text or ""), _MOST_PASSAGE_CHARS)
    match = words_pattern(quote).search(shown) if quote and quote.strip() else None
    start, end = match.span() if match else (len(shown), len(shown))
    return shown[:start], shown[start:end], shown[end:]


def place_in_paper(passage: Mapping[str, Any]) -> str:
    """Title and sections, or the kind of a passage outside of sections."""
    path = passage["section_path"] or [words(passage["kind"])]
    return " › ".join([passage["title"] or "", *path])


def question_date(row: Mapping[str, Any]) -> str:
    """The date of a question's newest paper, or its month. row: of `questions`."""
    return row["date"] or max(filter(None, map(month_of, row["papers"])))


def month_range(months: Sequence[str]) -> str:
    """`March 2024`, or `March 2024 to May 2024`."""
    if not months:
        return "no month"
    return " to ".join(map(month_name, dict.fromkeys((min(months), max(months)))))


def small_model_note(model: str) -> str:
    """The warning where the bundled model wrote or judged."""
    return (
        f"{model} wrote or judged here. It is the small model that comes with citeloom so that"
        " every stage runs without a server. Its texts and scores show that the stages work, not"
        " how good the methods are."
    )


def passage_link(arxiv_id: str | None, anchor: str | None) -> str:
    """Where a passage can be read; empty for no paper and for a sample paper."""
    if not arxiv_id:
        return ""
    return passage_url(arxiv_id, anchor) if anchor else abstract_url(arxiv_id)


def task_file(task_id: str, suffix: str = "") -> str:
    """The name of a task's page: safe on every file system, unique, readable.

    suffix: goes before `.html`, as in `-written`.
    """
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", task_id).strip("-.")[:60]
    return f"task-{readable}-{text_digest(task_id)[:8]}{suffix}.html"


def question_file(question_id: str) -> str:
    """The name of a question's page: `question-<id>.html`, unique on every file system.

    An id with capitals, or that looks like a name made here, gets a digest at its end.
    """
    if _SAFE_ID.fullmatch(question_id) and not _ENDS_LIKE_DIGEST.search(question_id):
        return f"question-{question_id}.html"
    readable = re.sub(r"[^a-z0-9.]+", "-", question_id.lower()).strip("-.")[:60]
    return f"question-{readable}-{text_digest(question_id)[:8]}.html"
