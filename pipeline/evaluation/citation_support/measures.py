"""The citations of a section and their measures, as pure functions of rows.

Citation recall and precision have their names from ALCE (Gao, Yen, Yu and Chen 2023, arXiv
2305.14627, section 3.3); docs/methods/citation-support.md says where ours differ. A measure that
nothing could be computed for is absent, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from pipeline.evaluation.citation_support.judge import MARKER, citations_of
from pipeline.evaluation.verdicts import verdict_shares
from pipeline.related_work.summary import cited_numbers, normalize

Row = Mapping[str, Any]


def citation_measures(
    task_row: Row, summary_row: Row, support_rows: Iterable[Row]
) -> dict[str, float]:
    """Measure → value of one section, of those that can be computed: shares from 0 to 1, and one
    count, `citation_out_of_range`.

    task_row: of `related_work_tasks`, its `references`; summary_row: of a system's table, its
    `text`, `sentences` and `trace`; support_rows: those of `citation_support` for this task and
    system, none where nothing was judged.
    """
    rows = list(support_rows)
    numbers = {reference["number"] for reference in task_row["references"]}
    trace: Mapping[str, Any] = json.loads(summary_row["trace"] or "{}")
    retained = retention_by_round(trace)
    measures = {
        **precision(rows),
        "citation_recall": recall(summary_row["sentences"], rows),
        "reference_coverage": coverage(summary_row["text"], numbers),
        "citation_out_of_range": float(
            sum(cite.number not in numbers for cite in citations_of(summary_row["sentences"]))
        ),
        "citation_exact": exactness(summary_row["text"], trace),
        "retention": fmean(retained) if retained else None,
    }
    return {name: value for name, value in measures.items() if value is not None}


def precision(rows: Sequence[Row]) -> dict[str, float]:
    """Of the citations that were judged, the share that is supported: as judged, with half for
    partly, and of those whose quote is in a passage that was shown. Nothing where none was judged.
    """
    whole = {"supported": 1.0, "partly": 0.0, "not": 0.0}
    shares = verdict_shares(rows, whole, "quote_found")
    halves = verdict_shares(rows, whole | {"partly": 0.5}, "quote_found")
    if shares is None or halves is None:
        return {}
    return {
        "citation_precision": shares[0],
        "citation_precision_partly": halves[0],
        "citation_precision_quoted": shares[2],
    }


def recall(sentences: Sequence[Row], rows: Sequence[Row]) -> float | None:
    """The share of a section's sentences that cite something that supports them; None where it has
    no sentences, or where it cites and nothing was judged.

    A sentence counts where one of its citations at least is supported; one whose citations are all
    out of range does not. Citations that were not judged, for want of a text or by the limit, do
    not count: the share among the sentences with a citation that was judged stands for those too.
    """
    cited = {citation.sentence for citation in citations_of(sentences)}
    stating = [
        place
        for place, each in enumerate(sentences, 1)
        if place in cited or not is_heading(each["text"])
    ]
    if not stating:
        return None
    if not cited:
        return 0.0
    judged = {row["sentence"] for row in rows if row["verdict"] is not None}
    supported = {row["sentence"] for row in rows if row["verdict"] == "supported"}
    may_be = (
        {row["sentence"] for row in rows if row["unjudged"] != "out_of_range"} if rows else cited
    )
    if not judged:
        return None if may_be else 0.0
    return len(supported) / len(judged) * len(may_be) / len(stating)


def is_heading(text: str) -> bool:
    """Whether a piece of a section is a Markdown heading or has no letter, so states nothing."""
    return not any(sign.isalpha() for sign in text) or (
        text.startswith("#") and text[-1] not in ".!?"
    )


def coverage(text: str, numbers: Iterable[int]) -> float | None:
    """The share of a task's references that a text cites at all."""
    references = set(numbers)
    return len(references & set(cited_numbers(text))) / len(references) if references else None


def exactness(text: str, trace: Mapping[str, Any]) -> float | None:
    """The share of citations that were written as `[Reference i]`; None where a text has none in
    any spelling.

    A text's other spellings are respelt before it is kept, and counted in its trace, a group such
    as [References 1, 2] once, though it becomes two: the share is then a little too high.
    """
    spellings = trace.get("citations")
    if spellings is None:
        return None
    there = len(MARKER.findall(text))
    written = there + spellings.get("bare", 0)
    return max(there - spellings["respelt"], 0) / written if written else None


def retention_by_round(trace: Mapping[str, Any]) -> list[float]:
    """For every round but the first, the share of the references of earlier rounds that is still
    cited after it.

    After a round means in the draft that became the section. Empty where a system has fewer than
    two rounds.
    """
    rounds: Sequence[Mapping[str, Any]] = trace.get("rounds") or []
    shares = []
    # From the last round back, along the kept drafts that the section comes from.
    slot = 0
    for place in range(len(rounds) - 1, 0, -1):
        step = rounds[place]
        draft = step["drafts"][step["kept"][slot] - 1]
        earlier = {before["reference"] for before in rounds[:place]}
        cited = set(cited_numbers(normalize(draft["text"])[0]))
        shares.append(len(earlier & cited) / len(earlier))
        slot = max(draft["parent"] - 1, 0)
    return shares[::-1]
