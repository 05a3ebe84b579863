"""Addresses of papers and passages on arXiv and ar5iv. The sample's papers are invented, so they
have none.
"""

from __future__ import annotations

import functools
import json
from urllib.parse import quote

from pipeline.identity.identifiers import month_of
from pipeline.settings import SAMPLE_SNAPSHOT

# arXiv serves HTML of papers from December 2023 on. Earlier papers are on ar5iv, also converted by
# LaTeXML, so that anchors are those of the dump.
_FIRST_ON_ARXIV = "2023-12"
# These anchors are our own names; both passages are at the top of the page.
_AT_THE_TOP = ("front_matter", "abstract")


def is_sample(arxiv_id: str) -> bool:
    """Whether a paper is one of the invented papers of the sample corpus."""
    return arxiv_id in _sample_ids()


@functools.cache
def _sample_ids() -> frozenset[str]:
    """The ids in the sample's own list; none where it is not installed."""
    if not SAMPLE_SNAPSHOT.exists():
        return frozenset()
    return frozenset(json.loads(line)["id"] for line in SAMPLE_SNAPSHOT.open(encoding="utf-8"))


def abstract_url(arxiv_id: str) -> str:
    """A paper's page on arXiv, with its abstract and versions; empty for a sample paper."""
    if is_sample(arxiv_id):
        return ""
    return f"https://arxiv.org/abs/{quote(arxiv_id)}"


def passage_url(arxiv_id: str, anchor: str) -> str:
    """The paper as HTML, at the element that a passage begins with; empty for a sample paper."""
    if is_sample(arxiv_id):
        return ""
    month = month_of(arxiv_id)
    host = "arxiv.org" if month is not None and month >= _FIRST_ON_ARXIV else "ar5iv.labs.arxiv.org"
    place = "" if anchor in _AT_THE_TOP or not anchor else f"#{quote(anchor, safe='')}"
    return f"https://{host}/html/{quote(arxiv_id)}{place}"


def source_name(arxiv_id: str) -> str:
    """The name a paper is cited by: `arXiv:2404.90003`."""
    return f"arXiv:{arxiv_id}"
