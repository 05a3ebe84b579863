"""What is read out of real bibliography items, against their labels."""

import pytest

from benchmarks.labelled_references import (
    FIELDS,
    drawn,
    pages,
    read_items,
    read_known_citations,
    read_labels,
    right,
)

LABELS = read_labels()
# What a change may cost at most. Today's shares, and how far they can be trusted:
# docs/methods/references.md.
AT_LEAST = {
    "title": 0.96,
    "title, letter by letter": 0.95,
    "first author": 0.98,
    "number of authors": 0.98,
    "year": 0.99,
    "venue": 0.96,
    "DOI": 0.99,
    "arXiv id": 0.99,
}


@pytest.fixture(scope="module")
def items(shared_data):
    """Every item of the real pages."""
    return read_items(pages(shared_data / "dump"))


def test_the_labels_are_of_the_items_that_were_drawn(items):
    keys = {}
    for paper, key in items:
        keys.setdefault(paper, []).append(key)
    expected = {(paper, key) for paper, some in keys.items() for key in drawn(paper, some)}
    assert {label.place for label in LABELS} == expected
    assert read_known_citations().keys() <= items.keys()


@pytest.mark.parametrize("half", ["dev", "test"])
def test_most_items_are_read_as_their_labels_say(items, half):
    chosen = [label for label in LABELS if label.half == half]
    shares = {name: hits / len(chosen) for name, hits in right(chosen, items).items()}
    assert {name: share for name, share in shares.items() if share < AT_LEAST[name]} == {}
    assert shares.keys() == AT_LEAST.keys() == FIELDS.keys()
