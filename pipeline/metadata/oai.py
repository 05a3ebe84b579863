"""OAI-PMH, arXiv's way for bulk users: pages of records that changed since a day, from bytes to records.

oaipmh-scythe knows the protocol: queries, resumption tokens, the errors that a server reports. The HTTP is ours
(`asking`), since scythe 0.16 waits for 503 alone, reads a Retry-After in seconds only, knows no pace between processes,
and parses with `recover=True`, which takes a cut answer for a whole one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlencode

import httpx2
from lxml import etree
from oaipmh_scythe import Scythe, exceptions
from oaipmh_scythe.iterator import OAIResponseIterator
from oaipmh_scythe.models import Header
from oaipmh_scythe.response import OAIResponse

from pipeline.arxiv.identifiers import strip_version
from pipeline.errors import CiteloomError, PermanentFailure
from pipeline.metadata.asking import Answer, Asker
from pipeline.metadata.harvested import Change, Page
from pipeline.metadata.names import split_authors
from pipeline.metadata.record import Record, categorised, fold, with_status
from pipeline.metadata.snapshot import day_of, is_day
from pipeline.metadata.vet import BrokenAnswer, root_of

SET = "cs"
# Of arXiv's formats the one that the public snapshot is made of: it alone tells the versions.
PREFIX = "arXivRaw"

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_FORMATS = ("arXivRaw", "arXiv")
_IDENTIFIER = "oai:arXiv.org:"


class TokenRefused(CiteloomError):
    """The server does not know the resumption token, or no longer."""


class Harvester(Scythe):
    """Lists records page by page. `answered_at` is when the server last answered, by its own clock."""

    def __init__(self, url: str, asker: Asker) -> None:
        super().__init__(url, iterator=OAIResponseIterator)
        self._asker = asker
        self.answered_at = ""

    def pages(self, since: str | None, until: str | None, token: str | None) -> Iterator[Page]:
        """The pages of what changed in these days, both included, or those that follow a token.

        Nothing where nothing matches. A page is asked for when the one before has been dealt with. Raises
        TokenRefused, TransientFailure and SettingError as `Asker.ask` does, PermanentFailure where the server refuses
        the request.
        """
        try:
            for response in self._responses(since, until, token):
                yield _page(response)
        except exceptions.NoRecordsMatch:
            return
        except exceptions.BadResumptionToken as error:
            raise TokenRefused(str(error)) from error
        except exceptions.OAIPMHException as error:
            raise PermanentFailure(
                f"{self.endpoint} refuses to list records: {type(error).__name__} {error}; check CITELOOM_OAI_URL"
            ) from error

    def _responses(self, since: str | None, until: str | None, token: str | None) -> Iterator[OAIResponse]:
        """As scythe lists them. A token goes alone: its `list_records` logs a warning at each one that goes on."""
        if token:
            return iter(OAIResponseIterator(self, {"verb": "ListRecords", "resumptionToken": token}))
        return cast(Iterator[OAIResponse], self.list_records(since, until, PREFIX, SET))

    def harvest(self, query: dict[str, str]) -> OAIResponse:
        """One answer, as scythe wants it. Raises an exception of scythe where the server reports an error."""
        response = self._asker.ask(f"{self.endpoint}?{urlencode(query)}", lambda answer: self._whole(answer, query))
        self.answered_at = response.answered_at
        response.raise_for_oaipmh_error()
        return response

    def _whole(self, answer: Answer, query: dict[str, str]) -> _Response:
        try:
            response = _Response(answer, query)
        except (BrokenAnswer, PermanentFailure) as error:
            if answer.status != 200:
                raise PermanentFailure(
                    f"{self.endpoint} answers with status {answer.status}: check CITELOOM_OAI_URL and "
                    "CITELOOM_ARXIV_USER_AGENT"
                ) from error
            if isinstance(error, PermanentFailure):
                raise PermanentFailure(
                    f"an answer of {self.endpoint} is refused: {error}; check the address"
                ) from error
            raise
        return response


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)


class _Response(OAIResponse):
    """A whole answer, parsed once and strictly. Raises BrokenAnswer and PermanentFailure as `root_of` does."""

    def __init__(self, answer: Answer, query: dict[str, str]) -> None:
        super().__init__(httpx2.Response(answer.status, content=answer.body), query)
        root = root_of(answer.body)
        if root != f"{_OAI}OAI-PMH":
            raise BrokenAnswer(f"it is no answer of OAI-PMH: its root is {root}")
        try:
            self._root = etree.fromstring(answer.body, _parser())
        except etree.XMLSyntaxError as error:
            raise BrokenAnswer(f"it is cut off or no XML ({error})") from error
        for token in self._root.iter(f"{_OAI}resumptionToken"):
            token.text = (token.text or "").strip() or None  # blanks are no token, and would be asked for
        if not is_day(self.answered_at[:10]):
            raise BrokenAnswer("it does not say when it was given")
        if self._root.find(f"{_OAI}error") is None and self._root.find(f"{_OAI}ListRecords") is None:
            raise BrokenAnswer("it holds neither records nor an error")

    @property
    def xml(self) -> Any:
        return self._root

    @property
    def answered_at(self) -> str:
        return self._root.findtext(f"{_OAI}responseDate") or ""


def _page(response: OAIResponse) -> Page:
    changes: dict[str, Change] = {}
    broken: dict[str, str] = {}
    nameless = 0
    for element in response.xml.iterfind(f"{_OAI}ListRecords/{_OAI}record"):
        name = (element.findtext(f"{_OAI}header/{_OAI}identifier") or "").strip().removeprefix(_IDENTIFIER)
        try:
            change = _change(element)
        except (ValueError, TypeError, AttributeError) as error:
            nameless += not name
            broken |= {name: str(error)} if name else {}
            continue
        known = changes.get(change.arxiv_id)
        if known is None or change.datestamp >= known.datestamp:
            changes[change.arxiv_id] = change
    token = response.xml.find(f"{_OAI}ListRecords/{_OAI}resumptionToken")
    about = {} if token is None else dict(token.attrib)
    size = about.get("completeListSize", "")
    return Page(
        tuple(changes.values()),
        broken,
        response.xml.findtext(f"{_OAI}responseDate") or "",
        None if token is None else token.text,
        about.get("expirationDate") or about.get("expires"),  # arXiv's own server writes `expires`
        int(size) if size.isdecimal() else None,
        nameless,
    )


def _change(element: Any) -> Change:
    """A record as it came. Raises ValueError, TypeError or AttributeError where it is not one of arXiv's."""
    header_element = element.find(f"{_OAI}header")
    if header_element is None:
        raise ValueError("it has no header")
    header = Header(header_element)
    arxiv_id = str(header.identifier or "").strip().removeprefix(_IDENTIFIER)
    datestamp = str(header.datestamp or "").strip()[:10]
    if not arxiv_id or not is_day(datestamp):
        raise ValueError("its header lacks an identifier or a datestamp")
    if header.deleted:
        return Change(arxiv_id, datestamp, None)
    record = categorised(read_record(element.find(f"{_OAI}metadata")))
    if record.arxiv_id != arxiv_id:
        raise ValueError(f"its header says {arxiv_id}, its metadata {record.arxiv_id}")
    return Change(arxiv_id, datestamp, record)


def read_record(metadata: Any) -> Record:
    """The record in an element `metadata`, in arXiv's format `arXivRaw` or `arXiv`; `fetched_at` is left open.

    Raises ValueError, TypeError or AttributeError where it is of another format or shape.
    """
    element = metadata[0] if metadata is not None and len(metadata) else None
    if element is None or etree.QName(element).localname not in _FORMATS:
        raise ValueError("it has no metadata in a format of arXiv's")
    space = element.tag[: element.tag.index("}") + 1]
    told = {child.tag.removeprefix(space): child.text for child in element}
    categories = tuple((told.get("categories") or "").split())
    record = Record(
        arxiv_id=strip_version(fold(told.get("id")) or ""),
        title=fold(told.get("title")),
        authors=_authors(element, space),
        abstract=fold(told.get("abstract")),
        categories=categories,
        primary_category=categories[0] if categories else None,
        doi=fold(told.get("doi")),
        journal_ref=fold(told.get("journal-ref")),
        comment=fold(told.get("comments")),
        source="oai",
        **_history(element, space),
    )
    return record if record.status == "withdrawn" else with_status(record)


def _history(element: Any, space: str) -> dict[str, Any]:
    """Version, first and last day, and whether the newest version has no source because it is withdrawn."""
    versions = element.findall(f"{space}version")
    if not versions:
        created = fold(element.findtext(f"{space}created"))
        return {"published": created, "updated": fold(element.findtext(f"{space}updated")) or created}
    first, last = versions[0].findtext(f"{space}date"), versions[-1].findtext(f"{space}date")
    withdrawn = "I" in (versions[-1].findtext(f"{space}source_type") or "")
    return {
        "version": int(versions[-1].get("version").removeprefix("v")),
        "published": day_of(first) if first else None,
        "updated": day_of(last) if last else None,
        "status": "withdrawn" if withdrawn else "present",
    }


def _authors(element: Any, space: str) -> tuple[str, ...]:
    authors = element.find(f"{space}authors")
    if authors is None:
        return ()
    if len(authors) == 0:
        return split_authors(authors.text or "")
    parts = ("forenames", "keyname", "suffix")
    names = (" ".join(author.findtext(f"{space}{part}") or "" for part in parts) for author in authors)
    return tuple(name for name in (" ".join(name.split()) for name in names) if name)
