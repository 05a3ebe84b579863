"""Bibliography items of the usual styles to their parts."""

import pytest

from pipeline.corpus.parse.bibliography import ItemParts, read_bibliography
from tests.cases import cases

pytestmark = pytest.mark.slow


def item(
    *blocks,
    italics=(),
    links=(),
    earlier=(),
):
    """The last item of a list, read from its blocks."""
    parts = [ItemParts(f"bib.bib{place}", raw, [raw], []) for place, raw in enumerate(earlier)]
    parts.append(ItemParts("bib.bib9", " ".join(blocks), list(blocks), list(italics), list(links)))
    return read_bibliography(parts)[-1]


@cases("unit/corpus/bibliography.toml")
def test_the_fields_of_an_item_are_read(case):
    inputs = {name: case.get(name, []) for name in ("italics", "links", "earlier")}
    expected = {name: case[name] for name in case.keys() - {"printed", *inputs}}
    blocks = [case["printed"]] if isinstance(case["printed"], str) else case["printed"]
    found = item(*blocks, **inputs)
    assert expected
    for name, value in expected.items():
        read = getattr(found, name) or ""
        assert (list(read) if name == "authors" else read) == value, name


def test_fields_that_latexml_named_win():
    fields = [
        ("author", "Ann Lee and Bob Roe"),
        ("title", "On Words"),
        ("journal", "J. Words"),
        ("year", "1999"),
    ]
    raw = "Ann Lee and Bob Roe (1999) On Words. J. Words 2000."
    (found,) = read_bibliography([ItemParts("bib.bib1", raw, [], [], [], fields)])
    assert (found.title, found.authors) == ("On Words", ("Ann Lee", "Bob Roe"))
    assert (found.year, found.venue) == (1999, "J. Words")


@pytest.mark.parametrize(
    "stretch",
    [
        "A. Bb, ",
        "Bb, A., ",
        "“a ",
        "(",
        "10.1234/()",
        ".: ",
        " and ",
        "A. J. Phys. ",
        "2016 ",
        "https://aA",
        "Roe, Bob; ",
        "[abc] ",
        "Roe, B b B. ",
    ],
)
def test_an_item_of_a_hundred_thousand_letters_is_read(stretch):
    raw = stretch * (100_000 // len(stretch))
    assert item(raw).raw == raw
    assert item(raw, raw, links=[raw]).raw == f"{raw} {raw}"


@cases("unit/corpus/cases.toml", "titles_of_items")
def test_a_title_ends_where_its_venue_begins(case):
    printed, title = case
    assert item(f"A. Able, {printed}").title == title


@cases("unit/corpus/cases.toml", "titles_with_tails")
def test_a_title_has_no_tail(case):
    printed, title = case
    assert item("Ann Able and Bob Baker.", printed).title == title


@cases("unit/corpus/cases.toml", "venues_of_items")
def test_a_venue_is_without_what_is_around_it(case):
    printed, venue = case
    assert item("Ann Able and Bob Baker.", "On words.", *printed.split("|")).venue == venue
