"""What the UI shows of a month's retrieval scores."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from assets.details import retrieval_details
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.evaluation.retrieval.rows import build_scores
from pipeline.evaluation.stages import RETRIEVAL_QUERIES, RETRIEVAL_SCORES
from tests.unit.evaluation.made_up import workspace
from tests.unit.evaluation.retrieval.corpus import (
    APRIL,
    MARCH,
    WordEmbedder,
    small_corpus,
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A small corpus, scored: March without queries, April with three."""
    made = workspace(tmp_path_factory.mktemp("retrieval"))
    small_corpus(made)
    build = partial(
        build_scores, make=lambda settings: WordEmbedder(), make_reranker=lambda settings: None
    )
    for month in (MARCH, APRIL):
        run_stage(RETRIEVAL_QUERIES, made, month)
        run_stage(replace(RETRIEVAL_SCORES, build=build), made, month)
    return made


def test_the_table_has_a_line_for_each_method(work: Workspace) -> None:
    lines = retrieval_details(work, APRIL)["scores"].value.splitlines()
    assert lines[0] == "| Mean over sentences | recall@1 | MRR | nDCG@10 |"
    assert len(lines) == 2 + 4
    assert all(re.search(r"\d\.\d\d \\\(\d\.\d\d to \d\.\d\d\\\)", line) for line in lines[2:])


def test_the_picture_is_an_svg_and_the_same_every_time(work: Workspace, tmp_path: Path) -> None:
    shown = [retrieval_details(work, APRIL)["picture"].value for _ in range(2)]
    assert shown[0] == shown[1]
    (picture,) = re.findall(
        r"!\[nDCG@10\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", shown[0]
    )
    assert base64.b64decode(picture, validate=True).startswith(b"<svg ")


def test_a_month_without_scores_shows_neither(work: Workspace) -> None:
    assert retrieval_details(work, MARCH) == {}
