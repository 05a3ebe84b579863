"""Bylines: names apart from affiliations, e-mails and marks."""

from __future__ import annotations

from pipeline.corpus.byline import Byline, read_bylines
from pipeline.corpus.byline_text import find_emails
from pipeline.corpus.measures import characters_of_authors
from pipeline.corpus.paper import Author
from pipeline.corpus.policies import LINE, MARK


def sup(mark: str) -> str:
    return f"{MARK}{mark}{MARK}"


def authors_of(names: str, *institutes: str) -> tuple[Author, ...]:
    return read_bylines([Byline(names=names)], institutes)[0]


def test_contacts_are_apart_from_the_name() -> None:
    byline = Byline("Ada Lovelace ", [("affiliation", "University of London"), ("email", "ada@london.uk")])
    authors, remarks = read_bylines([byline], [])
    assert authors == (Author("Ada Lovelace", ("University of London",), ("ada@london.uk",)),)
    assert remarks == []


def test_marks_lead_from_names_to_affiliations() -> None:
    names = f"Huiyi Wang{sup('1,2')}, Lina Yao{sup('2')}{LINE}{sup('1')}University of X, {sup('2')}CSIRO{LINE}"
    assert authors_of(names) == (
        Author("Huiyi Wang", ("University of X", "CSIRO")),
        Author("Lina Yao", ("CSIRO",)),
    )


def test_names_without_commas_are_split_at_their_marks() -> None:
    names = f"David Wadden{sup('†')} Kyle Lo{sup('‡')}{LINE}{sup('†')}University of Y{LINE}{sup('‡')}Allen Institute"
    assert [author.name for author in authors_of(names)] == ["David Wadden", "Kyle Lo"]


def test_an_unmarked_affiliation_is_everybodys() -> None:
    assert authors_of(f"Tim Knappe, Ryan Li{LINE}Algoverse AI Research") == (
        Author("Tim Knappe", ("Algoverse AI Research",)),
        Author("Ryan Li", ("Algoverse AI Research",)),
    )


def test_wide_gaps_part_whole_names_only() -> None:
    assert [one.name for one in authors_of("Tim Knappe   Ryan Li")] == ["Tim Knappe", "Ryan Li"]
    assert [one.name for one in authors_of("Honglu   Fan")] == ["Honglu Fan"]


def test_a_left_over_column_sign_parts_authors() -> None:
    names = (
        f"Noam Shazeer{LINE}Google Brain{LINE}noam@google.com{LINE}&Llion Jones{LINE}Google Research{LINE}l@google.com"
    )
    assert authors_of(names) == (
        Author("Noam Shazeer", ("Google Brain",), ("noam@google.com",)),
        Author("Llion Jones", ("Google Research",), ("l@google.com",)),
    )


def test_thanks_that_run_together_are_two_remarks() -> None:
    byline = Byline("Ada Lovelace", remarks=["Work performed at X Research.Work performed at OpenAI."])
    assert read_bylines([byline], [])[1] == ["Work performed at X Research.", "Work performed at OpenAI."]


def test_names_below_an_affiliation_open_another_group() -> None:
    names = f"Ann Lee, Bob Roe{LINE}University of X{LINE}Cid Moe, Dan Poe{LINE}Institute of Y"
    assert [one.affiliations for one in authors_of(names)] == [("University of X",)] * 2 + [("Institute of Y",)] * 2


def test_grouped_addresses_are_several() -> None:
    assert find_emails("{ann, bob}@x.edu; c.d@y.org") == ["ann@x.edu", "bob@x.edu", "c.d@y.org"]


def test_the_word_before_an_address_is_no_affiliation() -> None:
    names = f"Ann Lee{LINE}University of X, e-mail: ann@x.edu{LINE}Email addresses: lee@y.org"
    assert authors_of(names) == (Author("Ann Lee", ("University of X",), ("ann@x.edu", "lee@y.org")),)


def test_an_address_goes_to_the_name_it_fits() -> None:
    names = f"Kyle Lo, Lucy Lu Wang{LINE}Allen Institute{LINE}{{lucyw, kylel}}@allenai.org"
    assert [one.emails for one in authors_of(names)] == [("kylel@allenai.org",), ("lucyw@allenai.org",)]


def test_an_address_that_fits_nobody_is_counted_as_lost() -> None:
    names = f"Ann Lee, Bob Roe, Cid Moe{LINE}University of X{LINE}office@x.edu"
    authors = authors_of(names)
    assert all(not author.emails for author in authors)
    commas = 2
    assert characters_of_authors(authors, [], names) == (6 * 3 + len("UniversityofX"), commas + len("office@x.edu"))


def test_characters_of_bylines_count_as_often_as_they_stand_there() -> None:
    authors = [Author("Ann Lee", ("CWI",), ("a@x.nl",)), Author("Bob Roe", ("CWI",), ("b@x.nl",))]
    kept, lost = characters_of_authors(authors, ["Equal."], f"Ann Lee{LINE}Bob Roe{LINE}CWI{LINE}{{a,b}}@x.nl Equal.")
    assert kept == len("AnnLeeBobRoeCWI") + len("a") + len("b")
    assert lost == len("{,}@x.nl")


def test_one_institute_is_everybodys() -> None:
    assert [one.affiliations for one in authors_of("Ann Lee, Bob Roe", "IBM Research")] == [("IBM Research",)] * 2


def test_remarks_that_are_no_affiliation_are_kept() -> None:
    byline = Byline("Ann Lee", remarks=["Equal contribution."])
    assert read_bylines([byline], [])[1] == ["Equal contribution."]


def test_an_author_named_twice_is_one() -> None:
    bylines = [Byline("Ann Lee"), Byline("Ann Lee")]
    assert [author.name for author in read_bylines(bylines, [])[0]] == ["Ann Lee"]


def test_junior_belongs_to_the_name_before() -> None:
    assert [one.name for one in authors_of("John Smith, Jr., Ann Lee")] == ["John Smith, Jr.", "Ann Lee"]


def test_a_line_that_a_mark_explains_may_be_a_remark() -> None:
    names = f"Ann Lee{sup('1,*')}, Bob Roe{sup('1')}{LINE}{sup('1')}University of X{LINE}{sup('*')}Corresponding author"
    authors, remarks = read_bylines([Byline(names)], [])
    assert authors == (Author("Ann Lee", ("University of X",)), Author("Bob Roe", ("University of X",)))
    assert remarks == ["Corresponding author"]


def test_a_note_on_a_name_that_says_where_work_was_done_is_no_affiliation() -> None:
    byline = Byline(f"Ann Lee{sup('†')}{LINE}University of X")
    byline.add_note("†", "Work done while at Google Research.")
    authors, remarks = read_bylines([byline], [])
    assert authors == (Author("Ann Lee", ("University of X",)),)
    assert remarks == ["Work done while at Google Research."]


def test_thanks_of_one_author_name_the_employer() -> None:
    bylines = [
        Byline("Ann Lee", remarks=["Karst Group, Univ. of X. E-mail: ann@x.edu"]),
        Byline("Bob Roe", remarks=["We thank Google Research.", "Equal contribution."]),
    ]
    authors, remarks = read_bylines(bylines, [])
    assert authors == (Author("Ann Lee", ("Karst Group, Univ. of X",), ("ann@x.edu",)), Author("Bob Roe"))
    assert len(remarks) == 3, "thanks are kept as they stand"


def test_the_same_thanks_of_two_authors_are_one_remark_and_the_employer_of_both() -> None:
    bylines = [Byline(name, remarks=["Institute of X."]) for name in ("Ann Lee", "Bob Roe")]
    assert read_bylines(bylines, []) == (
        (Author("Ann Lee", ("Institute of X",)), Author("Bob Roe", ("Institute of X",))),
        ["Institute of X."],
    )
