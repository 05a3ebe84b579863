"""Numbers of claims beside the cells of tables."""

import pytest

from pipeline.evaluation.citation_support.claim_facts import facts_of_passage
from pipeline.evaluation.citation_support.table_claims import clash_with_cell, stated_by_cells

TABLE = """Table 2: Accuracy on the sets Harbour and Reef, by language.
| Set | System | Accuracy (%) | Time (s) |
| --- | --- | --- | --- |
| Harbour | Lanternfish 2 | 61.5 | 2.7 |
|  | BM25 | 44.2 | 0.4 |
| Reef | Lanternfish 2 | 58.3 | 3.1 |
|  | BM25 | 39.7 | 0.6 |"""


def test_a_cell_has_all_labels_of_its_row():
    texts = [facts.text for facts in facts_of_passage(TABLE)]
    assert "Reef, BM25, Accuracy (%): 39.7" in texts


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        (
            "On Reef, BM25 has an accuracy of 39.7%.",
            "Reef, BM25, Accuracy (%): 39.7",
        ),
        (
            "Lanternfish 2 has an accuracy of 61.5% on Harbour, compared with 44.2% for BM25.",
            "Harbour, Lanternfish 2, Accuracy (%): 61.5; Harbour, BM25, Accuracy (%): 44.2",
        ),
        ("On Harbour, BM25 has a time of 0.4 seconds.", "Harbour, BM25, Time (s): 0.4"),
        # Each of the other's row, and of another row.
        ("Lanternfish 2 has an accuracy of 44.2% on Harbour, compared with 61.5% for BM25.", ""),
        ("On Reef, BM25 has an accuracy of 44.2%.", ""),
        # A unit, a name and a direction that the table does not have.
        ("On Harbour, BM25 has a time of 0.4 hours.", ""),
        ("On Reef in Dutch, BM25 has an accuracy of 39.7%.", ""),
        ("On Reef, BM25 loses accuracy from 39.7% to 44.2%.", ""),
        ("On Reef, BM25 does not have an accuracy of 39.7%.", ""),
        ("On Reef, BM25 went from version 1.2.3 to 1.2.4.", ""),
    ],
)
def test_a_claim_is_stated_by_the_cells_that_it_addresses(claim, quote):
    assert stated_by_cells(claim, TABLE, "") == quote


@pytest.mark.parametrize(
    ("claim", "theirs"),
    [
        ("On Reef, BM25 has an accuracy of 44.2%.", "39.7"),
        ("On Reef, BM25 has an accuracy of 39.7%.", ""),
        ("On Reef in Dutch, BM25 has an accuracy of 44.2%.", ""),
        # In no cell; of a system without a name; a difference.
        ("On Reef, BM25 has an accuracy of 45.9%.", ""),
        ("BM25 beats the 44.2% accuracy of an older system on Reef.", ""),
        ("The accuracy of BM25 on Reef differs by 44.2%.", ""),
        ("BM25 has an accuracy of 39.7% on Reef and of 44.2% on an easier set.", ""),
    ],
)
def test_the_number_of_another_row_clashes_with_the_cell(claim, theirs):
    clash = clash_with_cell(claim, [TABLE], [], "")
    assert (clash.theirs if clash else "") == theirs


def test_a_number_of_a_sentence_does_not_clash_with_a_cell():
    prose = facts_of_passage("With more data, BM25 has an accuracy of 44.2% there.")[0].numbers
    assert clash_with_cell("On Reef, BM25 has an accuracy of 44.2%.", [TABLE], prose, "") is None
