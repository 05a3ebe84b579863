"""Ids of Wikipedia's pages: a wiki's database name and the page's number, `enwiki:12345`.

They take the place of arXiv ids. No arXiv id holds a colon, so that the two cannot be taken for each other.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from pipeline.arxiv.categories import normalize_category

# The archive that restricts a search to Wikipedia, beside arXiv's (cs, math), with a category for each wiki.
ARCHIVE = "wikipedia"

_WIKI = re.compile(r"[a-z][a-z0-9_]*wiki", re.ASCII)
_ID = re.compile(rf"({_WIKI.pattern}):([1-9]\d*)", re.ASCII)
# Beside the Wikipedias, Wikimedia's other wikis are named so.
_OTHERS = frozenset(
    {
        "commonswiki", "foundationwiki", "incubatorwiki", "mediawikiwiki", "metawiki", "outreachwiki", "sourceswiki",
        "specieswiki", "wikidatawiki", "wikimaniawiki",
    }
)  # fmt: skip


def is_wikipedia(wiki: str) -> bool:
    """Whether a database name is that of a Wikipedia: `enwiki`, `zh_yuewiki`, and not `enwiktionary`."""
    return _WIKI.fullmatch(wiki) is not None and wiki not in _OTHERS


def page_id(wiki: str, number: int) -> str:
    """The id of a page by its wiki and its number there, which stays when the page is renamed."""
    return f"{wiki}:{number}"


def is_page(identifier: str) -> bool:
    """Whether an id is that of a page of Wikipedia, and not of a paper."""
    return ":" in identifier and _ID.fullmatch(identifier) is not None


def page_url(identifier: str, anchor: str = "") -> str:
    """The address of an article, with the heading that `anchor` names. Raises ValueError for what is no page's id.

    It has the page's number, which stays the same when the article is renamed.
    """
    match = _ID.fullmatch(identifier)
    if match is None:
        raise ValueError(f"{identifier!r} is no id of a page such as enwiki:12345")
    place = f"#{quote(anchor, safe='')}" if anchor else ""
    return f"https://{language(match[1])}.wikipedia.org/?curid={match[2]}{place}"


def language(wiki: str) -> str:
    """The language code in a wiki's address: `en` of `enwiki`, `zh-yue` of `zh_yuewiki`."""
    return wiki.removesuffix("wiki").replace("_", "-")


def category_of(wiki: str) -> str:
    """A wiki's category as searches spell it: `wikipedia.EN`; the archive alone if the language has not that form."""
    return normalize_category(f"{ARCHIVE}.{language(wiki)}") or ARCHIVE
