"""Affiliations of labelled bylines whose writer did not see the parser."""

import json

import pytest

from pipeline.corpus.parse import html
from tests.conformance.scoring import Score, score_affiliations, score_names, words
from tests.conformance.truth import PROJECT, TrueAuthor

BYLINES = PROJECT / "tests" / "data" / "bylines"
# Of pages whose marks LaTeXML drops: an affiliation that stays unlinked counts as wrong.
FLOOR_OF_ALL = 0.86
FLOOR = 0.99


@pytest.fixture(scope="module")
def labels():
    """The labels by page, those of pages that lose marks last."""
    rows = map(json.loads, (BYLINES / "labels.jsonl").read_text("utf-8").splitlines())
    return sorted(rows, key=lambda row: bool(row.get("page_loses")))


def score_of(labels):
    score = Score()
    for label in labels:
        authors = [TrueAuthor(one["name"], tuple(one["affiliations"])) for one in label["authors"]]
        page = (BYLINES / f"{label['id']}.html").read_bytes()
        read = html.parse(page, [author.name for author in authors]).authors
        score_names(score, label["id"], read, authors)
        for author, mine in zip(authors, read, strict=True):
            score_affiliations(score, label["id"], author, mine)
    return score


def test_affiliations_are_those_of_the_latex(labels):
    score = score_of(labels)
    assert score.rate("author names") == pytest.approx(1)
    assert score.rate("affiliations") >= FLOOR_OF_ALL, score.mistakes


def test_affiliations_that_a_page_links_are_linked(labels):
    score = score_of(label for label in labels if not label.get("page_loses"))
    assert score.rate("affiliations") >= FLOOR, score.mistakes


def test_nobody_is_given_an_affiliation_of_others(labels):
    for label in labels:
        page = (BYLINES / f"{label['id']}.html").read_bytes()
        read = html.parse(page, [one["name"] for one in label["authors"]]).authors
        given = [(one.name, words(text)) for one in read for text in one.affiliations]
        assert all(
            pair
            in [
                (one["name"], words(text))
                for one in label["authors"]
                for text in one["affiliations"]
            ]
            for pair in given
        ), (label["id"], given)
