"""Packing and splitting: bounds, kinds, ids, and what is never cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.passages.pack import FEWEST_WORDS, MOST_WORDS, Passage, pack, passage_id, with_ids
from pipeline.passages.split import sentences, split_table, split_text
from pipeline.passages.text import embedded_text


def block(
    text: str, *, kind: str = "paragraph", section: str = "Method", anchor: str = "S1.p1", keys: tuple = ()
) -> dict:
    return {"kind": kind, "anchor": anchor, "section_path": [section], "text": text, "cited_keys": list(keys)}


def paper(*blocks: dict, **changes: Any) -> dict:
    author = {"name": "Ines Moreau", "affiliations": ["Quay University"], "emails": ["ines@quay.example"]}
    base = {
        "arxiv_id": "2403.90001",
        "title": "Tidepool",
        "authors": [author],
        "abstract": " ".join(["word"] * 40),
        "categories": ["cs.IR", "cs.CL"],
        "year": 2024,
        "blocks": list(blocks),
    }
    return base | changes


def body(*blocks: dict) -> list[Passage]:
    return [passage for passage in pack(paper(*blocks)) if passage.kind not in ("front_matter", "abstract")]


def words(count: int) -> str:
    return " ".join(["term"] * count)


def test_the_front_matter_names_authors_places_and_categories() -> None:
    front = pack(paper())[0]
    assert front.kind == "front_matter"
    assert "Ines Moreau (Quay University, ines@quay.example)" in front.text
    assert "2403.90001 (2024), categories cs.IR, cs.CL" in front.text


def test_short_neighbours_of_one_section_are_packed() -> None:
    assert [passage.words for passage in body(block(words(50)), block(words(60), anchor="S1.p2"))] == [110]


def test_neighbours_of_different_sections_stay_apart() -> None:
    found = body(block(words(30)), block(words(30), section="Results", anchor="S2.p1"))
    assert [passage.section_path for passage in found] == [("Method",), ("Results",)]


def test_a_long_paragraph_is_split_at_sentence_ends() -> None:
    found = body(block(" ".join(f"{words(40).capitalize()}." for _ in range(20))))
    assert all(passage.words <= MOST_WORDS for passage in found)
    assert all(passage.text.endswith(".") for passage in found)
    assert sum(passage.words for passage in found) == 800


def test_a_short_table_joins_its_neighbour_and_a_long_one_stands_alone() -> None:
    assert len(body(block(words(100)), block("| a | b |\n|---|---|\n| 1 | 2 |", kind="table"))) == 1
    long_table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n} |" for n in range(20))
    assert [passage.kind for passage in body(block(words(100)), block(long_table, kind="table"))] == [
        "paragraph",
        "table",
    ]


def test_a_section_of_five_words_still_has_its_passage() -> None:
    assert [passage.words for passage in body(block(words(5)))] == [5]


def test_keys_of_joined_blocks_are_kept_in_order_and_once() -> None:
    found = body(
        block("Seen by [@b2] and [@b1].", keys=("b2", "b1")), block("Again [@b2].", keys=("b2",), anchor="S1.p2")
    )
    assert found[0].cited_keys == ("b2", "b1")


def test_a_split_block_keeps_only_the_keys_of_each_part() -> None:
    text = f"{words(290).capitalize()} [@b1]. {words(200).capitalize()} [@b2]."
    assert [passage.cited_keys for passage in body(block(text, keys=("b1", "b2")))] == [("b1",), ("b2",)]


def test_a_key_is_not_found_within_a_longer_one() -> None:
    text = f"{words(290).capitalize()} [@b12]. {words(200).capitalize()} [@b1]."
    assert [passage.cited_keys for passage in body(block(text, keys=("b12", "b1")))] == [("b12",), ("b1",)]


def test_a_long_list_is_split_between_its_lines() -> None:
    text = "\n".join(f"- {words(90)}" for _ in range(5))
    found = body(block(text, kind="list"))
    assert [passage.text.count("\n- ") + 1 for passage in found] == [3, 2]


def test_parts_of_one_anchor_have_different_ids_that_never_change() -> None:
    passages = body(block(words(700)))
    ids = [identifier for identifier, _ in with_ids("2403.90001", passages)]
    assert len(set(ids)) == len(ids) > 1
    assert ids[0] == passage_id("2403.90001", "S1.p1", 0) == "e9c4c409-3311-55af-8a85-c99db73eb9d0"


@pytest.mark.parametrize(
    "text",
    [
        "We follow Smith et al. They differ.",
        "As in Fig. 3 it grows.",
        "Here $a. B = c. D$ holds.",
        "See e.g. The Works of J. Smith today.",
    ],
)
def test_no_sentence_ends_inside_a_formula_or_an_abbreviation(text: str) -> None:
    assert sentences(text) == [text]


def test_sentences_end_where_they_should() -> None:
    assert sentences("One ends. Two asks? “Three” says $x$. [@b1] starts four.") == [
        "One ends.",
        "Two asks?",
        "“Three” says $x$.",
        "[@b1] starts four.",
    ]


def test_a_formula_longer_than_a_passage_stays_whole() -> None:
    formula = "$" + " ".join(["x"] * 400) + "$"
    assert formula in split_text(f"{words(200)} {formula} {words(200)}", MOST_WORDS)


def test_every_part_of_a_long_table_repeats_its_head() -> None:
    table = "Table 1: Scores\n| name | score |\n|---|---|\n" + "\n".join(f"| row {n} | {n} |" for n in range(300))
    parts = split_table(table, MOST_WORDS)
    assert len(parts) > 1
    assert all(part.startswith("Table 1: Scores\n| name | score |\n|---|---|\n") for part in parts)
    assert sum(part.count("| row ") for part in parts) == 300


def test_the_embedded_text_has_the_headings_and_no_markers() -> None:
    assert (
        embedded_text("Tidepool", ["Method", "Data"], "Known [@b1; @b2] since.")
        == "Tidepool > Method > Data\nKnown since."
    )


@given(st.lists(st.integers(1, 900), min_size=1, max_size=12), st.randoms())
def test_no_word_is_lost_and_no_prose_passage_is_too_long(lengths: list[int], chance: Any) -> None:
    blocks = [block(words(n), anchor=f"p{i}", section=chance.choice("AB")) for i, n in enumerate(lengths)]
    found = body(*blocks)
    assert sum(passage.words for passage in found) == sum(lengths)
    assert all(passage.words <= MOST_WORDS for passage in found)
    for left, right in pairwise(found):
        if left.section_path == right.section_path and min(left.words, right.words) < FEWEST_WORDS:
            assert left.words + right.words > MOST_WORDS
