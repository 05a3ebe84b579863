"""ROUGE against values worked out by hand, and against rouge-score and its stemmer."""

import re
import sys
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from pipeline.evaluation.rouge import METRICS, floor_task, rouge, stem
from pipeline.related_work.summary import split_sentences
from tests.cases import cases

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]


@cases("unit/evaluation/cases.toml", "rouge", ["gold", "text", "values"])
def test_values_are_those_worked_out_by_hand(gold, text, values):
    expected = {name: 100 * value for name, value in zip(METRICS, values, strict=True)}
    assert rouge(gold, text) == pytest.approx(expected)


def test_the_floor_is_another_task_with_a_gold_section_and_always_the_same():
    golds = {"a": "Text.", "b": "Text.", "c": " ", "d": "Text."}
    assert floor_task("a", golds) in ("b", "d")
    assert floor_task("a", golds) == floor_task("a", dict(reversed(golds.items())))
    assert floor_task("a", {"a": "Text.", "c": ""}) is None


@cache
def oracle():
    # absl, which rouge-score imports, keeps the standard error of its import and closes it where
    # Dagster configures logging: pytest's file for output must not be it.
    with redirect_stderr(sys.__stderr__):
        from rouge_score.rouge_scorer import RougeScorer
    return RougeScorer(METRICS, use_stemmer=True)


SAMPLE = " ".join(file.read_text() for file in sorted(PROJECT.glob("examples/papers/*/paper.tex")))
WORDS = sorted({word for word in re.findall("[a-z0-9]+", SAMPLE.lower()) if len(word) > 3})
ENDINGS = re.findall(
    "[a-z]+", "s sses ies ied eed ed ing y ll al alli logi fulli bli ization iveness icate ion er"
)
TEXTS = st.one_of(
    st.lists(st.sampled_from(split_sentences(SAMPLE)), max_size=4),
    st.lists(st.sampled_from(["A", "b", "b.", "Using", "used.", "[Reference 3]."]), max_size=20),
).map(" ".join)


@given(TEXTS, TEXTS)
def test_values_are_those_of_rouge_score(gold, text):
    values = oracle().score("\n".join(split_sentences(gold)), "\n".join(split_sentences(text)))
    expected = {metric: 100 * values[metric].fmeasure for metric in METRICS}
    assert rouge(gold, text) == pytest.approx(expected, rel=1e-12)


def test_words_have_the_stems_of_nltk():
    words = [*WORDS, "skies", "dying", "dies", "died", "news", "innings", "proceed"]
    for beginning in ("b", "ob", "sky", "enjo", "hopp", "fil", "comput"):
        words += [beginning + first + last for first in ENDINGS for last in ("", *ENDINGS)]
    stemmer = PorterStemmer()
    words = [word for word in words if len(word) > 2]
    assert list(map(stem, words)) == list(map(stemmer.stem, words))
