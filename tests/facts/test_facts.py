"""What the parser reads agrees with the LaTeX sources of the pages: docs/experiments/facts.md."""

import pytest

from tests.facts.facts import KINDS
from tests.facts.report import shares, table
from tests.facts.suite import facts_of_paper, papers

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
