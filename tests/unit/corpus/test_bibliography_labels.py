"""What is read out of real bibliography items, and which papers they are resolved to, against labels."""

import pytest

from benchmarks.labelled_references import (
    FIELDS,
    known_papers,
    look_alikes,
    pages,
    read_items,
    read_known_citations,
    read_labels,
    resolve,
    resolve_all,
    right,
    title_index,
    works,
)  # fmt: skip

pytestmark = pytest.mark.slow

LABELS = read_labels()
CITED = works(LABELS)
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


@pytest.mark.parametrize("half", ["dev", "test"])
def test_most_items_are_read_as_their_labels_say(items, half):
    chosen = [label for label in LABELS if label.half == half]
    shares = {name: hits / len(chosen) for name, hits in right(chosen, items).items()}
    assert {name: share for name, share in shares.items() if share < AT_LEAST[name]} == {}
    assert shares.keys() == AT_LEAST.keys() == FIELDS.keys()


def test_cited_works_are_found_by_title_among_their_look_alikes(items, shared_data):
    papers = title_index([*known_papers(shared_data), *look_alikes(LABELS), *CITED.values()])
    titles = {label.place: CITED[label.place]["arxiv_id"] for label in LABELS if label.title}
    found = resolve(LABELS, items, papers, titles, hidden=True)
    assert (found.right + found.wrong).keys() == {"title"}
    assert found.wrong.total() <= 2
    assert found.right.total() >= 0.98 * found.findable


def test_a_work_that_no_paper_of_the_catalogue_is_stays_unresolved(items, shared_data):
    known = known_papers(shared_data)
    there = {
        label.place: label.cites
        for label in LABELS
        if label.cites in {paper["arxiv_id"] for paper in known}
    }
    found = resolve(LABELS, items, title_index([*known, *look_alikes(LABELS)]), there, hidden=True)
    assert found.right.total() == len(there) == 4
    assert found.wrong.total() <= 2


def test_identifiers_and_dois_as_printed_lead_to_the_cited_work(items, shared_data):
    papers = title_index([*known_papers(shared_data), *look_alikes(LABELS), *CITED.values()])
    found = resolve(
        LABELS,
        items,
        papers,
        {place: work["arxiv_id"] for place, work in CITED.items()},
        hidden=False,
    )
    assert found.wrong.total() == 0
    assert found.right["identifier"] >= 57
    assert found.right["doi"] >= 40


def test_every_item_that_cites_a_paper_at_hand_is_found_and_no_other(items, shared_data):
    truth = read_known_citations()
    found = resolve_all(items, title_index(known_papers(shared_data)), truth)
    assert (found.right.total(), found.wrong.total(), found.mistakes) == (len(truth), 0, ())
