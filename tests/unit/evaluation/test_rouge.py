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


@pytest.mark.parametrize(
    ("gold", "text", "values"),
    [
        pytest.param(
            "Dense vectors find passages.",
            "dense VECTORS find passages",
            dict.fromkeys(METRICS, 100),
            id="equal",
        ),
        # 6 words, 5 pairs and 5 words, 4 pairs. Shared: 4 words, the pairs "cat sat" and "sat on",
        # an LCS of 4.
        pytest.param(
            "The cat sat on the mat.",
            "A cat sat on mat",
            {"rouge1": 100 * 2 * 4 / 11, "rouge2": 100 * 2 * 2 / 9, "rougeL": 100 * 2 * 4 / 11},
            id="worked out by hand",
        ),
        # Every word shared, no pair, and the longest common subsequence is one word of four.
        pytest.param(
            "alpha beta gamma delta",
            "delta gamma beta alpha",
            {"rouge1": 100, "rouge2": 0, "rougeL": 25, "rougeLsum": 25},
            id="the order of words matters to all but rouge1",
        ),
        # As one sequence 2 of 4 words; by sentence both sentences are found whole.
        pytest.param(
            "Alpha beta. Gamma delta.",
            "Gamma delta. Alpha beta.",
            {"rougeL": 50, "rougeLsum": 100},
            id="the order of sentences does not matter to rougeLsum",
        ),
        # One "the" shared: 2*1/(2+3).
        pytest.param(
            "the cat", "the the the", {"rouge1": 40}, id="a word counts as often as both have it"
        ),
        pytest.param(
            "retrieving weights", "retrieved weight", {"rouge2": 100}, id="words are stemmed"
        ),
        pytest.param("[Reference 3]", "reference 3", {"rouge2": 100}, id="a citation is two words"),
        pytest.param(
            "[Reference 3]", "[Reference 4]", {"rouge1": 50}, id="another citation shares one word"
        ),
        *(
            pytest.param(
                gold, text, dict.fromkeys(METRICS, 0), id=f"no words: {gold!r} and {text!r}"
            )
            for gold, text in (
                ("", "a text"),
                ("a text", ""),
                ("", ""),
                ("$$$", "---"),
                ("一二三", "一二三"),
            )
        ),
    ],
)
def test_values_are_those_worked_out_by_hand(
    gold: str, text: str, values: dict[str, float]
) -> None:
    found = rouge(gold, text)
    assert tuple(found) == METRICS
    assert {metric: found[metric] for metric in values} == pytest.approx(values)


def test_the_floor_is_another_task_with_a_gold_section_and_always_the_same() -> None:
    golds = {"a": "Text.", "b": "Text.", "c": " ", "d": "Text."}
    assert floor_task("a", golds) in ("b", "d")
    assert floor_task("a", golds) == floor_task("a", dict(reversed(golds.items())))
    assert floor_task("a", {"a": "Text.", "c": ""}) is None


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
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "True", run.stderr
    assert list(tmp_path.iterdir()) == []
