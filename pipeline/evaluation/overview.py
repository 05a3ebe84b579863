"""The numbers that a report prints, from rows of tables. Not here: how they are laid out, and reading tables.

Every function is pure: rows in, frozen values out, in an order that does not depend on the order of the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pipeline.evaluation.g_score import CRITERIA

Rows = Iterable[Mapping[str, Any]]

# What the Table 1 of ChatCite prints (arXiv 2403.02574v1), R-L, G-Score, preference in percent.
PUBLISHED: tuple[tuple[str, float, float, float, float, float], ...] = (
    ("GPT-3.5, zero-shot", 26.01, 6.11, 24.02, 3.4102, 2.21),
    ("GPT-3.5, few-shot", 25.84, 6.01, 23.55, 3.5968, 10.80),
    ("GPT-4, zero-shot", 30.02, 8.03, 27.97, 3.5076, 26.40),
    ("GPT-4, few-shot", 15.52, 1.78, 14.20, 1.6621, 0.21),
    ("LitLLM with GPT-4", 27.08, 6.07, 24.94, 3.5448, 24.51),
    ("ChatCite (GPT-3.5)", 25.30, 6.36, 23.13, 4.0642, 35.86),
)

# The style sheet has six colours, told apart in light and dark; a name stands beside each bar, so they may recur.
_COLOURS = 6

# The embedded default writes sentences, not reviews; a report must say so. Names as endpoints print them.
_SMALL_MODELS = ("smollm2-135m",)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the corpus's way into the index: how many come out, and what was left out before it, by reason."""

    name: str
    counted: str
    rows: int
    left_out: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PaperLine:
    """One paper of the month. `kept` is the share of visible characters that were kept, 0 to 1; None for no text."""

    arxiv_id: str
    title: str
    subset: str
    category: str
    sections: int
    passages: int
    references: int
    resolved: int
    kept: float | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class SystemLine:
    """Means of one system over its tasks. `values` has each metric's mean, where there is one."""

    system: str
    model: str
    tasks: int
    judged: int
    values: Mapping[str, float]
    calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a figure. `share` of the full width, 0 to 1; `series` is the number of its colour."""

    label: str
    value: float
    share: float
    series: int


def system_lines(summaries: Rows, scores: Rows) -> list[SystemLine]:
    """One line per system that wrote anything, by name."""
    written: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in summaries:
        written[row["system"]].append(row)
    values = means(scores)
    return [_system_line(system, rows, values.get(system, {})) for system, rows in sorted(written.items())]


def _system_line(system: str, rows: Sequence[Mapping[str, Any]], values: Mapping[str, tuple[float, int]]) -> SystemLine:
    return SystemLine(
        system=system,
        model=", ".join(sorted({row["model"] for row in rows})),
        tasks=len(rows),
        judged=values.get("g_score", (0.0, 0))[1],
        values={metric: mean for metric, (mean, _) in values.items()},
        calls=sum(row["calls"] for row in rows),
        prompt_tokens=sum(row["prompt_tokens"] for row in rows),
        completion_tokens=sum(row["completion_tokens"] for row in rows),
    )


def means(scores: Rows) -> dict[str, dict[str, tuple[float, int]]]:
    """System → metric → (mean over tasks, number of tasks)."""
    found: dict[tuple[str, str], list[tuple[str, int, float]]] = defaultdict(list)
    for row in scores:
        found[row["system"], row["metric"]].append((row["task_id"], row["repeat"], row["value"]))
    result: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    for (system, metric), values in sorted(found.items()):
        # fmean rounds once, after an exact sum, so the order of the rows cannot show in the last digit.
        result[system][metric] = (fmean(value for *_, value in values), len({task for task, *_ in values}))
    return dict(result)


def criteria_bars(lines: Sequence[SystemLine]) -> list[tuple[str, list[Bar]]]:
    """Criterion of the G-Score → one bar per judged system, on an axis from 0 to 5; empty where nothing was judged."""
    judged = [(colour, line) for colour, line in zip(colours(len(lines)), lines, strict=True) if line.judged]
    if not judged:
        return []
    return [(criterion, [_bar(line, colour, f"g_{criterion}") for colour, line in judged]) for criterion in CRITERIA]


def colours(systems: int) -> list[int]:
    """The number of each system's colour, in order of name: the same in a month's figure and on its tasks' pages."""
    return [number % _COLOURS + 1 for number in range(systems)]


def _bar(line: SystemLine, colour: int, metric: str) -> Bar:
    value = line.values[metric]
    return Bar(line.system, value, value / 5.0, colour)


def length_bars(words: Iterable[int], width: int = 20, last: int = 300) -> list[Bar]:
    """Passages by length: one bar per `width` words up to `last`, then one for what is longer; shares of the peak."""
    counts = Counter(min(count, last) // width for count in words)
    peak = max(counts.values(), default=0)
    if not peak:
        return []
    bins = range(last // width + 1)
    return [Bar(_bin_label(number, width, last), counts[number], counts[number] / peak, 1) for number in bins]


def _bin_label(number: int, width: int, last: int) -> str:
    first = number * width
    return f"{first} words and more" if first >= last else f"{first} to {first + width - 1} words"


def paper_lines(
    papers: Rows, passages: Mapping[str, int], references: Mapping[str, int], resolved: Mapping[str, int]
) -> list[PaperLine]:
    """One line per paper, by identifier; the mappings count by identifier."""
    lines = [_paper_line(row, passages, references, resolved) for row in papers]
    return sorted(lines, key=lambda line: line.arxiv_id)


def _paper_line(
    row: Mapping[str, Any], passages: Mapping[str, int], references: Mapping[str, int], resolved: Mapping[str, int]
) -> PaperLine:
    identifier = row["arxiv_id"]
    return PaperLine(
        arxiv_id=identifier,
        title=row["title"],
        subset=row["subset"],
        category=row["primary_category"],
        sections=len(row["sections"]),
        passages=passages.get(identifier, 0),
        references=references.get(identifier, 0),
        resolved=resolved.get(identifier, 0),
        kept=row["chars_kept"] / row["chars_seen"] if row["chars_seen"] else None,
        truncated=row["truncated"],
    )


def is_small_model(name: str | None) -> bool:
    """Whether a model's name is the embedded default's, whose texts show that the path works and no more."""
    return any(small in (name or "").lower() for small in _SMALL_MODELS)
