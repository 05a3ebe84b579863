"""Grades of a page's text: each fact, the worst of several, and real pages."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.corpus.parse import html
from pipeline.corpus.parse.measures import unconverted_macros
from pipeline.corpus.parse.paper import Block, Paper
from pipeline.corpus.quality import Quality, grade
from pipeline.settings import SAMPLE_DUMP

CLEAN = Paper(blocks=(Block("paragraph", "S1.p1", (), " ".join(["word"] * 1000)),), chars_seen=4000, chars_kept=4000)


def test_a_clean_page_has_the_best_grade() -> None:
    assert grade(CLEAN) == Quality("A", ())


@pytest.mark.parametrize(("errors", "expected"), [(0, "A"), (1, "B"), (5, "C"), (20, "D")])
def test_flaws_are_counted_by_the_word(errors: int, expected: str) -> None:
    assert grade(replace(CLEAN, ltx_errors=errors)).grade == expected
    twice = replace(CLEAN, blocks=CLEAN.blocks * 2, ltx_errors=2 * errors)
    assert grade(twice).grade == expected


def test_flaws_of_all_kinds_count_together_and_each_is_named() -> None:
    paper = replace(CLEAN, ltx_errors=2, unconverted_macros=2, math_without_tex=1)
    assert grade(paper) == Quality("C", ("ltx_errors", "unconverted_macros", "math_without_tex"))


def test_one_flaw_in_a_long_paper_is_none() -> None:
    assert grade(replace(CLEAN, blocks=CLEAN.blocks * 3, ltx_errors=1)) == Quality("A", ())


@pytest.mark.parametrize(("missing", "expected"), [(0, "A"), (1, "B"), (30, "C")])
def test_missing_citations_are_weighed_against_those_that_are_there(missing: int, expected: str) -> None:
    cited = Block("paragraph", "S1.p2", (), "word " * 1000, tuple(f"bib.bib{number}" for number in range(15)))
    assert grade(replace(CLEAN, blocks=(cited,), missing_citations=missing)).grade == expected


@pytest.mark.parametrize(("kept", "expected"), [(3700, "A"), (3500, "B"), (2900, "C"), (1900, "D")])
def test_text_that_was_lost_lowers_the_grade(kept: int, expected: str) -> None:
    assert grade(replace(CLEAN, chars_kept=kept)).grade == expected


def test_hidden_text_is_told_and_a_phantom_in_a_formula_is_not() -> None:
    assert grade(replace(CLEAN, losses={"hidden": 36})) == Quality("A", ())
    assert grade(replace(CLEAN, losses={"hidden": 400})) == Quality("B", ("hidden_text",))


def test_a_page_that_breaks_off_is_no_better_than_c() -> None:
    assert grade(replace(CLEAN, truncated=True)) == Quality("C", ("truncated",))


def test_a_page_of_a_few_words_is_told_so() -> None:
    assert grade(Paper()) == Quality("C", ("hardly_any_text",))


def test_the_worst_fact_decides_and_comes_first() -> None:
    paper = replace(CLEAN, chars_kept=3500, ltx_errors=20)
    assert grade(paper) == Quality("D", ("ltx_errors", "text_lost"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain words", 0),
        (r"left \foo as it was", 1),
        (r"in $\alpha$ and $$\beta$$", 0),
        (r"$$U:\mbox{$|x\rangle$}\mapsto\mbox{$y\oplus z$}$$ then \foo", 1),
        (r"after one $\alpha$$\beta$ the other", 0),
    ],
)
def test_macros_within_formulas_are_no_flaw(text: str, expected: int) -> None:
    assert unconverted_macros(None, [Block("paragraph", "S1.p1", (), text)]) == expected


def grades(folder: Path) -> dict[str, str]:
    """The grades of all pages of a dump that are not A, by the page's file name."""
    found = {}
    for file in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                found[name.rpartition("/")[2]] = grade(html.parse(archive.read(name))).grade
    return {name: letter for name, letter in found.items() if letter != "A"}


def test_of_the_samples_only_the_one_that_breaks_off_is_worse_than_b() -> None:
    found = grades(SAMPLE_DUMP)
    assert {name for name, letter in found.items() if letter != "B"} == {"2404.90009.html"}
    assert len(found) == 6


def test_real_pages_that_a_reader_finds_fine_are_a(shared_data: Path) -> None:
    assert grades(shared_data / "dump") == {"2501.01300.html": "B", "1311.6767.html": "B"}
