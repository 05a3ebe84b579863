"""Packing and splitting: bounds, kinds, ids, and what is never cut."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.passages.packing import (
    FEWEST_WORDS,
    MOST_WORDS,
    pack,
    passage_id,
    with_ids,
)
from pipeline.corpus.passages.text import count_words

pytestmark = pytest.mark.slow


def block(text, *, kind="paragraph", section="Method", anchor="S1.p1", keys=()):
    """A block; `section` holds titles with > between, or nothing."""
    path = section.split(" > ") if section else []
    return {
        "kind": kind,
        "anchor": anchor,
        "section_path": path,
        "text": text,
        "cited_keys": list(keys),
    }


def paper(*blocks, **changes):
    author = {
        "name": "Ines Moreau",
        "affiliations": ["Quay University"],
        "emails": ["ines@quay.example"],
    }
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


def body(*blocks):
    return [
        passage
        for passage in pack(paper(*blocks))
        if passage.kind not in ("front_matter", "abstract")
    ]


def words(count):
    return " ".join(["term"] * count)


def test_the_front_matter_names_authors_places_and_categories():
    front = pack(paper())[0]
    assert front.kind == "front_matter"
    assert "Ines Moreau (Quay University, ines@quay.example)" in front.text
    assert "arXiv:2403.90001 (March 2024), categories cs.IR, cs.CL" in front.text


def test_neighbours_are_packed_within_a_section_however_short_it_is():
    passages = body(
        block(words(50)),
        block(words(60), anchor="S1.p2"),
        block(words(5), section="Results", anchor="S2.p1"),
    )
    assert [(passage.section_path, passage.words) for passage in passages] == [
        (("Method",), 110),
        (("Results",), 5),
    ]


def test_a_long_paragraph_is_split_at_sentence_ends():
    found = body(block(" ".join(f"{words(40).capitalize()}." for _ in range(20))))
    assert all(passage.words <= MOST_WORDS for passage in found)
    assert all(passage.text.endswith(".") for passage in found)
    assert sum(passage.words for passage in found) == 800


def test_a_short_table_joins_its_neighbour_and_a_long_one_stands_alone():
    assert len(body(block(words(100)), block("| a | b |\n|---|---|\n| 1 | 2 |", kind="table"))) == 1
    long_table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n} |" for n in range(20))
    assert [
        passage.kind for passage in body(block(words(100)), block(long_table, kind="table"))
    ] == ["paragraph", "table"]


def test_keys_of_joined_blocks_are_kept_in_order_and_once():
    found = body(
        block("Seen by [@b2] and [@b1].", keys=("b2", "b1")),
        block("Again [@b2].", keys=("b2",), anchor="S1.p2"),
    )
    assert found[0].cited_keys == ("b2", "b1")


def test_a_long_list_is_split_between_its_lines():
    text = "\n".join(f"- {words(90)}" for _ in range(5))
    found = body(block(text, kind="list"))
    assert [passage.text.count("\n- ") + 1 for passage in found] == [3, 2]


def test_parts_of_one_anchor_have_different_ids_that_never_change():
    passages = body(block(words(700)))
    ids = [identifier for identifier, _ in with_ids("2403.90001", passages)]
    assert len(set(ids)) == len(ids) > 1
    assert ids[0] == passage_id("2403.90001", "S1.p1", 0) == "e9c4c409-3311-55af-8a85-c99db73eb9d0"


def test_a_list_goes_with_the_paragraph_that_announces_it():
    told = block("There are three parts, told apart by what they cost and by who pays:")
    items = block("\n".join(f"- {words(12)}" for _ in range(3)), kind="list", anchor="S1.I1")
    assert [passage.text.count("\n- ") for passage in body(block(words(190)), told, items)] == [
        0,
        3,
    ]
    assert len(body(block(f"{words(30)}."), items)) == 2


def test_a_proof_goes_with_its_theorem_and_not_with_another_proof():
    found = body(
        block(f"Theorem 1. {words(30)}", kind="theorem", anchor="T1"),
        block(f"Proof. {words(40)}", kind="theorem", anchor="P1"),
        block(f"Proof. {words(50)}", kind="theorem", anchor="P2"),
    )
    assert [(passage.anchor, passage.words, passage.kind) for passage in found] == [
        ("T1", 73, "theorem"),
        ("P2", 51, "theorem"),
    ]


@pytest.mark.parametrize(
    ("before", "anchors"),
    [(180, ["p1", "p2"]), (280, ["p1", "f1", "p2"])],
    ids=["room for it", "no room"],
)
def test_a_footnote_stays_with_its_paragraph_where_there_is_room_and_opens_no_passage(
    before, anchors
):
    passages = body(
        block(words(before), anchor="p1"),
        block(words(60), kind="footnote", anchor="f1"),
        block(words(100), anchor="p2"),
    )
    assert [(passage.anchor, passage.kind) for passage in passages] == [
        (anchor, "paragraph") for anchor in anchors
    ]


def test_the_sentence_that_opens_a_section_goes_with_its_first_subsection_under_its_title():
    found = body(
        block(f"{words(60)}.", section="Setup > Hardware", anchor="S1.SS1.p1"),
        block("We train in two steps.", section="Setup > Training", anchor="S1.SS2.p1"),
        block(f"{words(60)}.", section="Setup > Training > Schedule", anchor="S1.SS2.SSS1.p1"),
    )
    assert [(passage.section_path, passage.anchor) for passage in found] == [
        (("Setup", "Hardware"), "S1.SS1.p1"),
        (("Setup", "Training"), "S1.SS2.p1"),
    ]
    assert found[1].text.startswith("We train in two steps.\n\nSchedule\nterm term")
    assert found[1].words == count_words(found[1].text)


def test_a_short_section_of_the_first_depth_stays_by_itself():
    found = body(
        block(words(60)), block("We thank the crew.", section="Acknowledgements", anchor="Sx1.p1")
    )
    assert [passage.section_path for passage in found] == [("Method",), ("Acknowledgements",)]


def test_a_note_before_the_first_section_goes_with_the_front_matter():
    found = pack(
        paper(
            block("Equal contribution.", kind="footnote", section="", anchor="authors"),
            block(words(40)),
        )
    )
    assert [passage.kind for passage in found] == ["front_matter", "abstract", "paragraph"]
    assert found[0].text.endswith("\nEqual contribution.")
    assert found[0].words == count_words(found[0].text)


def test_a_paper_of_four_hundred_authors_names_each_in_one_part_of_its_front_matter():
    authors = [
        {"name": f"Ada Q. Berg-{n}", "affiliations": [f"Institute {n}"], "emails": []}
        for n in range(400)
    ]
    parts = [passage for passage in pack(paper(authors=authors)) if passage.kind == "front_matter"]
    assert all(passage.words <= MOST_WORDS for passage in parts)
    assert (
        sum(
            passage.text.count(f"Ada Q. Berg-{n} (Institute {n})")
            for n in range(400)
            for passage in parts
        )
        == 400
    )


sections = st.sampled_from(["A", "A > B", "A > B > C", "A > D", "E", "E > F", ""])
kinds = st.sampled_from(
    ["paragraph", "paragraph", "footnote", "list", "caption", "theorem", "algorithm", "table"]
)


def numbered(number, count, kind, section):
    """A block of so many words, none of which any other block has; every seventh is followed by a
    citation.
    """
    signs = [
        f"b{number}w{place}" + (f" [@k{number}.{place}]" if place % 7 == 0 else "")
        for place in range(count)
    ]
    breaks = {"list": "\n", "algorithm": "\n", "table": " |\n| "}.get(kind, " ")
    text = breaks.join(" ".join(signs[start : start + 9]) + "." for start in range(0, count, 9))
    if kind == "table":
        text = f"Caption\n| Head |\n| --- |\n| {text} |"
    keys = tuple(f"k{number}.{place}" for place in range(0, count, 7))
    return block(text, kind=kind, section=section, anchor=f"p{number}", keys=keys)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 900), kinds, sections), max_size=15))
def test_every_word_is_in_one_passage_in_order_within_bounds(shapes):
    blocks = {f"p{number}": numbered(number, *shape) for number, shape in enumerate(shapes)}
    passages = pack(paper(*blocks.values()))
    assert [word for passage in passages for word in re.findall(r"\bb\d+w\d+", passage.text)] == [
        f"b{number}w{place}" for number, shape in enumerate(shapes) for place in range(shape[0])
    ]
    for passage in passages:
        assert passage.words == count_words(passage.text) <= MOST_WORDS
        assert sorted(passage.cited_keys) == sorted(re.findall(r"@(k\d+\.\d+)", passage.text))
    for passage in body(*blocks.values()):
        paths = {
            tuple(blocks[f"p{number}"]["section_path"])
            for number in re.findall(r"\bb(\d+)w", passage.text)
        }
        assert all(path[: len(passage.section_path)] == passage.section_path for path in paths)
        assert re.search(r"\bb\d+w", passage.text).group() == f"b{passage.anchor[1:]}w"
    ids = [identifier for identifier, _ in with_ids("2403.90001", passages)]
    assert len(set(ids)) == len(ids)


@given(st.lists(st.tuples(st.integers(1, 900), st.sampled_from("AB")), min_size=1, max_size=12))
def test_short_neighbours_of_a_section_are_apart_only_where_they_are_too_long_together(shapes):
    passages = body(*(block(words(count), section=section) for count, section in shapes))
    for left, right in pairwise(passages):
        if left.section_path == right.section_path and min(left.words, right.words) < FEWEST_WORDS:
            assert left.words + right.words > MOST_WORDS
