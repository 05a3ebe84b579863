"""What is read out of real bibliography items, against their labels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.labelled_references import (
    FIELDS,
    Items,
    Label,
    drawn,
    pages,
    plain,
    read_items,
    read_known_citations,
    read_labels,
    right,
    wilson,
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
def items(shared_data: Path) -> Items:
    """Every item of the real pages."""
    return read_items(pages(shared_data / "dump"))


def test_the_labels_are_of_the_items_that_were_drawn(items: Items) -> None:
    keys: dict[str, list[str]] = {}
    for paper, key in items:
        keys.setdefault(paper, []).append(key)
    expected = {(paper, key) for paper, some in keys.items() for key in drawn(paper, some)}
    assert {label.place for label in LABELS} == expected
    assert read_known_citations().keys() <= items.keys()


@pytest.mark.parametrize("half", ["dev", "test"])
def test_most_items_are_read_as_their_labels_say(items: Items, half: str) -> None:
    chosen = [label for label in LABELS if label.half == half]
    shares = {name: hits / len(chosen) for name, hits in right(chosen, items).items()}
    assert {name: share for name, share in shares.items() if share < AT_LEAST[name]} == {}
    assert shares.keys() == AT_LEAST.keys() == FIELDS.keys()


def test_no_label_holds_a_text_of_its_item(items: Items) -> None:
    """Facts alone: no label is the whole item, though an item may be little but its title."""
    assert [
        label.place for label in LABELS if plain(label.title) == plain(items[label.place].raw) != ""
    ] == []


def test_there_are_at_least_200_labels_in_two_halves() -> None:
    halves = Counter(label.half for label in LABELS)
    assert len(LABELS) == len({label.place for label in LABELS}) >= 200
    assert abs(halves["dev"] - halves["test"]) <= 1


def test_a_field_that_is_not_printed_is_right_only_where_none_is_read() -> None:
    from pipeline.corpus.parse.paper import BibliographyItem

    label = Label("1.1", "bib.1", "dev", "", None, "", None, "", "", "", "", "")
    assert right([label], {label.place: BibliographyItem("bib.1", "raw")}) == dict.fromkeys(
        FIELDS, 1
    )
    wrong = BibliographyItem(
        "bib.1", "raw", "A title", ("A. One",), 1999, "J.", "10.5555/x", "2401.00001"
    )
    assert right([label], {label.place: wrong}) == dict.fromkeys(FIELDS, 0) | {
        "number of authors": 1
    }


def test_an_interval_holds_its_proportion() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(95, 100)
    assert (round(low, 3), round(high, 3)) == (0.888, 0.978)
