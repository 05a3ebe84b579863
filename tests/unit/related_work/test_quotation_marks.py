"""What a section without a model takes from the papers is marked as theirs."""

import pytest

from pipeline.related_work.quotation_marks import SourceWords

SOURCE = SourceWords(
    "In this paper, we propose a hull for boats that saves half of the fuel. We show the speed of"
    " our method on rivers, lakes and seas."
)


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        (
            "Lovelace et al. [Reference 1] propose a hull for boats that saves half of the fuel.",
            "Lovelace et al. [Reference 1] “propose a hull for boats that saves half of the fuel.”",
        ),
        (
            "They show the speed of their method on rivers, lakes and seas [Reference 1].",
            "They “show the speed of [their] method on rivers, lakes and seas” [Reference 1].",
        ),
        ("Nothing of the source is here [Reference 1].",) * 2,
        ("See also “a hull for boats” [Reference 1].",) * 2,
    ],
)
def test_words_of_the_source_stand_in_quotation_marks(sentence, marked):
    assert SOURCE.with_quotation_marks(sentence) == marked
