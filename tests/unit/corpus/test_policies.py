"""How characters are counted."""

import pytest

from pipeline.corpus.parse.policies import visible

PLANE = 0x10000


@pytest.mark.parametrize("plane", range(17))
def test_every_character_counts_but_white_space_controls_and_signs_of_scripts(plane):
    for first in range(plane * PLANE, (plane + 1) * PLANE, 64):
        text = "".join(map(chr, range(first, first + 64)))
        assert visible(text) == sum(
            not sign.isspace() and sign >= " " and sign not in "^_" for sign in text
        ), hex(first)


def test_white_space_between_other_characters_is_told_from_their_bytes():
    assert visible("é\xa0é\u2009’\u3000漢 🙂\u205f\u1680\x85\t") == 5
