"""Ids of Wikipedia's pages beside arXiv's, and what they lead to."""

from __future__ import annotations

import pytest

from pipeline.arxiv.identifiers import month_of, normalize_arxiv_id
from pipeline.index.links import abstract_url, passage_url, source_name
from pipeline.wikipedia.ids import category_of, is_page, is_wikipedia, page_id, page_url


def test_a_page_is_never_taken_for_a_paper() -> None:
    for paper in ("2403.00001", "cs/0301001", "cs.CL/0301001", "quant-ph/9802040"):
        assert not is_page(paper)
    assert is_page(page_id("enwiki", 12345))
    assert normalize_arxiv_id("enwiki:12345") is None
    assert month_of("enwiki:12345") is None


@pytest.mark.parametrize(
    "wrong", ["enwiki", "enwiki:", "enwiki:0", "enwiki:01", "enwiki:1x", "enwiki:1\n", "ENwiki:1", "x:1", "enwiki:١"]
)
def test_what_is_no_id_of_a_page(wrong: str) -> None:
    assert not is_page(wrong)
    with pytest.raises(ValueError, match="no id of a page"):
        page_url(wrong)


def test_links_lead_to_the_article_and_its_section() -> None:
    assert abstract_url("enwiki:12345") == "https://en.wikipedia.org/?curid=12345"
    assert passage_url("enwiki:12345", "") == "https://en.wikipedia.org/?curid=12345"
    assert passage_url("zh_yuewiki:7", "A b#c") == "https://zh-yue.wikipedia.org/?curid=7#A%20b%23c"
    assert passage_url("2403.00001", "S1") == "https://arxiv.org/html/2403.00001#S1"


def test_a_source_is_named_by_where_it_is_from() -> None:
    assert source_name("2403.00001") == "arXiv:2403.00001"
    assert source_name("enwiki:12345") == "Wikipedia, enwiki:12345"


def test_only_wikipedias_are_wikipedia() -> None:
    assert all(map(is_wikipedia, ("enwiki", "simplewiki", "zh_yuewiki", "be_x_oldwiki")))
    assert not any(map(is_wikipedia, ("enwiktionary", "commonswiki", "wikidatawiki", "wiki", "", "en.wiki", "enwiki ")))


def test_a_wiki_is_a_category_as_searches_spell_it() -> None:
    assert [category_of(wiki) for wiki in ("enwiki", "simplewiki", "zh_yuewiki")] == [
        "wikipedia.EN", "wikipedia.simple", "wikipedia.zh-yue",
    ]  # fmt: skip
    assert category_of("x1wiki") == "wikipedia"
