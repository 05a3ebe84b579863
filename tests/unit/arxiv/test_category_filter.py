"""Which papers the category rules keep."""

import csv

from pipeline.arxiv.category_filter import verdict
from pipeline.settings import load_settings
from tests.cases import cases, cases_beside


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


@cases("unit/arxiv/cases.toml", "categories_and_what_becomes_of_them")
def test_a_paper_is_kept_by_its_categories(case):
    borne, settings, reason = case
    assert verdict(borne, borne[0], load_settings(**settings)) == (not reason, reason)


@cases_beside("asked", "borne")
def test_an_alias_answers_to_either_name(asked, borne):
    assert keeps([borne], categories=(asked,))
    assert keeps([asked], categories=(borne,))
    is_computing = "cs." in asked + borne
    assert keeps([asked]) is keeps([borne], category_match="primary") is is_computing


def test_where_the_list_is_empty_the_primary_category_counts():
    assert keeps([], primary="cs.DB")
    assert not keeps([], primary="")
