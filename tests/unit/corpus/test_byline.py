"""Bylines: names apart from affiliations, e-mails and marks, and where authors work."""

import pytest

from pipeline.corpus.parse import html
from pipeline.corpus.parse.affiliations import (
    is_organisation,
    is_place,
    is_remark,
    names_place,
    places_of_note,
    stated_places,
)
from pipeline.corpus.parse.assembly import characters_of_authors
from pipeline.corpus.parse.byline import read_bylines
from pipeline.corpus.parse.byline_text import THANKS, Byline, find_emails, split_doubled_marks
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import AUTHOR, ERRED, LINE, MARK, NOTE, PLACE
from pipeline.identity.people import KnownNames
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
        "Project Page: x.org",
        "24 May 2024",
        "These authors contributed equally",
        "Joint first authors",
        "Work done while at X Research",
        "Work during an internship at X",
        "Now at X Research",
        "Present address: X Research",
        "Former intern at X Research",
        "Supported by the Science Foundation",
        "Also with X Research",
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
        ("Department of Physics", names_place),
        ("Computer Science", names_place),
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


ANN, BOB, CID = "Ann Lee", "Bob J. Roe", "Cid van der Moe"


def places(*thanks, names=(ANN, BOB, CID)):
    found = [pair for text in thanks for pair in stated_places(text, KnownNames(names))]
    return [[place for one, place in found if one == name] for name in names]


@cases("unit/corpus/thanks.toml")
def test_a_sentence_says_whose_place_it_is(case):
    received = "Manuscript received April 1, 2024."
    assert places(received, case["thanks"]) == case["places"]


def test_a_note_is_a_place_by_its_words_or_before_an_email():
    assert places_of_note("Institute of X and University of Y.") == [
        "Institute of X",
        "University of Y",
    ]
    assert places_of_note("Acme Analytics. E-mail: ann@acme.org") == ["Acme Analytics"]
    assert places_of_note("Acme Analytics.") == []


@cases("unit/corpus/cases.toml", "no_place_of_work_now")
def test_what_is_no_place_of_work_now_is_left_out(case):
    assert (places(case), places_of_note(case)) == ([[], [], []], [])


@pytest.mark.parametrize(
    "place",
    ["International Research Institute", "Joint Research Centre, Italy", "Workday Research"],
)
def test_places_that_begin_as_remarks_do_are_places(place):
    assert is_place(place)


def test_a_hostile_list_takes_no_time():
    assert places("A" * 100_000 + " is with the University of X. " * 2_000)[0] == []


def test_names_of_any_signs_harm_nobody():
    assert places("Lee is with the University of X.", names=(", Jr.", "[x Lee", "(y Lee", ANN)) == [
        [],
        [],
        [],
        [],
    ]


def test_the_development_version_of_latexml_is_read(shared_data):
    folder = shared_data / "latexml-head"
    names = ["Yoshinari Fujinuma", "Jordan Boyd-Graber", "Michael J. Paul"]
    authors = html.parse((folder / "1906.01926.html").read_bytes(), names).authors
    assert [(author.name, author.affiliations) for author in authors] == [
        ("Yoshinari Fujinuma", ("Computer Science", "University of Colorado")),
        ("Jordan Boyd-Graber", ("cs, iSchool, umiacs, lsc, University of Maryland",)),
        ("Michael J. Paul", ("Information Science", "University of Colorado")),
    ]
    authors = html.parse((folder / "2405.03064.html").read_bytes()).authors
    assert len(authors) == 6
    assert not any("Affiliation" in text for author in authors for text in author.affiliations)
