"""Bibliography items of the usual styles to their parts."""

import re

import pytest

from pipeline.corpus.parse import bibliography_rules as rules
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
        "Bb, A., ",
        "“a ",
        "(",
        "10.1234/()",
        "A. J. Phys. ",
        "https://aA",
        "Roe, B b B. ",
    ],
)
def test_an_item_of_a_hundred_thousand_letters_is_read(stretch):
    raw = stretch * (100_000 // len(stretch))
    assert item(raw).raw == raw
    assert item(raw, raw, links=[raw]).raw == f"{raw} {raw}"


# Rules: each is shown by its example, in which | stands for a mark.

ENDS = [
    *((rules.AFTER_NAMES, rules.NAMES_MARK, rule) for rule in rules.AFTER_NAMES),
    *((rules.TITLE_TAIL, rules.TAIL_MARK, rule) for rule in rules.TITLE_TAIL),
    *((rules.AFTER_VENUE, rules.VENUE_MARK, rule) for rule in rules.AFTER_VENUE),
]


@pytest.mark.parametrize(
    ("table", "mark", "rule"), ENDS, ids=lambda value: getattr(value, "name", "")
)
def test_names_titles_and_venues_end_where_the_rule_says(table, mark, rule):
    text = rule.example.replace("|", "\n")
    match = rules.alternation(table, mark).search(text)
    assert match
    assert (match.lastgroup, text[: match.start()].strip()) == (rule.name, rule.yields.strip())


@pytest.mark.parametrize("rule", rules.QUOTED, ids=lambda rule: rule.name)
def test_a_title_is_quoted_as_the_rule_says(rule):
    match = rules.alternation(rules.QUOTED).match(rule.example)
    assert match
    assert (match.lastgroup, match[0]) == (rule.name, rule.yields)


@pytest.mark.parametrize(
    "rule", [*rules.AFTER_TITLE, *rules.AFTER_TITLE_IN_A_RUN], ids=lambda rule: rule.name
)
def test_a_title_ends_where_the_rule_says(rule):
    stop = re.compile(r"[.,]\s+").match(rule.example, len(rule.yields))
    found = stop and rules.alternation((*rules.AFTER_TITLE, *rules.AFTER_TITLE_IN_A_RUN)).match(
        rule.example, stop.end()
    )
    assert found
    assert found.lastgroup == rule.name
    assert item(f"A. Able, {rule.example}").title == rule.yields


@pytest.mark.parametrize("rule", rules.BEFORE_VENUE, ids=lambda rule: rule.name)
def test_a_venue_begins_where_the_rule_says(rule):
    found = rules.alternation(rules.BEFORE_VENUE).match(rule.example)
    assert found
    assert (found.lastgroup, rule.example[found.end() :]) == (rule.name, rule.yields)
    assert item("Ann Able and Bob Baker.", "On words.", rule.example).venue == rule.yields
