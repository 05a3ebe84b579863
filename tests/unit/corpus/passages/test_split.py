"""Splitting what is too long: nothing is lost, nothing is cut that belongs together."""

import re
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.passages.sentences import split_lines, split_table, split_text
from pipeline.corpus.passages.text import count_words

pytestmark = pytest.mark.slow

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


@given(texts, st.integers(5, 40))
def test_the_parts_of_a_text_are_its_words_in_order_within_the_limit(text, most_words):
    text = text.replace("$5", "five")
    parts = split_text(text, most_words)
    assert list(chain.from_iterable(part.split() for part, _ in parts)) == text.split()
    assert list(chain.from_iterable(WHOLE.findall(part) for part, _ in parts)) == WHOLE.findall(
        text
    )
    for part, count in parts:
        assert count == count_words(part)
        assert count <= most_words or WHOLE.fullmatch(part)


@settings(max_examples=40)
@given(
    st.lists(texts, min_size=1, max_size=12).map("\n".join),
    st.integers(5, 40),
    st.sampled_from([split_text, split_lines]),
)
def test_the_parts_of_lines_are_their_words_in_order(text, most_words, split):
    parts = split(text, most_words)
    assert list(chain.from_iterable(part.split() for part, _ in parts)) == text.split()
    assert all(count == count_words(part) for part, count in parts)


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(texts.map(lambda text: text.replace("—", "-")), min_size=2, max_size=2),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(
        [
            "",
            "Table 1: Scores",
            "A caption that is longer than a quarter of many a part of this table",
        ]
    ),
    st.integers(20, 60),
)
def test_the_parts_of_a_table_are_its_rows_in_order_under_repeated_heads(rows, caption, most_words):
    table = "\n".join(
        [*filter(None, [caption]), HEAD, *(f"| {left} | {right} |" for left, right in rows)]
    )
    parts = split_table(table, most_words)
    text = "\n".join(part for part, _ in parts)
    assert re.sub(
        r"\s+", " ", text.replace(f"{caption}\n" if caption else "", "").replace(f"{HEAD}\n", "")
    ).split() == (" ".join(f"| {left} | {right} |" for left, right in rows).split())
    assert all(count == count_words(part) for part, count in parts)


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


@pytest.mark.parametrize("line", ["|" * 100_000 + "x", "-" * 100_000 + "x", "| - " * 50_000 + "x"])
def test_a_line_of_signs_is_no_rule_and_takes_no_time(line):
    assert "".join(part for part, _ in split_table(f"{words(301)}\n{line}", 300)).count("x") == 1


@pytest.mark.parametrize("text", ["提示词研究很重要，" * 200, "研究" * 800, "ประโยค" * 600])
def test_a_text_without_spaces_is_split(text):
    parts = split_text(text, 300)
    assert "".join(part for part, _ in parts) == text
    assert all(100 < words <= 300 for _, words in parts)
