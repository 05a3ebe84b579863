"""Identifiers as people type them: an arXiv id or a DOI in any spelling, or an address with one."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

from pipeline.arxiv.identifiers import normalize_arxiv_id

_NUMBER = r"(?:(\d{4}\s?\.\s?\d{4,5})|([a-z-]{2,8})(?:\.[a-z]{2})?/?(\d{7}))(?:v\d+)?"
# What surrounds an identifier in citations and on arXiv's own stamp: arXiv preprint arXiv:…,
# arXiv:1706.03762v7 [cs.CL] 2 Aug 2023.
_AROUND = (
    r"(?:(?:oai:)?arxiv(?:\.org)?|e-?prints?|pre-?prints?|corr|abs|pdf|html|identifier|id|paper|number|no"
    r"|version|v\d++|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*+"
    r"|\[(?:[a-z-]++(?!\.?[a-z]*/)(?:\.[a-z-]{2,9})?+)?+|(?:19|20)\d\d(?![.\d])|\d{1,2}(?!\d)"
    r"|[\s.:/,;()\]#_-])*?"
)
_WHOLE = re.compile(rf"{_AROUND}{_NUMBER}{_AROUND}", re.ASCII)
_AMONG_WORDS = re.compile(rf"(?:(?<![\w.])|(?<=arxiv\.)){_NUMBER}(?![\w-]|\.\d)", re.ASCII)
_SITE = r"(?:https?://)?(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?/"
_ADDRESS = re.compile(rf"{_SITE}(\S+)")
_IN_PATH = re.compile(rf"(?:^|[/=:]){_NUMBER}(?:\.pdf|\.html)?(?=$|[/?#&])", re.ASCII)
_DOI = re.compile(rf"(?:doi\s*+(?::\s*+)?)?(?:{_SITE}(?:\S{{0,500}}/)?)?(10\.\d{{4,9}}/\S+)")
_ARXIV_DOI = "10.48550/arxiv."
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200d\u2060\ufeff]")


def arxiv_id_of(query: str) -> str | None:
    """The arXiv id that a query is, without version; None if the query is anything else.

    Ids with or without `arXiv:`, version and category, DOIs of arXiv, and addresses whose path has
    an id: of arxiv.org and of the sites that take arXiv's ids, such as ar5iv.
    """
    text = _normalized(query)
    doi = doi_of(query)
    if doi is not None:
        return _written_id(_WHOLE.fullmatch(doi.removeprefix(_ARXIV_DOI)))
    arxiv_id = _written_id(_WHOLE.fullmatch(text))
    address = _ADDRESS.fullmatch(text)
    if arxiv_id is None and address is not None:
        return _written_id(_IN_PATH.search(address[1]))
    return arxiv_id


def arxiv_ids_among_words(query: str) -> list[str]:
    """What may be arXiv ids in a query that has other words too, without version, in order."""
    ids = map(_written_id, _AMONG_WORDS.finditer(_normalized(query)))
    return [arxiv_id for arxiv_id in ids if arxiv_id is not None]


def doi_of(query: str) -> str | None:
    """The DOI that a query is, in lower case; None if it is anything else."""
    match = _DOI.fullmatch(_normalized(query))
    return match and re.sub(r"([?#].*|\.pdf)\Z", "", match[1]).rstrip(".,;/")


def _normalized(query: str) -> str:
    text = unquote(_INVISIBLE.sub("", unicodedata.normalize("NFKC", query))).strip()
    return text.strip("<>()[]{}\"'“”.,; ").lower()


def _written_id(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    number, archive, old_number = match.groups()
    written = f"{archive}/{old_number}" if archive else "".join(number.split())
    return normalize_arxiv_id(written)
