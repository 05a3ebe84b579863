"""Bibliography items of the usual styles to their parts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pipeline.corpus.parse import bibliography_rules as rules
from pipeline.corpus.parse.bibliography import ItemParts, read_bibliography
from pipeline.corpus.parse.paper import BibliographyItem

pytestmark = pytest.mark.slow


def item(
    *blocks: str, emphases: tuple[str, ...] = (), links: tuple[str, ...] = ()
) -> BibliographyItem:
    return read_bibliography(
        [ItemParts("bib.bib1", " ".join(blocks), list(blocks), list(emphases), list(links))]
    )[0]


def test_plain_style() -> None:
    found = item(
        "Jimmy Lei Ba, Jamie Ryan Kiros, and Geoffrey E Hinton.",
        "Layer normalization.",
        "arXiv preprint arXiv:1607.06450, 2016.",
        emphases=("arXiv preprint arXiv:1607.06450",),
    )
    assert found.title == "Layer normalization"
    assert found.authors == ("Jimmy Lei Ba", "Jamie Ryan Kiros", "Geoffrey E Hinton")
    assert (found.year, found.venue, found.arxiv_id) == (2016, "arXiv", "1607.06450")


def test_natbib_style_with_the_year_after_the_names() -> None:
    found = item(
        "Alberto Barrón-Cedeño, Tamer Elsayed, and Preslav Nakov. 2018.",
        "Overview of the clef-2018 checkthat! lab.",
        "In CLEF.",
        emphases=("CLEF",),
    )
    assert (found.title, found.year, found.venue) == (
        "Overview of the clef-2018 checkthat! lab",
        2018,
        "CLEF",
    )
    assert found.authors[-1] == "Preslav Nakov"


def test_icml_style_with_names_turned_round() -> None:
    found = item(
        "Adolphs, L., Gao, T., and Weston, J.",
        "The CRINGE loss: Learning what language not to model.",
        "In Rogers, A. and Okazaki, N. (eds.), Proceedings of the 61st Annual Meeting, pp."
        " 8854–8874, July 2023.",
        "doi: 10.18653/v1/2023.acl-long.493.",
        emphases=("Proceedings of the 61st Annual Meeting",),
    )
    assert found.authors == ("L. Adolphs", "T. Gao", "J. Weston")
    assert found.venue == "Proceedings of the 61st Annual Meeting"
    assert (found.year, found.doi) == (2023, "10.18653/v1/2023.acl-long.493")


def test_lncs_style_in_one_block() -> None:
    found = item(
        "Auer, C., Dolfi, M., Staar, P.W.J.: Delivering document conversion as a cloud service. "
        "CoRR abs/2206.00785 (2022). https://doi.org/10.48550/arXiv.2206.00785"
    )
    assert found.title == "Delivering document conversion as a cloud service"
    assert found.authors[0] == "C. Auer"
    assert (found.year, found.arxiv_id, found.doi) == (
        2022,
        "2206.00785",
        "10.48550/arxiv.2206.00785",
    )


def test_a_title_in_quotation_marks() -> None:
    found = item(
        "C.H. Bennett, E. Bernstein and U.V. Vazirani, “Strengths and weaknesses of quantum"
        " computing” SIAM J. on Computing, Vol. 26, No. 5, pp. 1510–1523, 1997.",
        emphases=("SIAM J. on Computing",),
    )
    assert (found.title, found.venue) == (
        "Strengths and weaknesses of quantum computing",
        "SIAM J. on Computing",
    )
    assert found.year == 1997


def test_a_title_in_italics() -> None:
    found = item(
        "R. A. DeVore and G. G. Lorentz, Constructive Approximation, Springer-Verlag, 1993.",
        emphases=("Constructive Approximation",),
    )
    assert (found.title, found.year) == ("Constructive Approximation", 1993)
    assert found.authors == ("R. A. DeVore", "G. G. Lorentz")


def test_fields_that_latexml_named_win() -> None:
    fields = [
        ("author", "Ann Lee and Bob Roe"),
        ("title", "On Words"),
        ("journal", "J. Words"),
        ("year", "1999"),
    ]
    found = read_bibliography(
        [
            ItemParts(
                "bib.bib1",
                "Ann Lee and Bob Roe (1999) On Words. J. Words 2000.",
                [],
                [],
                [],
                fields,
            )
        ]
    )[0]
    assert (found.title, found.authors, found.year, found.venue) == (
        "On Words",
        ("Ann Lee", "Bob Roe"),
        1999,
        "J. Words",
    )


@pytest.mark.parametrize(
    "raw", ["", ".", "42", "J. H. B. Kemperman, private communication, September 3, 1996."]
)
def test_an_item_that_tells_little_is_kept_as_printed(raw: str) -> None:
    assert item(raw).raw == raw


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Bach, S., Sanh, V., Yong, Z. X., et al.", ["S. Bach", "V. Sanh", "Z. X. Yong"]),
        ("Alex Graves.", ["Alex Graves"]),
        (
            "Cho, Kyunghyun, Gulcehre, Caglar and Bengio, Yoshua.",
            ["Kyunghyun Cho", "Caglar Gulcehre", "Yoshua Bengio"],
        ),
        ("Xu, H., Niu, S., and Chen, J.", ["H. Xu", "S. Niu", "J. Chen"]),
        ("A. Able; B. Baker, Jr.; C. Cole", ["A. Able", "B. Baker Jr.", "C. Cole"]),
        ("Able, A., , and Baker, B.", ["A. Able", "B. Baker"]),
        ("Vinyals & Kaiser, Koo, and Hinton.", ["Vinyals", "Kaiser", "Koo", "Hinton"]),
    ],
)
def test_names_are_split(text: str, names: list[str]) -> None:
    assert list(item(text, "On words.", "J. Words, 1999.").authors) == names


def test_physics_style_has_a_journal_and_no_title() -> None:
    found = item("C. S. Able, N. Baker, and T. C. A. de Cole, Phys. Rev. Lett. 73, 644 (1994).")
    assert (found.title, found.venue, found.year) == (None, "Phys. Rev. Lett.", 1994)
    assert found.authors == ("C. S. Able", "N. Baker", "T. C. A. de Cole")


@pytest.mark.parametrize(
    ("raw", "authors", "venue", "year"),
    [
        ("Able, R. C., Baker, J. K., & Cole-Dill, D. G. 1983, ApJS, 51, 277", 3, "ApJS", 1983),
        ("Able, J., et al. 1994, PASP, 106, 890", 1, "PASP", 1994),
        (
            "Able, J. A., & Baker 1994, in Measuring Stars, ed. C. Cole & D. Dill (Rome: X), 3",
            2,
            "Measuring Stars",
            1994,
        ),
    ],
)
def test_astronomers_style_has_the_year_after_the_names_and_no_title(
    raw: str, authors: int, venue: str, year: int
) -> None:
    found = item(raw)
    assert (found.title, len(found.authors), found.venue, found.year) == (
        None,
        authors,
        venue,
        year,
    )


@pytest.mark.parametrize(
    ("raw", "title", "venue"),
    [
        (
            "H. Able, Bounds in Words, Israel J. Math. 116, 125-169 (2000)",
            "Bounds in Words",
            "Israel J. Math.",
        ),
        (
            "X. Able, and M. D. Baker, Strong words. Journal of Words 225 (1998) 6.",
            "Strong words",
            "Journal of Words",
        ),
        (
            "Able, D., Words and fluids, Operator Theory: Advances 156 (2005), 1-9.",
            "Words and fluids",
            "Operator Theory: Advances",
        ),
        (
            ", Words of no authors, Duke Math. J. 64, No. 1 (1991), 1-26.",
            "Words of no authors",
            "Duke Math. J.",
        ),
        ("C. Able, Tight words, preprint (1999).", "Tight words", None),
        ("C. S. Able, J. Fluid Mech. 465, 261 (2002).", None, "J. Fluid Mech."),
        (
            (
                "H. Able, “Does it follow? How the world says “Maybe”?,” Studies in Words 43, 75–83"
                " (2012)."
            ),
            "Does it follow? How the world says “Maybe”?",
            "Studies in Words",
        ),
        (
            "C. Able, Tight words, no. 88, Able Words Press (1996)",
            "Tight words",
            "Able Words Press",
        ),
    ],
)
def test_names_with_initials_tell_where_the_title_begins(
    raw: str, title: str | None, venue: str | None
) -> None:
    found = item(raw)
    assert (found.title, found.venue) == (title, venue)


def test_a_journal_in_italics_is_not_the_title() -> None:
    raw = "X. Able and M. D. Baker, Strong words. Journal of Words 225 (1998) 608-623."
    found = item(raw, emphases=("Journal of Words",))
    assert (found.title, found.venue, len(found.authors)) == ("Strong words", "Journal of Words", 2)


@pytest.mark.parametrize(
    ("raw", "year"),
    [
        ("A. Able. Words. In Proc. 2009 Conf. on Words, pages 8–9, August 2009.", 2009),
        ("A. Able. Words. arXiv preprint arXiv:1999.01234, 2021b.", 2021),
        ("A. Able. Words. J. Words, pages 2001–2010, 1998.", 1998),
        ("A. Able. Words (1998). J. Words 7, http://example.org/2003/05.", 1998),
        ("A. Able. Words. doi:10.5555/words.2003.7.", None),
        (
            (
                "P.W. Able, “Words”, J. Words, Vol. 26, pp. 1484–1509, 1997. Preliminary version"
                " appeared in 1994."
            ),
            1997,
        ),
    ],
)
def test_the_year_is_of_the_first_print_and_not_of_pages_addresses_or_identifiers(
    raw: str, year: int | None
) -> None:
    assert item(raw).year == year


@pytest.mark.parametrize(
    ("raw", "link", "doi", "arxiv_id"),
    [
        (
            "C. Able, Phys. Rev. Lett. 73.",
            "%5Cdoibase%0A10.1103/PhysRevLett.73.644",
            "10.1103/physrevlett.73.644",
            None,
        ),
        (
            "C. Able, Phys. Rev. Lett. 73.",
            "%5Cdoibase%2010.1103/PhysRevLett.73.644",
            "10.1103/physrevlett.73.644",
            None,
        ),
        ("doi:10.1007/JHEP05(2017)030.", "", "10.1007/jhep05(2017)030", None),
        ("A. Lee. Words.", "http://arxiv.org/abs/1703.04639v2", None, "1703.04639"),
        ("Ann Able. On words. arXiv, (1311.1704), 2013.", "", None, "1311.1704"),
    ],
)
def test_identifiers_are_found_in_print_and_in_links(
    raw: str, link: str, doi: str | None, arxiv_id: str | None
) -> None:
    read = item(raw, links=(link,))
    assert (read.doi, read.arxiv_id) == (doi, arxiv_id)


def test_the_archive_that_became_arxiv_is_known_by_its_name() -> None:
    found = item(
        "R. Able, “Lower Words”, preprint available from the LANL quant-ph archive 9802049, 1998."
    )
    assert (found.arxiv_id, found.venue, found.title) == (
        "quant-ph/9802049",
        "arXiv",
        "Lower Words",
    )


def test_an_arxiv_number_that_ends_the_title_is_its_venue() -> None:
    found = item("Able, L., et al. (HotQCD), 2023.", "Simulating words arXiv:2306.01098.")
    assert (found.title, found.venue, found.authors) == ("Simulating words", "arXiv", ("L. Able",))


@pytest.mark.parametrize(
    ("printed", "title"),
    [
        ("Rounded arXiv: A data set of words.", "Rounded arXiv: A data set of words"),
        ("Deep words. arxiv 2018.", "Deep words"),
        ("Words at large, Second Edition.", "Words at large"),
        ("Words at large, 2nd ed., 1999.", "Words at large"),
        ("Words at large, Sept. 2021.", "Words at large"),
        ("A census of 2021.", "A census of 2021"),
        ("“Words at large”.", "Words at large"),
        ("“Liar, liar”: A new set of words.", "“Liar, liar”: A new set of words"),
        (
            "Thermodynamics of words to sixth order 71, 054508.",
            "Thermodynamics of words to sixth order",
        ),
    ],
)
def test_a_title_is_told_without_what_hangs_on_to_it(printed: str, title: str) -> None:
    assert item("Ann Able and Bob Baker.", printed, "In Proceedings.").title == title


@pytest.mark.parametrize(
    ("printed", "venue"),
    [
        (
            "In Able, A. and Baker, B. (eds.), Findings of Words, pp. 877–890, Dublin.",
            "Findings of Words",
        ),
        (
            "In: 2019 Conference on Words (ICW). pp. 894–901. IEEE (2019)",
            "2019 Conference on Words (ICW)",
        ),
        ("In Six lectures on words, Springer, New York, 1998.", "Six lectures on words"),
        ("Dover Publications, Inc., Mineola, New York, 2005.", "Dover Publications"),
        ("Phys. Rev. D 91, 054503. arXiv:1411.3018.", "Phys. Rev. D"),
        ("volume 301 of Foundations of Words, 1992.", "Foundations of Words"),
        ("In Learning of Words, Volume 1 (Long Papers), pages 4171–4186.", "Learning of Words"),
        ("N/A.", None),
        ("URL https://arxiv.org/abs/2407.21783.", None),
    ],
)
def test_a_venue_is_told_without_what_surrounds_it(printed: str, venue: str | None) -> None:
    assert item("Ann Able and Bob Baker.", "On words.", printed).venue == venue


def test_collaborations_and_years_in_brackets_are_no_authors() -> None:
    found = item(
        "Able, E., Baker, Q., Cole, K. (HPQCD, UKQCD), 2007.",
        "Improved words.",
        "Phys. Rev. D 75, 054502.",
    )
    assert (found.authors, found.year) == (("E. Able", "Q. Baker", "K. Cole"), 2007)
    assert item("Able, G., & Baker, P. (2000).", "Words.", "J. Words, 8, 2.").authors == (
        "G. Able",
        "P. Baker",
    )


@pytest.mark.parametrize(
    "stretch",
    ["A. Bb, ", "Bb, A., ", "“a ", "(", "10.1234/()", ".: ", " and ", "A. J. Phys. ", "2016 "],
)
def test_an_item_of_a_hundred_thousand_letters_is_read(stretch: str) -> None:
    raw = stretch * (100_000 // len(stretch))
    assert item(raw).raw == raw
    assert item(raw, raw, links=(raw,)).key == "bib.bib1"


@pytest.mark.parametrize(
    ("blocks", "title"),
    [
        (
            ["Can active memory replace attention?", "In Proceedings of Words, 1999."],
            "Can active memory replace attention?",
        ),
        (
            ["Attention is all you need and more.", "In Proceedings of Words."],
            "Attention is all you need and more",
        ),
        (
            ["How does negative prompt work?", "https://words.org/how/."],
            "How does negative prompt work?",
        ),
        (["2016.", "On words.", "Words Press."], "On words"),
        (["[n. d.].", "On words.", "https://words.org"], "On words"),
        (
            [
                "See the supplemental material for a list of all words that were counted in this"
                " work."
            ],
            None,
        ),
    ],
)
def test_an_item_without_authors_may_have_a_title(blocks: list[str], title: str | None) -> None:
    read = item(*blocks)
    assert (read.title, read.authors) == (title, ())


# Places of fields in the styles that give them.


@pytest.mark.parametrize("year", ["2002.", "(2002).", "2002a.", "[2002]", "2002, September."])
def test_a_year_in_a_block_of_its_own_is_no_title(year: str) -> None:
    found = item("Ann Able and Bob Baker.", year, "On words.", "In Proceedings of Words.")
    assert (found.title, found.year, found.venue) == ("On words", 2002, "Proceedings of Words")


def test_title_and_venue_in_one_block_are_told_apart() -> None:
    found = item(
        "Ann Able. 2010.",
        "On words. In Proceedings of Words (PoW). 259–268.",
        "https://doi.org/10.5555/1",
        emphases=("Proceedings of Words (PoW)",),
    )
    assert (found.title, found.venue) == ("On words", "Proceedings of Words (PoW)")


@pytest.mark.parametrize(
    ("raws", "author", "title"),
    [
        (
            [
                "Able, A.: On words. J. Words 1(2), 3–4 (2005)",
                "Baker, B., Cole, C.: More words. J. Words 2(2), 3–4 (2006)",
                "Word research group: A guide to words. J. Words 3(2), 3–4 (2007)",
            ],
            "Word research group",
            "A guide to words",
        ),
        (
            [
                "A. Able, On words, J. Words 1 (2005) 3–4.",
                "B. Baker, C. Cole, More words, J. Words 2 (2006) 3–4.",
                "Words Consortium, A guide to words, J. Words 3 (2007) 3–4.",
            ],
            "Words Consortium",
            "A guide to words",
        ),
    ],
    ids=["colon", "comma"],
)
def test_the_list_shows_where_the_name_of_an_organisation_ends(
    raws: list[str], author: str, title: str
) -> None:
    *_, last = read_bibliography(
        [ItemParts(f"bib.bib{place}", raw, [raw], []) for place, raw in enumerate(raws)]
    )
    assert (last.authors, last.title, last.year) == ((author,), title, 2007)


# Rules: each is shown by its example, in which | stands for a mark.

ENDS = [
    *((rules.AFTER_NAMES, rules.NAMES_MARK, rule) for rule in rules.AFTER_NAMES),
    *((rules.TITLE_TAIL, rules.TAIL_MARK, rule) for rule in rules.TITLE_TAIL),
    *((rules.AFTER_VENUE, rules.VENUE_MARK, rule) for rule in rules.AFTER_VENUE),
]


@pytest.mark.parametrize(
    ("table", "mark", "rule"), ENDS, ids=lambda value: getattr(value, "name", "")
)
def test_names_titles_and_venues_end_where_the_rule_says(
    table: rules.Rules, mark: Any, rule: rules.Rule
) -> None:
    text = rule.example.replace("|", "\n")
    match = rules.alternation(table, mark).search(text)
    assert match
    assert (match.lastgroup, text[: match.start()].strip()) == (rule.name, rule.yields.strip())


@pytest.mark.parametrize("rule", rules.QUOTED, ids=lambda rule: rule.name)
def test_a_title_is_quoted_as_the_rule_says(rule: rules.Rule) -> None:
    match = rules.alternation(rules.QUOTED).match(rule.example)
    assert match
    assert (match.lastgroup, match[0]) == (rule.name, rule.yields)


@pytest.mark.parametrize(
    "rule", [*rules.AFTER_TITLE, *rules.AFTER_TITLE_IN_A_RUN], ids=lambda rule: rule.name
)
def test_a_title_ends_where_the_rule_says(rule: rules.Rule) -> None:
    stop = re.compile(r"[.,]\s+").match(rule.example, len(rule.yields))
    found = stop and rules.alternation((*rules.AFTER_TITLE, *rules.AFTER_TITLE_IN_A_RUN)).match(
        rule.example, stop.end()
    )
    assert found
    assert found.lastgroup == rule.name
    assert item(f"A. Able, {rule.example}").title == rule.yields


@pytest.mark.parametrize("rule", rules.BEFORE_VENUE, ids=lambda rule: rule.name)
def test_a_venue_begins_where_the_rule_says(rule: rules.Rule) -> None:
    found = rules.alternation(rules.BEFORE_VENUE).match(rule.example)
    assert found
    assert (found.lastgroup, rule.example[found.end() :]) == (rule.name, rule.yields)
    assert item("Ann Able and Bob Baker.", "On words.", rule.example).venue == rule.yields
