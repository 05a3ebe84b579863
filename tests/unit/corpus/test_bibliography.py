"""Bibliography items of the usual styles to their parts."""

from __future__ import annotations

import pytest

from pipeline.corpus.bibliography import ItemParts, looks_like_authors, read_item, split_authors
from pipeline.corpus.paper import BibliographyItem


def item(*blocks: str, emphases: tuple[str, ...] = (), links: tuple[str, ...] = ()) -> BibliographyItem:
    return read_item(ItemParts("bib.bib1", " ".join(blocks), list(blocks), list(emphases), list(links)))


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
    assert (found.title, found.year, found.venue) == ("Overview of the clef-2018 checkthat! lab", 2018, "CLEF")
    assert found.authors[-1] == "Preslav Nakov"


def test_icml_style_with_names_turned_round() -> None:
    found = item(
        "Adolphs, L., Gao, T., and Weston, J.",
        "The CRINGE loss: Learning what language not to model.",
        "In Rogers, A. and Okazaki, N. (eds.), Proceedings of the 61st Annual Meeting, pp. 8854–8874, July 2023.",
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
    assert (found.year, found.arxiv_id, found.doi) == (2022, "2206.00785", "10.48550/arxiv.2206.00785")


def test_a_title_in_quotation_marks() -> None:
    found = item(
        "C.H. Bennett, E. Bernstein and U.V. Vazirani, “Strengths and weaknesses of quantum computing” "
        "SIAM J. on Computing, Vol. 26, No. 5, pp. 1510–1523, 1997.",
        emphases=("SIAM J. on Computing",),
    )
    assert (found.title, found.venue) == ("Strengths and weaknesses of quantum computing", "SIAM J. on Computing")
    assert found.year == 1997


def test_a_title_in_italics() -> None:
    found = item(
        "R. A. DeVore and G. G. Lorentz, Constructive Approximation, Springer-Verlag, 1993.",
        emphases=("Constructive Approximation",),
    )
    assert (found.title, found.year) == ("Constructive Approximation", 1993)
    assert found.authors == ("R. A. DeVore", "G. G. Lorentz")


def test_fields_that_latexml_named_win() -> None:
    fields = [("author", "Ann Lee and Bob Roe"), ("title", "On Words"), ("journal", "J. Words"), ("year", "1999")]
    found = read_item(ItemParts("bib.bib1", "Ann Lee and Bob Roe (1999) On Words. J. Words 2000.", [], [], [], fields))
    assert (found.title, found.authors, found.year, found.venue) == (
        "On Words",
        ("Ann Lee", "Bob Roe"),
        1999,
        "J. Words",
    )


def test_an_item_without_authors_has_a_title() -> None:
    found = item("How does negative prompt work?", "https://stable-diffusion-art.com/how/.")
    assert (found.title, found.authors) == ("How does negative prompt work?", ())


def test_a_doi_ends_before_the_full_stop_and_keeps_its_brackets() -> None:
    assert item("doi:10.1007/JHEP05(2017)030.").doi == "10.1007/jhep05(2017)030"


def test_a_link_tells_the_arxiv_id() -> None:
    assert item("A. Lee.", "Words.", links=("http://arxiv.org/abs/1703.04639v2",)).arxiv_id == "1703.04639"


@pytest.mark.parametrize("raw", ["", ".", "42", "J. H. B. Kemperman, private communication, September 3, 1996."])
def test_an_item_that_tells_little_is_kept_as_printed(raw: str) -> None:
    assert item(raw).raw == raw


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Bach, S., Sanh, V., Yong, Z. X., et al.", ["S. Bach", "V. Sanh", "Z. X. Yong"]),
        ("Alex Graves.", ["Alex Graves"]),
        ("Vinyals & Kaiser, Koo, and Hinton.", ["Vinyals", "Kaiser", "Koo", "Hinton"]),
        ("", []),
    ],
)
def test_names_are_split(text: str, names: list[str]) -> None:
    assert list(split_authors(text)) == names


def test_a_title_does_not_look_like_authors() -> None:
    assert not looks_like_authors("Can active memory replace attention?")
    assert not looks_like_authors("Attention is all you need and more besides.")
    assert looks_like_authors("Aaron van den Oord, Alex Graves, and Koray Kavukcuoglu.")
