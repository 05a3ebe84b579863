"""arXiv identifiers in names, in texts, and their months."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.arxiv.identifiers import (
    MemberName,
    NotAPage,
    find_arxiv_id,
    month_of,
    normalize_arxiv_id,
    read_member_name,
    strip_version,
)


@pytest.mark.parametrize(
    ("name", "arxiv_id", "month", "folder"),
    [
        ("error/9802/quant-ph9802040.html", "quant-ph/9802040", "1998-02", "error"),
        ("9802/quant-ph9802040.html", "quant-ph/9802040", "1998-02", None),
        ("no-problem/0903/0903.1000.html", "0903.1000", "2009-03", "no-problem"),
        ("2403/2403.18886.html", "2403.18886", "2024-03", None),
        ("ar5iv/warning/2404/2404.01650v2.html", "2404.01650", "2024-04", "warning"),
        ("error/0012/math0012001.html", "math/0012001", "2000-12", "error"),
        ("error/0012/math-ph0012001.html", "math-ph/0012001", "2000-12", "error"),
    ],
)
def test_a_member_name_tells_id_month_and_folder(
    name: str, arxiv_id: str, month: str, folder: str | None
) -> None:
    assert read_member_name(name) == MemberName(arxiv_id, month, folder)


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("error/2403/README.txt", "2024-03"),
        ("error/2403/2403.188.html", "2024-03"),
        ("error/2403/2404.18886.html", "2024-03"),
        ("error/2413/2413.18886.html", None),
        ("error/2403/1412.18886.html", "2024-03"),
        ("error/1412/1412.18886.html", "2014-12"),
        ("error/2403/nonsense2403001.html", "2024-03"),
        ("manifest.json", None),
        ("", None),
    ],
)
def test_a_name_that_is_no_page_says_why_and_keeps_its_month(
    name: str, claimed: str | None
) -> None:
    said = read_member_name(name)
    assert isinstance(said, NotAPage)
    assert said.month == claimed
    assert said.reason


@pytest.mark.parametrize(
    ("identifier", "month"),
    [
        ("0704.0001", "2007-04"),
        ("1412.7755", "2014-12"),
        ("1501.00001", "2015-01"),
        ("hep-th/9108001", "1991-08"),
        ("cond-mat/0703470", "2007-03"),
        ("0703.0001", None),
        ("1501.0001", None),
        ("1412.00001", None),
        ("hep-th/0704001", None),
        ("2400.00001", None),
    ],
)
def test_the_month_of_an_identifier(identifier: str, month: str | None) -> None:
    assert month_of(identifier) == month


def test_a_version_is_stripped() -> None:
    assert strip_version("2403.18886v3") == "2403.18886"
    assert strip_version("quant-ph/9802040") == "quant-ph/9802040"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arXiv:2403.18886v2", "2403.18886"),
        ("math.GT/0309136", "math/0309136"),
        (" quant-ph/9802040 ", "quant-ph/9802040"),
        ("2403.18886 and more", None),
        ("", None),
    ],
)
def test_an_identifier_has_one_form(text: str, expected: str | None) -> None:
    assert normalize_arxiv_id(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arXiv preprint arXiv:1607.06450, 2016.", "1607.06450"),
        ("CoRR, abs/1409.0473, 2014.", "1409.0473"),
        ("https://doi.org/10.48550/arXiv.2206.00785", "2206.00785"),
        ("https://arxiv.org/pdf/2110.14168v1", "2110.14168"),
        ("Phys. Rev. D, hep-ph/9901234", "hep-ph/9901234"),
        ("Neural Computation 1735.1780, 1997", None),
        ("pages 2403.18886", None),
        ("arXiv, 2403.18886", "2403.18886"),
        ("arXiv e-print 2403.18886", "2403.18886"),
        ("ArXiv e-prints, Dec. 2015, 1512.01234", "1512.01234"),
        ("J. Words 12 [2403.18886]", "2403.18886"),
        ("(1512.01234v2 [cs.CL])", "1512.01234"),
        ("arXiv [cs.CL] 1512.01234", "1512.01234"),
        ("arXiv:24\u200b03.\u200b18886", "2403.18886"),
        ("arXiv:2403.\n18886", "2403.18886"),
        ("arXiv:hep-th/\n9711200", "hep-th/9711200"),
        ("arXiv, 2012. 1234–1240", None),
        ("arXiv:2413.18886", None),
        ("arXiv:2403.00000", None),
        ("arXiv:9912.12345", None),
    ],
)
def test_an_identifier_is_found_in_a_text(text: str, expected: str | None) -> None:
    assert find_arxiv_id(text) == expected


@given(st.text())
def test_no_name_breaks_the_reader(name: str) -> None:
    assert isinstance(read_member_name(name), MemberName | NotAPage)
