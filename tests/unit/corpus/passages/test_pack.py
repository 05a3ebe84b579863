"""Packing and splitting: bounds, kinds and ids, nothing is lost, and nothing is cut that belongs
together.
"""

import re
from itertools import chain, pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.passages.packing import (
    FEWEST_WORDS,
    MOST_WORDS,
    length_histogram,
    pack,
    passage_id,
    with_ids,
)
from pipeline.corpus.passages.sentences import split_lines, split_table, split_text
from pipeline.corpus.passages.text import count_words
from tests.cases import agrees, cases

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


def terms(count):
    return " ".join(["term"] * count)


def test_the_front_matter_names_authors_places_and_categories():
    front = pack(paper())[0]
    assert front.kind == "front_matter"
    assert "Ines Moreau (Quay University, ines@quay.example)" in front.text
    assert "arXiv:2403.90001 (March 2024), categories cs.IR, cs.CL" in front.text


@cases("unit/corpus/passages/packing.toml")
def test_blocks_are_packed(case):
    blocks = [written(number, **fields) for number, fields in enumerate(case["blocks"], 1)]
    found = [described(passage) for passage in body(*blocks)]
    assert agrees(case["passages"], found), found


def written(number, text="", words=0, sentences=0, items=0, rows=0, **fields):
    """A block of the file of cases."""
    parts = [text, terms(words)] + [f"{terms(40).capitalize()}."] * sentences
    lines = [f"- {terms(12)}"] * items + [f"| {row} | {row} |" for row in range(rows)]
    head = ["| a | b |", "| --- | --- |"] if rows else []
    content = "\n".join(filter(None, [" ".join(filter(None, parts)), *head, *lines]))
    return block(content, anchor=str(number), **fields)


def described(passage):
    """Its fields, and those that the file of cases has beside them."""
    text = passage.text
    lines = len(re.findall(r"^(?:- |\| \d)", text, re.MULTILINE))
    return passage._asdict() | {"lines": lines, "start": text[:42], "end": text[-1]}


def test_parts_of_one_anchor_have_different_ids_that_never_change():
    passages = body(block(terms(700)))
    ids = [identifier for identifier, _ in with_ids("2403.90001", passages)]
    assert len(set(ids)) == len(ids) > 1
    assert ids[0] == passage_id("2403.90001", "S1.p1", 0) == "e9c4c409-3311-55af-8a85-c99db73eb9d0"


def test_a_note_before_the_first_section_goes_with_the_front_matter():
    found = pack(
        paper(
            block("Equal contribution.", kind="footnote", section="", anchor="authors"),
            block(terms(40)),
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
    passages = body(*(block(terms(count), section=section) for count, section in shapes))
    for left, right in pairwise(passages):
        if left.section_path == right.section_path and min(left.words, right.words) < FEWEST_WORDS:
            assert left.words + right.words > MOST_WORDS


def test_every_passage_is_in_one_range_of_lengths():
    histogram = length_histogram(pa.chunked_array([[0, 19, 20, 280, 300, 301]]))
    filled = {name: count for name, count in histogram.items() if count}
    assert filled == {"under 20": 2, "20 to 39": 1, "280 to 300": 2, "over 300": 1}


WHOLE = re.compile(r"\$\$[^$]+\$\$|\$[^$]+\$|\[@[^\]]+\]")
HEAD = "| name | score |\n| --- | --- |"

pieces = st.one_of(
    st.sampled_from(
        [
            "word",
            "Word",
            "ends.",
            "Asks?",
            "et al.",
            "Fig.",
            "e.g.",
            "$5",
            "(two",
            "both)",
            "—",
            "a;",
            "b,",
        ]
    ),
    st.lists(st.sampled_from(["x", "= y.", "Z", "+ 1"]), min_size=1, max_size=9).map(
        lambda tex: f"${' '.join(tex)}$"
    ),
    st.lists(st.sampled_from(["a", "b. C", "d"]), min_size=1, max_size=4).map(
        lambda tex: f"$${' '.join(tex)}.$$"
    ),
    st.lists(st.integers(1, 99), min_size=1, max_size=4).map(
        lambda keys: f"[@{'; @'.join(f'bib.b{k}' for k in keys)}]"
    ),
)
texts = st.lists(pieces, min_size=1, max_size=120).map(" ".join)


def words(count):
    return " ".join(["term"] * count)


@given(
    st.lists(texts, min_size=1, max_size=4).map("\n".join),
    st.integers(5, 40),
    st.sampled_from([split_text, split_lines]),
)
def test_the_parts_of_a_text_are_its_words_in_order_within_the_limit(text, most_words, split):
    text = text.replace("$5", "five")
    parts = split(text, most_words)
    assert list(chain.from_iterable(part.split() for part, _ in parts)) == text.split()
    assert list(chain.from_iterable(WHOLE.findall(part) for part, _ in parts)) == WHOLE.findall(
        text
    )
    for part, count in parts:
        assert count == count_words(part)
        assert count <= most_words or WHOLE.fullmatch(part)


def test_parts_are_of_much_the_same_length():
    text = " ".join(f"{words(9).capitalize()}." for _ in range(34))
    assert [count for _, count in split_text(text, 300)] == [153, 153]


def test_a_text_within_the_limit_is_left_as_it_is():
    assert split_text("  One. \n\n Two.", 300) == [("  One. \n\n Two.", 2)]


def test_a_long_sentence_is_cut_at_semicolons_before_commas_before_spaces():
    assert [part for part, _ in split_text("a b, c d; e f, g h", 4)] == ["a b, c d;", "e f, g h"]
    assert [part for part, _ in split_text("a b, c d", 2)] == ["a b,", "c d"]
    assert [part for part, _ in split_text("a b c d", 2)] == ["a b", "c d"]


def test_a_formula_longer_than_a_passage_stays_whole():
    formula = "$" + " ".join(["x"] * 400) + "$"
    assert (formula, 400) in split_text(f"{words(200)} {formula} {words(200)}", 300)


ROWS = "\n".join(f"| row {n} | {n} |" for n in range(80))


@pytest.mark.parametrize(
    ("table", "second"),
    [
        (f"Table 1: Scores\n{HEAD}\n{ROWS}\n{ROWS}", f"Table 1: Scores\n{HEAD}\n| row "),
        (f"{words(120)}\n{HEAD}\n{ROWS}", f"{HEAD}\n| row "),
        (
            f"Scores\n{HEAD}\n{ROWS}\n| other | head |\n| --- | --- |\n{ROWS}",
            "Scores\n| other | head |\n| --- | --- |\n| row 0 |",
        ),
    ],
    ids=["a short caption", "a long caption stands once", "two grids"],
)
def test_every_part_of_a_long_table_repeats_its_head(table, second):
    parts = [part for part, _ in split_table(table, 300)]
    assert len(parts) == 2
    assert parts[1].startswith(second)
    assert sum(part.count("| row ") for part in parts) == table.count("| row ")


@pytest.mark.parametrize("text", ["提示词研究很重要，" * 200, "研究" * 800, "ประโยค" * 600])
def test_a_text_without_spaces_is_split(text):
    parts = split_text(text, 300)
    assert "".join(part for part, _ in parts) == text
    assert all(100 < words <= 300 for _, words in parts)
