"""Which papers the category rules keep."""

import csv

import pytest

from pipeline.arxiv.category_filter import verdict
from pipeline.settings import load_settings
from tests.cases import cases


def keeps(borne, *, primary=None, **settings):
    return verdict(borne, borne[0] if primary is None else primary, load_settings(**settings))[0]


def test_every_category_of_computer_science_is_kept_and_matched_as_itself_alone(shared_data):
    with (shared_data / "metadata" / "cs_categories.tsv").open() as lines:
        names = [row["category"] for row in csv.DictReader(lines, delimiter="\t")]
    assert len(names) == 40
    assert all(keeps([name]) for name in names)
    for asked in names:
        settings = load_settings(categories=asked)
        assert [name for name in names if verdict([name], name, settings)[0]] == [asked]


@pytest.mark.parametrize(
    "category", ["physics.optics", "physics.comp-ph", "econ.EM", "cs-fiction.AI", "acs.CL", "CS.CL"]
)
def test_a_name_that_only_holds_the_letters_cs_is_not_computer_science(category):
    assert verdict([category], category, load_settings()) == (False, "not_computer_science")


def test_a_cross_list_to_computer_science_is_kept_unless_the_primary_must_match():
    assert keeps(["stat.ML", "cs.LG"])
    assert not keeps(["stat.ML", "cs.LG"], category_match="primary")
    assert keeps(["cs.LG", "stat.ML"], category_match="primary")


@cases("unit/arxiv/cases.toml", "an_alias_answers_to_either_name", ["asked", "borne"])
def test_an_alias_answers_to_either_name(asked, borne):
    assert keeps([borne], categories=(asked,))
    assert keeps([asked], categories=(borne,))
    is_computing = "cs." in asked + borne
    assert keeps([asked]) is keeps([borne], category_match="primary") is is_computing


def test_a_single_category_keeps_its_own_papers_alone():
    assert keeps(["cs.CL"], categories="cs.CL,math")
    assert keeps(["math.AG"], categories="cs.CL,math")
    assert not keeps(["mathematics-x"], categories="cs.CL,math")
    assert verdict(["cs.LG"], "cs.LG", load_settings(categories=("cs.CL",))) == (
        False,
        "other_category",
    )


def test_where_the_list_is_empty_the_primary_category_counts():
    assert keeps([], primary="cs.DB")
    assert not keeps([], primary="")
