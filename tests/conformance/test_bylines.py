"""Affiliations of labelled bylines whose writer did not see the parser."""

import json

import pytest

from pipeline.corpus.parse import html
from tests.conformance.scoring import Score, score_byline, words
from tests.conformance.truth import PROJECT, TrueAuthor

DATA = PROJECT / "tests" / "data"


def labels_of(folder):
    """The labels of a folder's pages, each with its page."""
    lines = (DATA / folder / "labels.jsonl").read_text("utf-8").splitlines()
    return [
        label | {"page": DATA / folder / f"{label['id']}.html"} for label in map(json.loads, lines)
    ]


LABELS, HELD = labels_of("bylines"), labels_of("bylines_held")
# Of affiliations, a little below what was measured; one that stays unlinked counts as wrong.
FLOOR, FLOOR_OF_WHOLE_PAGES, FLOOR_HELD = 0.86, 0.99, 0.88


def read(label):
    """The text of a labelled page, and the paper that it holds."""
    page = label["page"].read_bytes()
    return page.decode(), html.parse(page, [one["name"] for one in label["authors"]])


@pytest.mark.parametrize(
    ("labels", "floor"),
    [
        (LABELS, FLOOR),
        ([one for one in LABELS if not one.get("page_loses")], FLOOR_OF_WHOLE_PAGES),
        (HELD, FLOOR_HELD),
    ],
    ids=["all", "pages that have all marks of the LaTeX", "held out"],
)
def test_affiliations_are_those_of_the_latex(labels, floor):
    score = Score()
    for label in labels:
        authors = [TrueAuthor(one["name"], tuple(one["affiliations"])) for one in label["authors"]]
        text, paper = read(label)
        score_byline(score, label["id"], paper, authors, text)
    assert score.rate("author names") >= 0.99, score.mistakes
    assert score.rate("affiliations") >= floor, score.mistakes


def test_nobody_is_given_an_affiliation_of_others():
    for label in LABELS:
        true = {one["name"]: list(map(words, one["affiliations"])) for one in label["authors"]}
        for author in read(label)[1].authors:
            assert all(words(text) in true[author.name] for text in author.affiliations), author
