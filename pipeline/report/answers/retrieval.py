"""What retrieval brought, apart from what a model made of it: gold passages shown, hops, and where
another hop helped.
"""

from __future__ import annotations

from pipeline.evaluation.answers.results import HopGain, hop_gains
from pipeline.report.answers.found import AnswersFound, cell, name_of, order_of
from pipeline.report.answers.names import question_file
from pipeline.report.corpus import MOST_LINES
from pipeline.report.filters import count
from pipeline.report.grid import Grid, Rows, Section, Value

_MEASURES = ("gold_shown_first_hop", "gold_shown", "coverage_of_shown")


def retrieval_section(found: AnswersFound, *, linked: bool = True) -> Section | None:
    """None where no system searched. linked: whether the questions have pages that can be named from here."""
    gains = sorted(hop_gains(each for each in found.grades if each.judge == found.judge), key=_gain_order)
    grids = [_shown_grid(found), _hops_grid(found), _gains_grid(gains), _helped_grid(found, gains) if linked else None]
    there = [grid for grid in grids if grid is not None]
    if not there:
        return None
    said = (
        "The first table asks no model: a claim of the standard answer counts as shown where one of the passages that "
        "hold its evidence was among those that the system read. Claims whose passage is not known count nowhere. "
        "Coverage of what was shown is the model's part: what it made of what it had."
    )
    return Section("retrieval-of-answers", "Retrieval, apart from the model", (said,), there)


def _gain_order(gain: HopGain) -> tuple[tuple[int, str], int]:
    return order_of(gain.system), gain.hop


def _shown_grid(found: AnswersFound) -> Grid | None:
    rows = []
    for system in found.systems:
        result = found.result(system)
        if result is not None and "gold_shown" in result.measures:
            shares = [cell(result, measure) for measure in _MEASURES]
            rows.append([Value(name_of(system)), *shares, Value(result.measures["gold_shown"].questions, "count")])
    head = ("System", "Shown by the first hop", "Shown by the last hop", "Coverage of what was shown", "Questions")
    return Grid("answers_shown", "Gold claims shown", head, [Rows(rows)]) if rows else None


def _hops_grid(found: AnswersFound) -> Grid | None:
    rows = []
    for system in found.systems:
        hops = found.hops[system]
        if any(hops.keys() - {0}):
            counts = [hops[0], hops[1], hops[2], sum(times for number, times in hops.items() if number > 2)]
            mean = sum(number * times for number, times in hops.items()) / hops.total()
            rows.append([Value(name_of(system)), *(Value(each, "count") for each in counts), Value(mean, "two")])
    head = ("System", "No search", "One hop", "Two hops", "Three and more", "Hops each")
    about = "Questions by how often the system searched; a system searches again only where its model asks for it."
    return Grid("answers_hops", "Hops used", head, [Rows(rows)], about) if rows else None


def _gains_grid(gains: list[HopGain]) -> Grid | None:
    rows = [
        [
            Value(name_of(gain.system)),
            Value(gain.hop, "count"),
            Value(gain.questions, "count"),
            Value(gain.known, "count"),
            Value(gain.shown, "count"),
            Value(gain.shown / gain.known if gain.known else None, "percent"),
            Value(gain.held, "one"),
            Value(len(gain.helped), "count"),
        ]
        for gain in gains
    ]
    head = (
        "System", "Hop", "Questions that took it", "Their gold claims", "First shown by it", "Share",
        "Points for these", "Questions it helped",
    )  # fmt: skip
    about = (
        "Points: one for each of these claims that the answer holds, a half for partly. Helped: questions with any. "
        "It says where a hop could have helped and the answer holds what it brought; that the model would not have "
        "known it otherwise, it does not say."
    )
    return Grid("answers_gains", "What each hop brought", head, [Rows(rows)], about) if rows else None


def _helped_grid(found: AnswersFound, gains: list[HopGain]) -> Grid | None:
    """The questions that a hop after the first helped, with their pages; None where none was taken."""
    later = [gain for gain in gains if gain.hop > 1]
    if not later:
        return None
    texts = {each.question.id: each.question.question for each in found.posed}
    rows = [
        [Value(texts.get(each, each), page=question_file(each)), Value(name_of(gain.system)), Value(gain.hop, "count")]
        for gain in later
        for each in gain.helped
    ]
    left = len(rows) - MOST_LINES
    notes = [f"The other {count(left)} are in the table answer_grades."] if left > 0 else []
    about = "" if rows else "None: no answer has points for a claim that a later hop showed first."
    head = ("Question", "System", "Hop")
    return Grid(
        "answers_helped", "Where another hop helped", head, [Rows(rows[:MOST_LINES])], about, notes, stacked=True
    )
