"""Grades of a page's text, and what is done about errors on it."""

from dataclasses import replace
from pathlib import Path

from pipeline.corpus.pages import grade
from pipeline.corpus.parse import html
from pipeline.corpus.parse.assembly import unconverted_macros
from pipeline.corpus.parse.parsed_page import Block, ParsedPage
from pipeline.settings import SAMPLE_DUMP
from tests.cases import cases, cases_beside
from tests.unit.corpus.building import pages_of


@cases("unit/corpus/quality.toml")
def test_a_page_is_graded_by_its_flaws(case):
    flaws = dict(case)
    keys = tuple(f"bib.bib{number}" for number in range(flaws.pop("citations", 0)))
    text = " ".join(["word"] * flaws.pop("words", 1000))
    expected = flaws.pop("grade"), tuple(flaws.pop("reasons", ()))
    page = ParsedPage(
        blocks=(Block("paragraph", "S1.p1", (), text, keys),), chars_seen=4000, chars_kept=4000
    )
    found, reasons = grade(replace(page, **flaws))
    assert (found, reasons if "reasons" in case else ()) == expected


@cases_beside("text", "expected")
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
