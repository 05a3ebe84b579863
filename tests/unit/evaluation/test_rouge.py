"""ROUGE against values worked out by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.evaluation.rouge import METRICS, floor_task, rouge

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]


def test_equal_texts_score_a_hundred() -> None:
    assert rouge("Dense vectors find passages.", "dense VECTORS find passages") == {
        "rouge1": 100.0,
        "rouge2": 100.0,
        "rougeL": 100.0,
        "rougeLsum": 100.0,
    }


def test_values_are_those_worked_out_by_hand() -> None:
    # gold: the cat sat on the mat (6 words, 5 pairs); text: a cat sat on mat (5 words, 4 pairs).
    # Words shared: cat sat on mat, 4 -> 2*4/(6+5). Pairs shared: cat sat, sat on, 2 -> 2*2/(5+4). LCS 4 -> 2*4/11.
    found = rouge("The cat sat on the mat.", "A cat sat on mat")
    assert found["rouge1"] == pytest.approx(100 * 8 / 11)
    assert found["rouge2"] == pytest.approx(100 * 4 / 9)
    assert found["rougeL"] == pytest.approx(100 * 8 / 11)


def test_rouge_l_minds_the_order_and_rouge_1_does_not() -> None:
    # Reversed: every word shared, no pair, and the longest common subsequence is one word of four.
    found = rouge("alpha beta gamma delta", "delta gamma beta alpha")
    assert found == {"rouge1": 100.0, "rouge2": 0.0, "rougeL": pytest.approx(25.0), "rougeLsum": pytest.approx(25.0)}


def test_rouge_l_by_sentence_does_not_mind_the_order_of_sentences() -> None:
    # As one sequence: gamma delta or alpha beta, 2 of 4 words. By sentence both sentences are found whole.
    found = rouge("Alpha beta. Gamma delta.", "Gamma delta. Alpha beta.")
    assert found["rougeL"] == pytest.approx(50.0)
    assert found["rougeLsum"] == pytest.approx(100.0)


def test_the_floor_is_another_task_with_a_gold_section_and_always_the_same() -> None:
    golds = {"a": "Text.", "b": "Text.", "c": " ", "d": "Text."}
    assert floor_task("a", golds) in ("b", "d")
    assert floor_task("a", golds) == floor_task("a", dict(reversed(golds.items())))
    assert floor_task("a", {"a": "Text.", "c": ""}) is None


def test_a_word_counts_as_often_as_both_texts_have_it() -> None:
    # "the the the" against "the cat": one shared -> 2*1/(2+3).
    assert rouge("the cat", "the the the")["rouge1"] == pytest.approx(40.0)


def test_words_are_stemmed() -> None:
    # Porter: retrieving, retrieved -> retriev; weights -> weight.
    assert rouge("retrieving weights", "retrieved weight")["rouge2"] == pytest.approx(100.0)


def test_a_citation_counts_as_two_words() -> None:
    assert rouge("[Reference 3]", "reference 3")["rouge2"] == pytest.approx(100.0)
    assert rouge("[Reference 3]", "[Reference 4]")["rouge1"] == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("gold", "text"), [("", "a text"), ("a text", ""), ("", ""), ("$$$", "---"), ("一二三", "一二三")]
)
def test_what_has_no_words_scores_nothing(gold: str, text: str) -> None:
    assert rouge(gold, text) == dict.fromkeys(METRICS, 0.0)


def test_no_file_of_nltk_is_read_and_no_network_used(tmp_path: Path) -> None:
    program = (
        "import socket, nltk\n"
        "def refuse(*a, **k): raise RuntimeError('asked for nltk data or the network')\n"
        "nltk.download = refuse; nltk.data.find = refuse; socket.socket.connect = refuse\n"
        "from pipeline.evaluation.rouge import rouge\n"
        "print(rouge('weights are learned', 'learning a weight')['rouge1'] > 0)\n"
    )
    environment = {**os.environ, "NLTK_DATA": str(tmp_path), "HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "True", run.stderr
    assert list(tmp_path.iterdir()) == []
