"""arXiv identifiers in names, in texts, and their months."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.identity.identifiers import (
    MemberName,
    NotAPage,
    find_arxiv_id,
    month_of,
    normalize_arxiv_id,
    read_member_name,
    strip_version,
)
from tests.cases import cases

FILE = "unit/identifiers.toml"


@cases(FILE, "members")
def test_a_member_name_tells_id_month_and_folder(case):
    name, arxiv_id, month, folder = case
    assert read_member_name(name) == MemberName(arxiv_id, month, folder or None)


@cases(FILE, "no_pages")
def test_a_name_that_is_no_page_says_why_and_keeps_its_month(case):
    name, claimed = case
    said = read_member_name(name)
    assert isinstance(said, NotAPage)
    assert said.month == (claimed or None)
    assert said.reason


@cases(FILE, "months")
def test_the_month_of_an_identifier(case):
    identifier, month = case
    assert month_of(identifier) == (month or None)


def test_a_version_is_stripped():
    assert strip_version("2403.18886v3") == "2403.18886"
    assert strip_version("quant-ph/9802040") == "quant-ph/9802040"


@cases(FILE, "forms")
def test_an_identifier_has_one_form(case):
    text, expected = case
    assert normalize_arxiv_id(text) == (expected or None)


@cases(FILE, "texts")
def test_an_identifier_is_found_in_a_text(case):
    text, expected = case
    assert find_arxiv_id(text) == (expected or None)


@given(st.text())
def test_no_name_breaks_the_reader(name):
    assert isinstance(read_member_name(name), MemberName | NotAPage)
