"""Citation support of a month: precision, recall, coverage, retention. Only its tables; judging is elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from pipeline.report.comparison import basis
from pipeline.report.figures import LineFigure, line, series_of
from pipeline.report.filters import percent, words
from pipeline.report.found import Found
from pipeline.report.grid import Form, Grid, Rows, Section, Value
from pipeline.tables import CITATION_SUPPORT

_MEASURES: tuple[tuple[str, str, Form], ...] = (
    ("citation_precision", "Precision", "percent"),
    ("citation_precision_partly", "Partly as half", "percent"),
    ("citation_precision_quoted", "With quote found", "percent"),
    ("citation_recall", "Recall", "percent"),
    ("reference_coverage", "Coverage", "percent"),
    ("retention", "Retention", "percent"),
    ("citation_exact", "Exact format", "percent"),
    ("citation_out_of_range", "Out of range", "one"),
)
_ABOUT = (
    "Precision: citations whose sentence the cited work's passages support, of those judged; partly as half counts "
    "what is supported in part by half; with quote found counts only what the judge could quote word for word. Recall: "
    "sentences with a citation that supports them, of all sentences, so that 100 % is no aim; sentences whose "
    "citations could not be judged are taken to be supported as often as the others. Coverage: references cited, of "
    "the task's. Retention: earlier references still cited after a step of the search, mean over steps; only systems "
    "that write step by step have it. Exact format: citations written as [Reference i] from the first. Out of range: "
    "citations of references that the task does not have, mean per section."
)
_KINDS = {"supported": "Supported", "partly": "Partly supported", "not": "Not supported"}


def support_section(found: Found) -> Section:
    """Tables by measure and by verdict, and retention by round."""
    parts = [_measures(found), _verdicts(found), _retention(found)]
    if not found.verdicts:
        why = found.off.get(CITATION_SUPPORT.name, "the table citation_support has no rows")
        said: tuple[str, ...] = (
            f"Whether cited works say what they are cited for was not judged: {why}. CITELOOM_SUPPORT_CITATIONS says "
            "how many citations of a section are.",
        )
    else:
        judges = sorted(found.beside[CITATION_SUPPORT.name].models)
        said = (
            f"Of each citation a judge ({', '.join(judges) or 'nobody'}) was shown the passages of the cited work that "
            "come nearest to the sentence. The pages of the tasks lead from each sentence to them.",
            *found.judge_checks.sentences(judges, "citation_support"),
        )
    return Section("support", "Do the cited works say so?", said, [part for part in parts if part is not None])


def _measures(found: Found) -> Grid | None:
    shown = [each for each in _MEASURES if any(found.scores.by_task(system, each[0]) for system in found.systems)]
    rows = [
        [
            Value(words(system)),
            *(found.scores.mean(system, metric).cell(form) for metric, _, form in shown),
            Value(found.written[system].done, "count"),
        ]
        for system in found.systems
    ]
    head = ("System", *(name for _, name, _ in shown), "Tasks")
    about = f"Means over tasks; {_basis(found)}. {_ABOUT}"
    return Grid("support", "Citations by measure", head, [Rows(rows)], about) if shown else None


def _basis(found: Found) -> str:
    """As `basis`, with the judges of citations, who may be others than those of marks."""
    models = sorted(found.beside[CITATION_SUPPORT.name].models)
    judges = ", ".join(found.judge_checks.label(judge, "citation_support") for judge in models)
    return basis(found, judges)


def _verdicts(found: Found) -> Grid | None:
    reasons = sorted({name for counts in found.verdicts.values() for name in counts if name.startswith("unjudged")})
    kinds = (*_KINDS, *reasons)
    rows = []
    for system in sorted(found.verdicts):
        counts, quotes = found.verdicts[system], found.quotes.get(system, Counter())
        missed = Value(quotes.get(False, 0), "count")
        rows.append([Value(words(system)), *(Value(counts[kind], "count") for kind in kinds), missed])
    names = [_KINDS.get(kind) or f"Not judged: {words(kind.removeprefix('unjudged: '))}" for kind in kinds]
    head = ("System", *names, "Supported, quote not found")
    about = "Counts of all citations, each number once a sentence. The last column is part of the supported ones."
    return Grid("verdicts", "Citations by verdict", head, [Rows(rows)], about) if rows else None


def _retention(found: Found) -> LineFigure | None:
    sums = {system: rounds for system, rounds in sorted(found.retained.sums.items()) if rounds}
    last = max((step for rounds in sums.values() for step in rounds), default=0)
    if last < 2:
        return None
    lines = [
        line(words(system), series_of(system), {step: _told(step, shares) for step, shares in rounds.items()}, last)
        for system, rounds in sums.items()
    ]
    beside = [(share, percent(share)) for share in (0.0, 0.5, 1.0)]
    wide = max(last - 1, 1)
    below = [((step - 1) / wide, str(step)) for step in _some_steps(last)]
    about = (
        "Across: the step, one for each reference. Up: of the references of earlier steps, those that the section's "
        "own draft still cites; mean over tasks. Lines that are alike cover one another."
    )
    return LineFigure("Retention by step of the search", lines, below, beside, about)


def retention_grid(found: Found) -> Grid | None:
    """The numbers of the figure, for those who do not see it."""
    sums = {system: rounds for system, rounds in sorted(found.retained.sums.items()) if rounds}
    steps = sorted({step for rounds in sums.values() for step in rounds})
    rows = [
        [
            Value(words(system)),
            *(Value(fmean(rounds[step]) if step in rounds else None, "percent") for step in steps),
        ]
        for system, rounds in sums.items()
    ]
    return Grid("retention", "Retention by step", ("System", *map(str, steps)), [Rows(rows)]) if rows else None


def _told(step: int, shares: Sequence[float]) -> tuple[float, str]:
    share = fmean(shares)
    return share, f"step {step}: {percent(share)} (n = {len(shares)})"


def _some_steps(last: int) -> list[int]:
    """Steps that are written under the axis: all of a few, else some five of them."""
    every = max(1, -(-last // 6))
    return [*range(1, last, every), last] if last % every != 1 or every == 1 else list(range(1, last + 1, every))
