"""Bylines: names apart from affiliations, e-mails and marks."""

import pytest

from pipeline.corpus.parse.affiliations import is_organisation, is_place, is_remark, is_unit
from pipeline.corpus.parse.assembly import characters_of_authors
from pipeline.corpus.parse.byline import read_bylines
from pipeline.corpus.parse.byline_text import THANKS, Byline, find_emails, split_doubled_marks
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import AUTHOR, ERRED, LINE, MARK, NOTE, PLACE
from tests.cases import cases

SIGNS = {
    r"\unknown ": ERRED,
    r"\author ": AUTHOR,
    r"\place ": PLACE,
    "‹note ": MARK + NOTE,
    "‹": MARK,
    "›": MARK,
    "\n": LINE,
}


def signed(text):
    """A text of the file of cases with the signs that the parser sets."""
    for written, sign in SIGNS.items():
        text = text.replace(written, sign)
    return text


def as_byline(written):
    """A byline of the file of cases as the parser gets it."""
    if isinstance(written, str):
        return Byline(signed(written))
    parts = []
    for role, texts in written.items():
        sign = THANKS if role == "thanks" else role.replace("note ", NOTE)
        parts += [(sign, signed(text)) for text in ([texts] if isinstance(texts, str) else texts)]
    return Byline(parts[0][1], parts[1:])


@cases("unit/corpus/bylines.toml")
def test_a_byline_is_read(case):
    bylines = case["byline"] if isinstance(case["byline"], list) else [case["byline"]]
    institutes, front = (
        [signed(text) for text in case.get(name, [])] for name in ("institutes", "front")
    )
    known = case.get("known", [author[0] for author in case["authors"]])
    read = read_bylines([as_byline(written) for written in bylines], institutes, known, front)
    assert [[one.name, *one.affiliations, *one.emails] for one in read.authors] == case["authors"]
    assert read.front == front[:1]
    for name in case.keys() & {"remarks", "differ", "unlinked"}:
        assert getattr(read, name) == case[name]


def test_grouped_addresses_are_several_without_marks():
    assert find_emails("{ann, bob}@x.edu; c.d@y.org") == ["ann@x.edu", "bob@x.edu", "c.d@y.org"]
    assert find_emails(f"{{a{MARK}1{MARK}nn, bob}}@x.edu") == ["ann@x.edu", "bob@x.edu"]


def test_an_address_that_fits_nobody_is_counted_as_lost():
    names = f"Ann Lee, Bob Roe, Cid Moe{LINE}University of X{LINE}office@x.edu"
    authors = read_bylines([Byline(names)], [], ("Ann Lee", "Bob Roe", "Cid Moe")).authors
    assert all(not author.emails for author in authors)
    commas = 2
    assert characters_of_authors(authors, [], names) == (
        6 * 3 + len("UniversityofX"),
        commas + len("office@x.edu"),
    )


def test_characters_of_bylines_count_as_often_as_they_stand_there():
    authors = [Author("Ann Lee", ("CWI",), ("a@x.nl",)), Author("Bob Roe", ("CWI",), ("b@x.nl",))]
    kept, lost = characters_of_authors(
        authors, ["Equal."], f"Ann Lee{LINE}Bob Roe{LINE}CWI{LINE}{{a,b}}@x.nl Equal."
    )
    assert kept == len("AnnLeeBobRoeCWI") + len("a") + len("b")
    assert lost == len("{,}@x.nl")


@pytest.mark.parametrize(
    "text",
    [
        "Anonymous Authors",
        "Affiliation",
        "Associate Professor",
        "Student Member, IEEE",
        "et al.",
        "Under review as a conference paper",
        "Project page:",
        "24 May 2024",
        "These authors contributed equally",
        "Joint first authors",
        "Work done while at X Research",
        "Work during an internship at X",
        "Now at X Research",
        "Project lead",
        "Listing order is random",
        "Manuscript received April 1, 2024",
    ],
)
def test_roles_and_remarks_are_no_places(text):
    assert is_remark(text)
    assert not is_place(text)


@pytest.mark.parametrize(
    ("text", "is_kind"),
    [
        ("Université de X", is_organisation),
        ("Acme Inc.", is_organisation),
        ("Independent Researcher", is_organisation),
        ("清华大学", is_organisation),
        ("Institute for Reading Machines", is_organisation),
        ("Department of Physics", is_unit),
        ("Computer Science", is_unit),
        ("Amsterdam, Netherlands", is_place),
        ("Boulder, CO", is_place),
    ],
)
def test_words_and_form_tell_places(text, is_kind):
    assert is_kind(text)
    assert is_place(text)


def test_marks_that_stand_twice_are_read_unless_they_are_endless():
    assert split_doubled_marks("1,21,233") == ("", "1,2,3")
    assert split_doubled_marks("Equal contribution.1122") == ("Equal contribution.", "1,2")
    assert split_doubled_marks("Since 2011") == ("Since 2011", "")
    assert split_doubled_marks("1,2" * 1_000)[1] == ""
