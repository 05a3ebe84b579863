"""Bylines: names apart from affiliations, e-mails and marks."""

import pytest

from pipeline.corpus.parse.affiliations import is_organisation, is_place, is_remark, is_unit
from pipeline.corpus.parse.assembly import characters_of_authors
from pipeline.corpus.parse.byline import read_bylines
from pipeline.corpus.parse.byline_text import THANKS, Byline, find_emails, split_doubled_marks
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import AUTHOR, ERRED, LINE, MARK, NOTE, PLACE
from tests.cases import cases

PEOPLE = (
    "Ada Lovelace",
    "Ann Lee",
    "Bob Roe",
    "Cid Moe",
    "Dan Poe",
    "David Wadden",
    "Honglu Fan",
    "Huiyi Wang",
    "John Smith",
    "Kyle Lo",
    "Lina Yao",
    "Llion Jones",
    "Lucy Lu Wang",
    "Madhavan",
    "Noam Shazeer",
    "Ryan Li",
    "Tim Knappe",
    "李娜",
    "王伟",
)


def sup(mark):
    return f"{MARK}{mark}{MARK}"


def thanks(*texts):
    """The parts of a byline that are thanks."""
    return [(THANKS, text) for text in texts]


def read(bylines, *institutes):
    """The authors and remarks of bylines whose authors metadata names as the page does."""
    text = " ".join(byline.names for byline in bylines)
    known = sorted((name for name in PEOPLE if name in text), key=text.index)
    byline = read_bylines(bylines, institutes, known)
    return byline.authors, byline.remarks


def authors_of(names, *institutes):
    return read([Byline(names)], *institutes)[0]


def test_contacts_are_apart_from_the_name():
    byline = Byline(
        "Ada Lovelace ", [("affiliation", "University of London"), ("email", "ada@london.uk")]
    )
    authors, remarks = read([byline])
    assert authors == (Author("Ada Lovelace", ("University of London",), ("ada@london.uk",)),)
    assert remarks == []


def test_a_left_over_column_sign_parts_authors():
    names = (
        f"Noam Shazeer{LINE}Google Brain{LINE}noam@google.com{LINE}&Llion Jones{LINE}Google"
        f" Research{LINE}l@google.com"
    )
    assert authors_of(names) == (
        Author("Noam Shazeer", ("Google Brain",), ("noam@google.com",)),
        Author("Llion Jones", ("Google Research",), ("l@google.com",)),
    )


def test_grouped_addresses_are_several():
    assert find_emails("{ann, bob}@x.edu; c.d@y.org") == ["ann@x.edu", "bob@x.edu", "c.d@y.org"]


def test_no_mark_of_the_parser_stays_in_an_address_or_an_affiliation():
    assert find_emails(f"{{a{sup('1')}nn, bob}}@x.edu") == ["ann@x.edu", "bob@x.edu"]
    byline = Byline(f"Ann Lee{sup(NOTE + 'a')}", [(NOTE + "a", f"University of {sup('2')} X")])
    assert read([byline])[0] == (Author("Ann Lee", ("University of X",)),)
    assert authors_of("Bob Roe", f"University of {MARK} Y") == (
        Author("Bob Roe", ("University of Y",)),
    )


def test_the_word_before_an_address_is_no_affiliation():
    names = f"Ann Lee{LINE}University of X, e-mail: ann@x.edu{LINE}Email addresses: lee@y.org"
    assert authors_of(names) == (
        Author("Ann Lee", ("University of X",), ("ann@x.edu", "lee@y.org")),
    )


def test_an_address_goes_to_the_name_it_fits():
    names = f"Kyle Lo, Lucy Lu Wang{LINE}Allen Institute{LINE}{{lucyw, kylel}}@allenai.org"
    assert [one.emails for one in authors_of(names)] == [
        ("kylel@allenai.org",),
        ("lucyw@allenai.org",),
    ]


def test_an_address_that_fits_nobody_is_counted_as_lost():
    names = f"Ann Lee, Bob Roe, Cid Moe{LINE}University of X{LINE}office@x.edu"
    authors = authors_of(names)
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


@cases("unit/corpus/cases.toml", "thanks_that_are_no_affiliation_are_remarks", ["text", "remarks"])
def test_thanks_that_are_no_affiliation_are_remarks(text, remarks):
    assert read([Byline("Ann Lee", thanks(text))])[1] == remarks


def test_an_author_named_twice_is_one():
    bylines = [Byline("Ann Lee"), Byline("Ann Lee")]
    assert [author.name for author in read(bylines)[0]] == ["Ann Lee"]


def test_a_line_that_a_mark_explains_may_be_a_remark():
    names = (
        f"Ann Lee{sup('1,*')}, Bob Roe{sup('1')}{LINE}{sup('1')}University of"
        f" X{LINE}{sup('*')}Corresponding author"
    )
    authors, remarks = read([Byline(names)])
    assert authors == (
        Author("Ann Lee", ("University of X",)),
        Author("Bob Roe", ("University of X",)),
    )
    assert remarks == ["Corresponding author"]


def test_a_note_on_a_name_that_says_where_work_was_done_is_no_affiliation():
    note = (NOTE + "†", "Work done while at Google Research.")
    byline = Byline(f"Ann Lee{sup('†')}{LINE}University of X", [note])
    authors, remarks = read([byline])
    assert authors == (Author("Ann Lee", ("University of X",)),)
    assert remarks == ["Work done while at Google Research."]


def test_thanks_of_one_author_name_the_employer():
    bylines = [
        Byline("Ann Lee", thanks("Karst Group, Univ. of X. E-mail: ann@x.edu")),
        Byline("Bob Roe", thanks("We thank Google Research.", "Equal contribution.")),
    ]
    authors, remarks = read(bylines)
    assert authors == (
        Author("Ann Lee", ("Karst Group, Univ. of X",), ("ann@x.edu",)),
        Author("Bob Roe"),
    )
    assert len(remarks) == 3, "thanks are kept as they stand"


def test_the_same_thanks_of_two_authors_are_one_remark_and_the_employer_of_both():
    bylines = [Byline(name, thanks("Institute of X.")) for name in ("Ann Lee", "Bob Roe")]
    assert read(bylines) == (
        (Author("Ann Lee", ("Institute of X",)), Author("Bob Roe", ("Institute of X",))),
        ["Institute of X."],
    )


UNIVERSITY, INSTITUTE = "University of X", "Institute of Y"
MERIDIAN = "Meridian Analytics, Toronto, Canada"
SIGNS = {
    "\n": LINE,
    "‹": MARK,
    "›": MARK,
    "‹note ": MARK + NOTE,
    r"\author ": AUTHOR,
    r"\place ": PLACE,
    r"\unknown ": ERRED,
}


def with_signs_of_the_parser(text):
    """A byline of the file of cases as the parser gets it."""
    for written in sorted(SIGNS, key=len, reverse=True):
        text = text.replace(written, SIGNS[written])
    return text


@cases("unit/corpus/bylines.toml")
def test_a_layout_is_read(case):
    authors = authors_of(with_signs_of_the_parser(case["byline"]))
    assert [[author.name, *author.affiliations] for author in authors] == case["authors"]


def test_an_address_over_two_lines_is_one():
    (author,) = authors_of(f"Ann Lee{LINE}University of X{LINE}Ann.Lee@{LINE}x.edu")
    assert (author.affiliations, author.emails) == (("University of X",), ("Ann.Lee@x.edu",))


def test_marks_lead_to_affiliations_of_another_byline():
    bylines = [
        Byline(f"Ann Lee{sup('1')}"),
        Byline(f"Bob Roe{sup('2')}{LINE}{sup('1')}CWI{LINE}{sup('2')}INRIA"),
    ]
    assert [one.affiliations for one in read(bylines)[0]] == [("CWI",), ("INRIA",)]


def test_addresses_below_the_last_author_are_given_out_in_order():
    contacts = [("address", UNIVERSITY), ("address", "Acme Corp."), ("email", "ann@x.edu")]
    authors, _ = read([Byline("Ann Lee"), Byline("Bob Roe", contacts)])
    assert authors == (
        Author("Ann Lee", (UNIVERSITY,), ("ann@x.edu",)),
        Author("Bob Roe", ("Acme Corp.",)),
    )


def test_an_address_below_the_last_author_is_everybodys_who_has_none_in_thanks():
    bylines = [
        Byline("Ann Lee", thanks(f"{INSTITUTE}.")),
        Byline("Bob Roe"),
        Byline("Cid Moe", [("address", "CWI")]),
    ]
    authors, _ = read(bylines)
    assert [one.affiliations for one in authors] == [(INSTITUTE,), ("CWI",), ("CWI",)]


def test_an_affiliation_cut_at_its_commas_is_no_author():
    bylines = [
        Byline("Ann Lee", [("affiliation", "cs")]),
        Byline("iSchool"),
        Byline("umiacs", [("affiliation", UNIVERSITY)]),
    ]
    assert read(bylines)[0] == (Author("Ann Lee", (f"cs, iSchool, umiacs, {UNIVERSITY}",)),)


def test_an_address_that_was_split_at_its_commas_is_one_again():
    names = (
        f"Ann Lee{LINE}{UNIVERSITY}{LINE}Oslo",
        " Norway",
        f"Bob Roe{LINE}Meridian Analytics{LINE}Toronto",
        " Canada",
    )
    authors, _ = read([Byline(text) for text in names])
    assert [(one.name, one.affiliations) for one in authors] == [
        ("Ann Lee", (f"{UNIVERSITY}, Oslo, Norway",)),
        ("Bob Roe", (MERIDIAN,)),
    ]


def test_names_before_an_affiliation_that_was_split_at_commas_share_it():
    names = (
        "Ann Lee",
        "Bob Roe",
        UNIVERSITY,
        "New York",
        f"USA{LINE}Cid Moe",
        "Dan Poe",
        INSTITUTE,
    )
    authors, _ = read([Byline(text) for text in names])
    assert [(one.name, one.affiliations) for one in authors] == [
        *((name, (f"{UNIVERSITY}, New York, USA",)) for name in ("Ann Lee", "Bob Roe")),
        *((name, (INSTITUTE,)) for name in ("Cid Moe", "Dan Poe")),
    ]


def test_a_name_of_one_word_after_an_author_with_an_affiliation_is_an_author():
    bylines = [
        Byline("Ann Lee", [("affiliation", f"{UNIVERSITY}, Oslo, Norway")]),
        Byline("Madhavan"),
    ]
    assert [one.name for one in read(bylines)[0]] == ["Ann Lee", "Madhavan"]


def test_affiliations_of_a_note_are_several():
    place = f"{UNIVERSITY}, Oslo, Norway; {INSTITUTE}"
    byline = Byline(f"Ann Lee{sup(NOTE + '1')}", [(NOTE + "1", place)])
    assert read([byline])[0] == (Author("Ann Lee", (f"{UNIVERSITY}, Oslo, Norway", INSTITUTE)),)


def test_institutes_are_numbered():
    bylines = [Byline("Ann Lee", thanks("11")), Byline("Bob Roe", thanks("1122"))]
    authors, remarks = read(bylines, UNIVERSITY, INSTITUTE)
    assert [one.affiliations for one in authors] == [(UNIVERSITY,), (UNIVERSITY, INSTITUTE)]
    assert remarks == []


@pytest.mark.parametrize(
    ("names", "institutes", "affiliations"),
    [
        ("Ann Lee, Bob Roe", ["IBM Research"], [("IBM Research",)] * 2),
        (
            "Ann Lee, Bob Roe, Cid Moe",
            ["A. Lee", "B. Roe", UNIVERSITY, "C. Moe", INSTITUTE],
            [(UNIVERSITY,), (UNIVERSITY,), (INSTITUTE,)],
        ),
    ],
)
def test_an_institute_is_of_those_named_before_it(names, institutes, affiliations):
    assert [author.affiliations for author in authors_of(names, *institutes)] == affiliations


KNOWN = ("Ann B. Lee", "Bob Roe", "Cid Moe")


@pytest.mark.parametrize(
    ("text", "differ", "remarks"),
    [
        ("Ann Lee Bob Roe Cid Moe", 0, []),
        ("Cid Moe, Bob Roe and Ann Lee", 0, []),
        ("Ann Lee, Dan Poe, Bob Roe", 2, ["Dan Poe"]),
        ("Ann Lee, Bob Roe, Dan Poe", 2, ["Dan Poe"]),
        (f"Ann Lee{LINE}&Bob Roe{LINE}&Dan Poe", 2, ["Dan Poe"]),
    ],
    ids=["no separators", "another order", "between", "behind", "in a block of its own"],
)
def test_authors_are_those_of_metadata_in_its_order_and_spelling(text, differ, remarks):
    byline = read_bylines([Byline(text)], [], KNOWN)
    assert byline.authors == tuple(map(Author, KNOWN))
    assert (byline.differ, byline.remarks) == (differ, remarks)


@pytest.mark.parametrize(
    ("bylines", "unlinked"),
    [
        ([f"Ann Lee1, Bob Roe2, Cid Moe3{LINE}{UNIVERSITY}"], [UNIVERSITY]),
        (
            ["Ann Lee, Bob Roe, Cid Moe", ("affiliation", UNIVERSITY), ("address", INSTITUTE)],
            [UNIVERSITY, INSTITUTE],
        ),
        (
            [f"Ann Lee, Bob Roe, Cid Moe{LINE}{sup('1')}{UNIVERSITY}, {sup('2')}{INSTITUTE}"],
            [UNIVERSITY, INSTITUTE],
        ),
    ],
    ids=["marks of which no place is printed", "several places", "marks that nobody has"],
)
def test_a_place_of_nobody_knows_whom_stays_unlinked(bylines, unlinked):
    names, *contacts = bylines
    byline = read_bylines([Byline(names, contacts)], [], KNOWN)
    assert not any(author.affiliations for author in byline.authors)
    assert byline.unlinked == unlinked


def test_places_with_marks_stand_anywhere_in_the_front_matter():
    front = [f"{sup('1')}{UNIVERSITY}{LINE}{sup('2')}{INSTITUTE}{LINE}lee@x.org", "Some words."]
    byline = read_bylines([Byline("Ann Lee1, Bob Roe12, Cid Moe2")], [], KNOWN, front)
    assert [one.affiliations for one in byline.authors] == [
        (UNIVERSITY,),
        (UNIVERSITY, INSTITUTE),
        (INSTITUTE,),
    ]
    assert byline.authors[0].emails == ("lee@x.org",)
    assert byline.front == front[:1]


def printed(text):
    """Names and affiliations of a byline whose page prints none of the names of metadata."""
    return [(one.name, one.affiliations) for one in read_bylines([Byline(text)], []).authors]


def test_people_whom_metadata_does_not_name_are_as_the_first_line_prints_them():
    assert printed(f"Ann Lee, Bob Roe,{LINE}Cid Moe and Dan Poe{LINE}{UNIVERSITY}") == [
        (name, (UNIVERSITY,)) for name in ("Ann Lee", "Bob Roe", "Cid Moe", "Dan Poe")
    ]
    assert printed("Quill Research Team") == []


def test_a_name_that_differs_from_metadata_in_part_is_found_below_an_affiliation():
    names = f"Ann Lee{LINE}{UNIVERSITY}{LINE}Bobby Roe{LINE}{INSTITUTE}"
    authors = read_bylines([Byline(names)], [], KNOWN[:2]).authors
    assert [(one.name, one.affiliations) for one in authors] == [
        ("Ann B. Lee", (UNIVERSITY,)),
        ("Bob Roe", (INSTITUTE,)),
    ]


def test_what_is_no_known_name_is_an_affiliation_once_all_are_found():
    byline = Byline(f"Ann Lee, Bob Roe, Cid Moe{LINE}Deep Genomics, Wharton Eagle")
    authors = read_bylines([byline], [], KNOWN).authors
    assert {author.affiliations for author in authors} == {("Deep Genomics, Wharton Eagle",)}


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
