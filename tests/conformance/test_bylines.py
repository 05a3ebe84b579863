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
# A little below what was measured; an affiliation that stays unlinked counts as wrong.
FLOOR = {"author names": 0.99, "affiliations": 0.86}
FLOOR_HELD = {"author names": 0.99, "affiliations": 0.88}
FLOOR_OF_WHOLE_PAGES = {"author names": 0.99, "affiliations": 0.99}


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
    assert {name for name in floor if score.rate(name) < floor[name]} == set(), score.mistakes


def test_nobody_is_given_an_affiliation_of_others():
    for label in LABELS:
        true = {one["name"]: list(map(words, one["affiliations"])) for one in label["authors"]}
        for author in read(label)[1].authors:
            assert all(words(text) in true[author.name] for text in author.affiliations), author
