"""What the parser reads agrees with the LaTeX sources of the pages: docs/experiments/facts.md."""

import re
from dataclasses import replace

import pytest

from tests.facts.facts import KINDS
from tests.facts.report import shares, table
from tests.facts.suite import facts_of_paper, papers

PARAGRAPH = re.compile(rb'<div id="S1\.p\d"[^>]*>.*?</div>', re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checked():
    """The facts of every paper of the suite."""
    return [(paper, facts_of_paper(paper)) for paper in papers()]


@pytest.mark.parametrize("kind", KINDS)
def test_facts_of_a_kind_hold(checked, kind):
    rates = [rate for (_, of), rate in shares(checked).items() if of == kind]
    assert rates
    assert all(right == total for right, total in rates), table(checked)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("table cells", lambda page: swap(page, b">14.2<", b">10.9<")),
        ("order of runs", lambda page: swap(page, *PARAGRAPH.findall(page)[:2])),
        ("no text twice", lambda page: page.replace(b"Waiting is a", b"A thread that sleeps in between costs memory Waiting is a")),
        ("citations", lambda page: swap(page, b"#bib.bib2\"", b"#bib.bib5\"")),
        ("section parents", lambda page: page.replace(b"ltx_subsection", b"ltx_section")),
    ],
)  # fmt: skip
def test_a_damaged_page_loses_facts(kind, damage):
    paper = next(paper for paper in papers() if paper.name == "acmart-sigplan")
    damaged = replace(paper, page=damage(paper.page))
    assert all(fact.holds for fact in facts_of_paper(paper) if fact.kind == kind)
    assert not all(fact.holds for fact in facts_of_paper(damaged) if fact.kind == kind)


def swap(page, first, second):
    """The page with two different texts in each other's place."""
    assert first in page
    assert second in page
    return page.replace(first, b"\0").replace(second, first).replace(b"\0", second)
