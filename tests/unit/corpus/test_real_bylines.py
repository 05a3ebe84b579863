"""Names and affiliations of real papers, whose authors arXiv's metadata names."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.corpus.parse import html
from pipeline.identity.titles import title_words
from tests.unit.corpus.building import pages_of

Labels = dict[str, list[dict[str, Any]]]
# The pages of 1904.90027 print no byline; that of 2003.90030 prints one of which the labels know
# the names alone.
WITHOUT_BYLINE, WITHOUT_LABELS = {"1904.90027"}, {"1904.90027", "2003.90030"}


@pytest.fixture(scope="module")
def labels(shared_data):
    """Authors with affiliations, as printed, by paper."""
    rows = map(json.loads, (shared_data / "dump2" / "authors.jsonl").read_text().splitlines())
    return {row["id"]: row["authors"] for row in rows}


def read(shared_data, labels):
    """The authors of each page."""
    authors = {}
    for name, content in pages_of(shared_data / "dump2"):
        paper = Path(name).stem
        names = [author["name"] for author in labels[paper]]
        authors[paper] = html.parse(content, names).authors
    return authors


def words(texts):
    return sorted(map(title_words, texts))


def test_names_are_read_as_printed(shared_data, labels):
    authors = read(shared_data, labels)
    assert {paper for paper, found in authors.items() if not found} == WITHOUT_BYLINE
    expected = {
        paper: [title_words(one["name"]) for one in of_paper] for paper, of_paper in labels.items()
    }
    found = {
        paper: [title_words(one.name) for one in of_paper] for paper, of_paper in authors.items()
    }
    count = sum(len(names) for paper, names in expected.items() if paper not in WITHOUT_BYLINE)
    right = sum(name in found[paper] for paper, names in expected.items() for name in names)
    assert right == count
    assert {
        paper: names
        for paper, names in found.items()
        if any(name not in expected[paper] for name in names)
    } == {}


def test_affiliations_are_read_as_printed(shared_data, labels):
    authors = read(shared_data, labels)
    right = count = 0
    for paper in labels.keys() - WITHOUT_LABELS:
        found = {
            " ".join(title_words(one.name)): words(list(one.affiliations)) for one in authors[paper]
        }
        for one in labels[paper]:
            count += 1
            right += found.get(" ".join(title_words(one["name"]))) == words(one["affiliations"])
    assert right / count >= 0.95


def test_the_development_version_of_latexml_is_read(shared_data):
    folder = shared_data / "latexml-head"
    names = ["Yoshinari Fujinuma", "Jordan Boyd-Graber", "Michael J. Paul"]
    authors = html.parse((folder / "1906.01926.html").read_bytes(), names).authors
    assert [(author.name, author.affiliations) for author in authors] == [
        ("Yoshinari Fujinuma", ("Computer Science, University of Colorado",)),
        ("Jordan Boyd-Graber", ("cs, iSchool, umiacs, lsc, University of Maryland",)),
        ("Michael J. Paul", ("Information Science, University of Colorado",)),
    ]
    authors = html.parse((folder / "2405.03064.html").read_bytes()).authors
    assert len(authors) == 6
    assert not any("Affiliation" in text for author in authors for text in author.affiliations)
