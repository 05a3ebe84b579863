"""OAI-PMH, arXiv's interface for bulk users: lists of records that changed since a day.

The package oaipmh-scythe (0.16) is not used: it repeats status 503 alone, reads a Retry-After in seconds only, shares
no rate limit between processes, and takes a truncated answer for a whole one. What is left to it is a loop over
resumption tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pipeline.arxiv.harvest_store import Change, Page
from pipeline.arxiv.identifiers import strip_version
from pipeline.arxiv.person_names import split_author_line
from pipeline.arxiv.rate_limited_client import Answer, BrokenAnswer, RateLimitedClient
from pipeline.arxiv.record import Record, fold, is_day, parse_day, with_categories, with_status
from pipeline.arxiv.xml_answer import parse_xml
from pipeline.errors import CiteloomError, PermanentFailure

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

SET = "cs"
# The one of arXiv's formats that the public snapshot is made of: it alone has the versions.
PREFIX = "arXivRaw"

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_FORMATS = ("arXivRaw", "arXiv")
_IDENTIFIER = "oai:arXiv.org:"


class TokenRefused(CiteloomError):
    """The server does not know the resumption token, or no longer."""


class OaiClient:
    """Lists records page by page. `answered_at` is the time of the last answer by the server's clock."""

    def __init__(self, url: str, client: RateLimitedClient) -> None:
        self._url, self._client = url, client
        self.answered_at = ""

    def pages(self, since: str | None, until: str | None, token: str | None) -> Iterator[Page]:
        """The pages of what changed in these days, both included, or those that follow a token.

        Yields nothing where nothing matches. A page is requested when the one before has been dealt with. Raises
        TokenRefused, what `RateLimitedClient.get` raises, and PermanentFailure where the server refuses the request.
        """
        bounds = {"from": since, "until": until}
        query = {"metadataPrefix": PREFIX, "set": SET} | {name: day for name, day in bounds.items() if day}
        while True:
            query = {"resumptionToken": token} if token else query
            root = self._client.get(f"{self._url}?{urlencode({'verb': 'ListRecords'} | query)}", self._read)
            self.answered_at = root.findtext(f"{_OAI}responseDate") or ""
            if self._is_empty(root):
                return
            page = _read_page(root, self.answered_at)
            yield page
            token = page.token
            if token is None:
                return

    def _read(self, answer: Answer) -> Element:
        """The root of an answer with records or an error."""
        try:
            root = parse_xml(answer.body, f"{_OAI}OAI-PMH")
        except (BrokenAnswer, PermanentFailure) as error:
            if answer.status != 200:
                raise PermanentFailure(
                    f"{self._url} answers with status {answer.status}: check CITELOOM_OAI_URL and "
                    "CITELOOM_ARXIV_USER_AGENT"
                ) from error
            if isinstance(error, PermanentFailure):
                raise PermanentFailure(f"an answer of {self._url} is refused: {error}; check the address") from error
            raise
        if not is_day((root.findtext(f"{_OAI}responseDate") or "")[:10]):
            raise BrokenAnswer("it has no valid date")
        if root.find(f"{_OAI}error") is None and root.find(f"{_OAI}ListRecords") is None:
            raise BrokenAnswer("it holds neither records nor an error")
        return root

    def _is_empty(self, root: Element) -> bool:
        """Whether the server says that nothing matches. Raises TokenRefused or PermanentFailure for other errors."""
        error = root.find(f"{_OAI}error")
        if error is None:
            return False
        code, message = error.get("code"), fold(error.text) or ""
        if code == "badResumptionToken":
            raise TokenRefused(message)
        if code != "noRecordsMatch":
            raise PermanentFailure(f"{self._url} refuses to list records: {code} {message}; check CITELOOM_OAI_URL")
        return True


def _read_page(root: Element, answered_at: str) -> Page:
    changes: dict[str, Change] = {}
    broken: dict[str, str] = {}
    nameless = 0
    for element in root.iterfind(f"{_OAI}ListRecords/{_OAI}record"):
        name = (element.findtext(f"{_OAI}header/{_OAI}identifier") or "").strip().removeprefix(_IDENTIFIER)
        try:
            change = _read_change(element, name)
        except (ValueError, TypeError, AttributeError) as error:
            nameless += not name
            broken |= {name: str(error)} if name else {}
            continue
        earlier = changes.get(name)
        if earlier is None or change.datestamp >= earlier.datestamp:
            changes[name] = change
    token = root.find(f"{_OAI}ListRecords/{_OAI}resumptionToken")
    attributes = {} if token is None else dict(token.attrib)
    size = attributes.get("completeListSize", "")
    return Page(
        tuple(changes.values()),
        broken,
        answered_at,
        token=None if token is None else (token.text or "").strip() or None,
        expires=attributes.get("expirationDate") or attributes.get("expires"),  # arXiv's own server writes `expires`
        total=int(size) if size.isdecimal() else None,
        nameless=nameless,
    )


def _read_change(element: Element, arxiv_id: str) -> Change:
    """A record of a list. Raises ValueError, TypeError or AttributeError where it is not one of arXiv's."""
    datestamp = (element.findtext(f"{_OAI}header/{_OAI}datestamp") or "").strip()[:10]
    if not arxiv_id or not is_day(datestamp):
        raise ValueError("its header lacks an identifier or a datestamp")
    if element.find(f"{_OAI}header").get("status") == "deleted":
        return Change(arxiv_id, datestamp, None)
    record = with_categories(read_record(element.find(f"{_OAI}metadata")))
    if record.arxiv_id != arxiv_id:
        raise ValueError(f"its header says {arxiv_id}, its metadata {record.arxiv_id}")
    return Change(arxiv_id, datestamp, record)


def read_record(metadata: Element | None) -> Record:
    """The record in an element `metadata`, in arXiv's format `arXivRaw` or `arXiv`; `fetched_at` is None.

    Raises ValueError, TypeError or AttributeError where it has another format or shape.
    """
    element = metadata[0] if metadata is not None and len(metadata) else None
    space, _, form = ("" if element is None else str(element.tag)).rpartition("}")
    if element is None or form not in _FORMATS:
        raise ValueError("it has no metadata in a format of arXiv's")
    space += "}"
    texts = {str(child.tag).removeprefix(space): child.text for child in element}
    categories = tuple((texts.get("categories") or "").split())
    record = Record(
        arxiv_id=strip_version(fold(texts.get("id")) or ""),
        title=fold(texts.get("title")),
        authors=_read_authors(element, space),
        abstract=fold(texts.get("abstract")),
        categories=categories,
        primary_category=categories[0] if categories else None,
        doi=fold(texts.get("doi")),
        journal_ref=fold(texts.get("journal-ref")),
        comment=fold(texts.get("comments")),
        source="oai",
        **_read_history(element, space),
    )
    return record if record.status == "withdrawn" else with_status(record)


def _read_history(element: Element, space: str) -> dict[str, Any]:
    """Version, first and last day, and whether the newest version has no source because it is withdrawn."""
    versions = element.findall(f"{space}version")
    if not versions:
        created = fold(element.findtext(f"{space}created"))
        return {"published": created, "updated": fold(element.findtext(f"{space}updated")) or created}
    first, last = versions[0].findtext(f"{space}date"), versions[-1].findtext(f"{space}date")
    withdrawn = "I" in (versions[-1].findtext(f"{space}source_type") or "")
    return {
        "version": int((versions[-1].get("version") or "").removeprefix("v")),
        "published": parse_day(first) if first else None,
        "updated": parse_day(last) if last else None,
        "status": "withdrawn" if withdrawn else "present",
    }


def _read_authors(element: Element, space: str) -> tuple[str, ...]:
    authors = element.find(f"{space}authors")
    if authors is None:
        return ()
    if len(authors) == 0:
        return split_author_line(authors.text or "")
    parts = ("forenames", "keyname", "suffix")
    names = (" ".join(author.findtext(f"{space}{part}") or "" for part in parts) for author in authors)
    return tuple(name for name in (" ".join(name.split()) for name in names) if name)
