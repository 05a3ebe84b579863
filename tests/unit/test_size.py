"""The code stays within the budgets of pyproject.toml.

In the fast tier although it takes five seconds: whoever adds code is to see it first.
"""

import sys

import pytest

from tools.size import PROJECT, measure, python_weight, read_budgets

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="counted on Python 3.11")


def test_the_code_stays_within_its_budgets():
    """The sums may only fall; a package may grow by what another falls, or an issue grants."""
    groups, packages = measure(PROJECT)
    budgets = read_budgets()
    assert packages.keys() == budgets.packages.keys()
    sizes = groups | packages
    over_budget = {
        name: f"weighs {sizes[name].weight:,}, may weigh {budget:,}"
        for name, budget in (budgets.groups | budgets.packages).items()
        if sizes[name].weight > budget
    }
    assert over_budget == {}
    assert groups["product"].files <= budgets.product_files


def test_the_budgets_of_the_packages_add_up_to_no_more_than_that_of_the_product():
    budgets = read_budgets()
    assert sum(budgets.packages.values()) <= budgets.groups["product"]


@pytest.mark.parametrize(
    ("source", "weight"),
    [
        ("a = 1  # one\n\n\nb = a\n", 7),  # three tokens a line, and the end of the file
        ('"""Doc."""\n\nclass A:\n    """Doc."""\n', 4),
        ('def f() -> None:\n    """Doc."""\n    "no docstring"\n', 9),
        (f'a = "{"x" * 22}"\n', 4),
        (f'a = "{"x" * 28}"\n', 5),
        (f'a = f"{"x" * 21}{{b}}{"x" * 4}"\n', 5),
    ],
)
def test_the_weight_of_python_is_that_of_its_tokens_and_long_strings(source, weight):
    assert python_weight(source) == weight
