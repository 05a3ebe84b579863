"""Which paper a bibliography item is resolved to."""

import pytest

from benchmarks.labelled_references import title_index
from pipeline.corpus.references.resolution import Resolution, resolve_references
from pipeline.identity.identifiers import split_dois
from pipeline.identity.titles import title_words
from tests.cases import cases, read_cases

NOWHERE = Resolution()


def paper(arxiv_id, title, **known):
    nothing = {"authors": [], "doi": None, "published": "2017-06-12"}
    return {"arxiv_id": arxiv_id, "title": title} | nothing | known


def item(raw="", **known):
    nothing = {"title": None, "authors": [], "year": None, "doi": None, "arxiv_id": None}
    return {"key": "bib.1", "raw": raw, "venue": None} | nothing | known


def titled(title, year, author="A. Vaswani"):
    return item(f"{author} ({year}). {title}. Journal.", title=title, year=year)


@pytest.fixture
def titles():
    known = read_cases("unit/corpus/cases.toml")["papers_to_resolve"]
    return title_index([paper(**row) for row in known])


def resolve(titles, item, citing):
    """What one item is resolved to."""
    (resolution,) = resolve_references(titles, [(item, citing)])
    return resolution


@cases("unit/corpus/references/resolution.toml")
def test_an_item_is_resolved_by_identifier_doi_or_title(titles, case):
    known = {name: case.get(name) for name in ("doi", "arxiv_id")}
    year, title = case.get("year", 2017) or None, case.get("title")
    if "raw" in case:
        known = item(case["raw"], title=title, year=year) | known
    elif title or not any(known.values()):
        author = case.get("author", "A. Vaswani")
        known = titled(title or "Attention Is All You Need", year, author) | known
    else:
        known = item() | known
    found = resolve(titles, known, "1.1")
    cited = case.get("cited", "1706.03762")
    assert found == (Resolution(cited, case.get("by", "title")) if cited else NOWHERE)


def test_an_item_of_a_thousand_pages_is_no_trap(titles):
    words = " ".join(f"word{number}" for number in range(20_000))
    assert resolve(titles, item(words), "1.1") == NOWHERE


@pytest.mark.parametrize(
    "known",
    [
        item(arxiv_id="1706.03762v2"),
        item(doi="10.48550/arxiv.1706.03762"),
        titled("Attention Is All You Need", 2017),
    ],
)
def test_no_paper_cites_itself(titles, known):
    assert resolve(titles, known, "1706.03762") == NOWHERE


def test_of_two_equal_titles_the_nearer_year_wins_then_the_smaller_identifier():
    title = "A paper that was posted twice"
    days = {"2003.1": "2020-03-01", "1903.2": "2019-03-01", "1903.1": "2019-03-02"}
    titles = title_index(
        [paper(name, title, authors=["A. One"], published=day) for name, day in days.items()]
    )
    assert resolve(titles, titled(title, 2019, "A. One"), "1.1").arxiv_id == "1903.1"
    assert resolve(titles, titled(title, 2020, "A. One"), "1.1").arxiv_id == "2003.1"


def test_metadata_without_title_and_date_takes_the_year_of_its_month():
    rows = [
        paper("2403.1", "A title of four words", authors=["A. One"], published=None),
        paper("2403.2", None),
    ]
    assert (
        resolve(title_index(rows), titled("A title of four words", 2024, "A. One"), "1.1").arxiv_id
        == "2403.1"
    )


def test_a_field_of_several_dois_is_split():
    assert split_dois("10.1/A 10.2/b, https://doi.org/10.3/C") == ["10.1/a", "10.2/b", "10.3/c"]
    assert split_dois("10.1002/(SICI)1097-0258(19980815)17:15<1661::AID-SIM968>3.0.CO;2-2") != []
    assert split_dois("none") == split_dois(None) == []


def test_letters_that_tex_and_unicode_write_in_two_ways_are_one():
    assert (
        title_words(r"S{\o}rby and \L{}ukasz")
        == title_words("Sørby and Łukasz")
        == ["sorby", "and", "lukasz"]
    )


def test_words_of_a_title_are_folded():
    assert title_words(r"The {\em Schr\"{o}dinger} Equation---$\alpha$-decay, ﬁnally!") == [
        "the", "schrodinger", "equation", "alpha", "decay", "finally",
    ]  # fmt: skip
