"""The six criteria in words for people.

Names and order are ChatCite's (arXiv 2403.02574, section 4); the words are ours, and say the same as the judge's, but
for consistency: raters see the gold section only where a study is made so.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.tables import CRITERIA


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion: the name of its column, its heading, and what is asked."""

    name: str
    heading: str
    question: str


_QUESTIONS = {
    "coherence": "Do the sentences build on one another to a connected text, rather than a heap of related facts?",
    "comparative": (
        "Does it compare the cited works with one another and with the target paper, and take similar works together?"
    ),
    "integrity": (
        "Does it have what such a section needs: the background of the question, what each cited work did, an "
        "appraisal of past research, and what the target paper adds?"
    ),
    "fluency": "Are grammar, spelling, punctuation, choice of words and build of sentences right?",
    "citation_accuracy": (
        "Wherever it speaks of a cited work, does it name it as [Reference i], with the number of the list?"
    ),
}
_CONSISTENT = "Does what it says agree with {}, and does it contradict neither that nor itself?"


def criteria(*, with_gold: bool) -> tuple[Criterion, ...]:
    """The six criteria in ChatCite's order; with_gold: whether raters see the section that was published."""
    measure = "the published section" if with_gold else "the target paper and with what you know of the cited works"
    questions = {"consistency": _CONSISTENT.format(measure), **_QUESTIONS}
    return tuple(Criterion(name, name.replace("_", " ").capitalize(), questions[name]) for name in CRITERIA)
