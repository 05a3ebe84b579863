"""Grades of a page's text, and what is done about errors on it."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.corpus.pages import grade
from pipeline.corpus.parse import html
from pipeline.corpus.parse.assembly import unconverted_macros
from pipeline.corpus.parse.parsed_page import Block, ParsedPage
from pipeline.settings import SAMPLE_DUMP
from tests.cases import cases
from tests.unit.corpus.building import pages_of

CLEAN = ParsedPage(
    blocks=(Block("paragraph", "S1.p1", (), " ".join(["word"] * 1000)),),
    chars_seen=4000,
    chars_kept=4000,
)


@cases("unit/corpus/cases.toml", "flaws_are_counted_by_the_word", ["errors", "expected"])
def test_flaws_are_counted_by_the_word(errors, expected):
    assert grade(replace(CLEAN, ltx_errors=errors))[0] == expected
    twice = replace(CLEAN, blocks=CLEAN.blocks * 2, ltx_errors=2 * errors)
    assert grade(twice)[0] == expected


@cases(
    "unit/corpus/cases.toml",
    "missing_citations_are_weighed_against_those_that_are",
    ["missing", "expected"],
)
def test_missing_citations_are_weighed_against_those_that_are_there(missing, expected):
    cited = Block(
        "paragraph", "S1.p2", (), "word " * 1000, tuple(f"bib.bib{number}" for number in range(15))
    )
    assert grade(replace(CLEAN, blocks=(cited,), missing_citations=missing))[0] == expected


@cases("unit/corpus/cases.toml", "text_that_was_lost_lowers_the_grade", ["kept", "expected"])
def test_text_that_was_lost_lowers_the_grade(kept, expected):
    assert grade(replace(CLEAN, chars_kept=kept))[0] == expected


@pytest.mark.parametrize(
    ("flaws", "expected"),
    [
        ({}, ("A", ())),
        (
            {"ltx_errors": 2, "unconverted_macros": 2, "math_without_tex": 1},
            ("C", ("ltx_errors", "unconverted_macros", "math_without_tex")),
        ),
        ({"blocks": CLEAN.blocks * 3, "ltx_errors": 1}, ("A", ())),
        ({"losses": {"hidden": 36}}, ("A", ())),
        ({"losses": {"hidden": 400}}, ("B", ("hidden_text",))),
        ({"truncated": True}, ("C", ("truncated",))),
        ({"blocks": (), "chars_seen": 0, "chars_kept": 0}, ("C", ("hardly_any_text",))),
        ({"chars_kept": 3500, "ltx_errors": 20}, ("D", ("ltx_errors", "text_lost"))),
    ],
    ids=[
        "none",
        "of all kinds",
        "one in a long paper",
        "phantom",
        "hidden",
        "breaks off",
        "few words",
        "worst first",
    ],
)
def test_flaws_are_named_and_the_worst_decides(flaws, expected):
    assert grade(replace(CLEAN, **flaws)) == expected


@cases("unit/corpus/cases.toml", "macros_within_formulas_are_no_flaw", ["text", "expected"])
def test_macros_within_formulas_are_no_flaw(text, expected):
    assert unconverted_macros(None, [Block("paragraph", "S1.p1", (), text)]) == expected


def grades(folder):
    """The grades of all pages of a dump that are not A, by the page's file name."""
    letters = {Path(name).name: grade(html.parse(content))[0] for name, content in pages_of(folder)}
    return {name: letter for name, letter in letters.items() if letter != "A"}


def test_of_the_samples_only_the_one_that_breaks_off_is_worse_than_b():
    found = grades(SAMPLE_DUMP)
    assert {name for name, letter in found.items() if letter != "B"} == {"2404.90009.html"}
    assert len(found) == 6


def test_real_pages_that_a_reader_finds_fine_are_a(shared_data):
    assert grades(shared_data / "dump") == {"2501.01300.html": "B", "1311.6767.html": "B"}
