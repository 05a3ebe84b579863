"""Print the table on retrieval in methods/answering.md: how often the gold passage was shown,
without any model.

    .venv/bin/python -m experiments.answer_retrieval ROOT

ROOT holds the sample corpus up to `index_receipts` and its questions (`citeloom run --until
questions`); nothing is written there. Each question is searched for among the papers up to its
month, as the answering stages do, and three
passages are shown in each hop, in the order of the search: no model ranks, asks or reads. What the
second hop asks is
gold: the gold claims that no passage shown so far holds, as a model would ask that knew what it
lacks, cut as every query is.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline import tables
from pipeline.answering.answer import MOST_CLAIMS
from pipeline.answering.facts import fact_claims
from pipeline.answering.front_matter import FrontMatterTables
from pipeline.answering.questions import KINDS, PosedQuestion, read_posed_questions
from pipeline.answering.retriever import MonthSpan, SearchFunction, index_search, searchable
from pipeline.engine.stage import Workspace
from pipeline.evaluation.statistics import estimate
from pipeline.index.opening import close_indexes
from pipeline.llm.loop import run
from pipeline.settings import Settings, load_settings

ONE, FACTS, AGAIN = "the question", "the question, tables too", "the question, read on"
TWO, EVERY, EACH = (
    "the question, then what is missing",
    "…, then each that is missing",
    "each gold claim by itself",
)
"""Ways to search: one hop with the question; with the front matter that arXivBot adds where the
tables answer; a second hop with the question again, which reads on in what it found; a second with
the gold claims that the first left missing, as one query; one hop more for each of these; and,
apart from hops, each gold claim as a query of its own.
"""
WAYS = (ONE, FACTS, AGAIN, TWO, EVERY, EACH)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and for each gold claim with a known passage whether one was shown, by the way of
    searching.
    """

    posed: PosedQuestion
    shown: Mapping[str, Sequence[bool]]


def known(posed: PosedQuestion) -> list[int]:
    """Places of the gold claims of which a passage is known; the others count nowhere."""
    return [place for place in range(len(posed.question.claims)) if posed.gold_passages.get(place)]


@dataclass(frozen=True, slots=True)
class Shelf:
    """The search over a month's papers, their tables, and how many passages a hop shows of those
    that it finds.
    """

    search: SearchFunction
    facts: FrontMatterTables
    settings: Settings

    def front_matter(self, question: str) -> list[str]:
        """The passages on which rests what the tables tell of a question, as `arxivbot` adds them
        to its first hop.
        """
        (ranking,) = self.search([searchable(question)], self.settings.answer_candidates)
        passages = [scored.item for scored in ranking]
        claims = run(fact_claims(self.facts, question, passages, MOST_CLAIMS - 1))
        return [claim.passage.passage_id for claim in claims]

    def ids(self, query: str, seen: Collection[str] = ()) -> list[str]:
        """The passages that a hop shows: the best that no hop before has shown."""
        (ranking,) = self.search([searchable(query)], self.settings.answer_candidates + len(seen))
        new = [scored.item.passage_id for scored in ranking if scored.item.passage_id not in seen]
        return new[: self.settings.answer_passages]


def missing(posed: PosedQuestion, seen: Collection[str]) -> list[int]:
    """Places of the gold claims none of whose passages was shown."""
    return [place for place in known(posed) if not set(posed.gold_passages[place]) & set(seen)]


def asked(posed: PosedQuestion, shelf: Shelf) -> Asked:
    """What each way of searching shows for one question."""
    question, claims = posed.question.question, posed.question.claims
    first = shelf.ids(question)
    lacking = missing(posed, first)
    told = " ".join(claims[place].claim for place in lacking)
    seen = {
        ONE: first,
        FACTS: first + shelf.front_matter(question),
        AGAIN: first + shelf.ids(question, first),
    }
    seen[TWO] = first + shelf.ids(told, first) if lacking else first
    seen[EVERY] = list(first)
    for place in lacking:
        seen[EVERY] += shelf.ids(claims[place].claim, seen[EVERY])
    shown = {
        way: [place not in missing(posed, ids) for place in known(posed)]
        for way, ids in seen.items()
    }
    gold = posed.gold_passages
    shown[EACH] = [
        bool(set(shelf.ids(claims[place].claim)) & set(gold[place])) for place in known(posed)
    ]
    return Asked(posed, shown)


def measure(work: Workspace) -> list[Asked]:
    """Every question of every month of the table, oldest month first."""
    told = []
    for month in work.root.months(tables.QUESTIONS):
        span = MonthSpan(last=month)
        shelf = Shelf(index_search(work, span), FrontMatterTables(work, span), work.settings)
        posed = read_posed_questions(work.root.rows(tables.QUESTIONS, month))
        told += [asked(each, shelf) for each in posed if known(each)]
    close_indexes()
    return told


def share(told: Iterable[Asked], way: str) -> float:
    """Share of all gold claims with a passage that had one shown."""
    marks = [mark for each in told for mark in each.shown[way]]
    return sum(marks) / len(marks)


def lines(told: Sequence[Asked]) -> Iterator[str]:
    """The table as Markdown: shares of gold claims over questions, each weighing the same, with
    intervals.
    """
    claims = sum(len(each.shown[ONE]) for each in told)
    yield f"{len(told)} questions, {claims} gold claims with a known passage.\n"
    yield _row("searched for", "all", *KINDS, "of all gold claims")
    yield _row(*["---"] * (3 + len(KINDS)))
    for way in WAYS:
        groups = [
            told,
            *([each for each in told if each.posed.question.kind == kind] for kind in KINDS),
        ]
        yield _row(way, *(_mean(group, way) for group in groups), f"{share(told, way):.3f}")
    missed = [f"{each.posed.question.id} {place + 1}" for each in told for place in _missed(each)]
    yield f"\nNot shown after two hops, question and gold claim: {', '.join(missed) or 'none'}."


def _missed(each: Asked) -> list[int]:
    return [
        place for place, mark in zip(known(each.posed), each.shown[TWO], strict=True) if not mark
    ]


def _mean(told: Sequence[Asked], way: str) -> str:
    mean = estimate(
        {each.posed.question.id: [float(mark) for mark in each.shown[way]] for each in told}
    )
    return "–" if mean.low is None else f"{mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    place = Workspace(load_settings(data=Path(sys.argv[1])))
    print("\n".join(lines(measure(place))))
