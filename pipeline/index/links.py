"""Addresses of papers and passages on arXiv, ar5iv and Wikipedia."""

from __future__ import annotations

from urllib.parse import quote

from pipeline.arxiv.identifiers import month_of
from pipeline.wikipedia.ids import is_page, page_url

# arXiv serves HTML of papers from December 2023 on. Earlier papers are on ar5iv, also converted by LaTeXML, so that
# anchors are those of the dump.
_FIRST_ON_ARXIV = "2023-12"
# These anchors are our own names; both passages are at the top of the page.
_AT_THE_TOP = ("front_matter", "abstract")


def abstract_url(arxiv_id: str) -> str:
    """A paper's page on arXiv, with its abstract and versions; an article of Wikipedia."""
    if is_page(arxiv_id):
        return page_url(arxiv_id)
    return f"https://arxiv.org/abs/{quote(arxiv_id)}"


def passage_url(arxiv_id: str, anchor: str) -> str:
    """The paper as HTML, at the element that a passage begins with; an article of Wikipedia, at its section."""
    if is_page(arxiv_id):
        return page_url(arxiv_id, anchor)
    month = month_of(arxiv_id)
    host = "arxiv.org" if month is not None and month >= _FIRST_ON_ARXIV else "ar5iv.labs.arxiv.org"
    place = "" if anchor in _AT_THE_TOP or not anchor else f"#{quote(anchor, safe='')}"
    return f"https://{host}/html/{quote(arxiv_id)}{place}"


def source_name(arxiv_id: str) -> str:
    """What a source is cited as: `arXiv:2404.90003`, `Wikipedia, enwiki:12345`."""
    return f"Wikipedia, {arxiv_id}" if is_page(arxiv_id) else f"arXiv:{arxiv_id}"
