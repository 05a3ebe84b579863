"""Which citing sentences become queries, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.engine.progress import Outcome
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.evaluation.retrieval.sample import masked, why_not
from pipeline.evaluation.stages import RETRIEVAL_QUERIES
from tests.unit.evaluation.made_up import workspace
from tests.unit.evaluation.retrieval.corpus import (
    APRIL,
    MARCH,
    MAY,
    Written,
    small_corpus,
    write_papers,
)

TOLD = "Copper melts slowly inside the furnace"


def made(work: Workspace, month: str = APRIL) -> tuple[list[dict[str, Any]], Outcome]:
    outcome = run_stage(RETRIEVAL_QUERIES, work, month)
    return work.root.rows(tables.RETRIEVAL_QUERIES, month), outcome


def asked_by(tmp_path: Path, *texts: str, kind: str = "paragraph", **settings: object) -> Workspace:
    """April's paper 2404.00001 with these passages, whose key `a` is a paper of March and `self`
    its own.
    """
    work = workspace(tmp_path, **settings)
    write_papers(work, MARCH, [Written("2403.00001", "Known", [("abstract", "Copper.")])])
    cites = {"a": "2403.00001", "self": "2404.00001", "late": "2405.00001", "unknown": "2403.09999"}
    write_papers(
        work, APRIL, [Written("2404.00001", "Asking", [(kind, text) for text in texts], cites)]
    )
    return work


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Dense vectors [@b1] miss rare words.", "Dense vectors miss rare words."),
        ("Two of them [@b1; @b2], and a third [@b3].", "Two of them, and a third."),
        ("As is known (see [@b1]), it holds.", "As is known, it holds."),
        ("It holds ([@b1; @b2]) for all.", "It holds for all."),
        ("It holds (e.g., [@b1]) for all.", "It holds for all."),
        ("[@b1] showed that it holds.", "showed that it holds."),
        ("Cost is $x_{[1]}$ (in hours) [@b1].", "Cost is $x_{[1]}$ (in hours)."),
        ("[@b1]; [@b2] and others agree.", "and others agree."),
        ("Nothing is cited here.", "Nothing is cited here."),
    ],
)
def test_a_query_is_the_sentence_without_its_markers(sentence: str, text: str) -> None:
    assert masked(sentence) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("See also for details.", "too_few_words"),
        ("We refer the reader to for more details.", "formulaic"),
        ("We follow the approach that is described in.", "formulaic"),
        ("Quantized vectors keep recall within a point.", None),
    ],
)
def test_a_sentence_that_says_nothing_is_left_out(text: str, reason: str | None) -> None:
    assert why_not(text) == reason


def test_each_sentence_that_cites_the_corpus_asks_for_what_it_cites(tmp_path: Path) -> None:
    work = workspace(tmp_path)
    small_corpus(work)
    rows, outcome = made(work)
    assert [(row["arxiv_id"], row["text"], row["cited"]) for row in rows] == [
        ("2404.00001", "The quartz quartz shine holds under pressure.", ["2403.00000"]),
        ("2404.00001", "Many a lantern burns through stormy nights.", ["2403.00001", "2404.00002"]),
        ("2404.00002", "Every violin meadow resonates beautifully somewhere.", ["2403.00003"]),
    ]
    assert dict(outcome.notes) == {
        "citing_sentences": 3,
        "that_cite_the_corpus": 3,
        "cited_months": [MARCH, APRIL],
    }
    assert len({row["query_id"] for row in rows}) == 3


def test_a_paper_does_not_ask_for_itself_nor_for_one_that_is_later_or_not_there(
    tmp_path: Path,
) -> None:
    work = asked_by(
        tmp_path,
        f"{TOLD} [@self]. {TOLD} today [@unknown]. {TOLD} later [@late]. {TOLD} again [@a; @self].",
    )
    write_papers(work, MAY, [Written("2405.00001", "Later", [("abstract", "Copper.")])])
    rows, outcome = made(work)
    assert [row["cited"] for row in rows] == [["2403.00001"]]
    counts = (outcome.notes["citing_sentences"], outcome.notes["that_cite_the_corpus"])
    assert counts == (4, 1)


@pytest.mark.parametrize("kind", ["table", "algorithm", "front_matter"])
def test_what_is_no_running_text_does_not_ask(tmp_path: Path, kind: str) -> None:
    assert made(asked_by(tmp_path, f"{TOLD} [@a].", kind=kind))[0] == []


def test_empty_and_repeated_sentences_are_in_the_ledger_with_their_reason_in_every_run(
    tmp_path: Path,
) -> None:
    work = asked_by(
        tmp_path,
        f"{TOLD} [@a]. See also [@a]. We refer the reader to [@a] for more details.",
        f"{TOLD} [@a].",
    )
    rows, outcome = made(work)
    assert [row["passage_id"] for row in rows] == ["2404.00001-0"]
    ledger = pq.read_table(work.root.ledger_file("retrieval_queries", APRIL)).to_pylist()
    assert [(row["subject"], row["reason"], row["detail"]) for row in ledger] == [
        ("2404.00001-0", "too_few_words", "See also."),
        ("2404.00001-0", "formulaic", "We refer the reader to for more details."),
        ("2404.00001-1", "same_text", f"{TOLD}."),
    ]
    again = run_stage(RETRIEVAL_QUERIES, work, APRIL, force=True)
    assert work.root.rows(tables.RETRIEVAL_QUERIES, APRIL) == rows
    assert again.left_out == outcome.left_out


def test_no_more_are_drawn_than_the_setting_says_and_the_rest_is_counted(tmp_path: Path) -> None:
    texts = [f"{TOLD} on day {number} [@a]." for number in range(30)]
    few, outcome = made(asked_by(tmp_path / "few", *texts, retrieval_queries=10))
    more, _ = made(asked_by(tmp_path / "more", *texts, retrieval_queries=20))
    none, undrawn = made(asked_by(tmp_path / "none", *texts, retrieval_queries=0))
    assert (len(few), len(more), len(none)) == (10, 20, 0)
    assert (outcome.left_out, undrawn.left_out) == ({"over_retrieval_queries": 20}, {})
    assert {row["text"] for row in few} < {row["text"] for row in more}
    places = [int(row["passage_id"].split("-")[1]) for row in few]
    assert places == sorted(places) != list(range(10))


def test_a_month_that_is_cited_makes_the_queries_stale_and_another_does_not(tmp_path: Path) -> None:
    work = asked_by(tmp_path, f"{TOLD} [@a].")
    made(work)
    write_papers(work, "2024-02", [Written("2402.00001", "Not cited", [("abstract", "Dune.")])])
    assert state(RETRIEVAL_QUERIES, work, APRIL) is State.DONE
    write_papers(work, MARCH, [])
    assert state(RETRIEVAL_QUERIES, work, APRIL) is State.STALE
    assert made(work)[0] == []
