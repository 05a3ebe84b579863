"""An answer of arXiv's API, from bytes to `arxiv.Result` to records.

The package `arxiv` (4.0.2) parses answers only where it has sent the request itself, without a time-out and reading a
cut answer as a short one. So the bytes are fetched by `asking`, vetted by `root_of`, and its `Result` is built here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pipeline.arxiv.identifiers import split_version
from pipeline.errors import CiteloomError
from pipeline.metadata.dois import plain_doi
from pipeline.metadata.record import Record, fold, with_status
from pipeline.metadata.vet import BrokenAnswer, root_of

if TYPE_CHECKING:
    from arxiv import Result
    from lxml.etree import _Element as Element

# https://info.arxiv.org/help/api/user-manual.html#_details_of_atom_results_returned
_NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "arxiv": "http://arxiv.org/schemas/atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
}
_FEED = "{http://www.w3.org/2005/Atom}feed"
_ERROR = "/api/errors#"
_WRONG_ID = b"/api/errors#incorrect_id_format"


class RefusedList(CiteloomError):
    """An answer that says the list of identifiers is too long, or that one of them is not well formed."""

    def __init__(self, message: str, *, wrong_identifier: bool) -> None:
        super().__init__(message)
        self.wrong_identifier = wrong_identifier


def refused(status: int, body: bytes) -> RefusedList:
    """The refusal that an answer of status 400 or 414, or a feed with an error entry, stands for."""
    return RefusedList(f"status {status}", wrong_identifier=_WRONG_ID in body)


def read_feed(body: bytes) -> dict[str, Record]:
    """The records of an answer by identifier without version; `fetched_at` is left open.

    Raises BrokenAnswer where the body is HTML, cut, empty against its own word, or otherwise no Atom feed, RefusedList
    where the feed reports an error, PermanentFailure where it declares a document type or entities.
    """
    from lxml import etree

    root = root_of(body)
    if root != _FEED:
        raise BrokenAnswer(f"it is not an Atom feed: its root is {root}")
    try:
        feed = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))
        announced = int(feed.findtext("opensearch:totalResults", "0", _NAMESPACES).strip() or 0)
        results = [_result(entry) for entry in feed.iterfind("atom:entry", _NAMESPACES)]
        if any(_ERROR in result.entry_id for result in results):
            raise refused(200, body)
        records = [_record(result) for result in results]
    except (ValueError, AttributeError, TypeError) as error:
        raise BrokenAnswer(f"an entry of it cannot be read ({error})") from error
    # An empty page where there are papers is how arXiv fails under load: believed twice, it made 100 papers absent.
    if announced > 0 and not records:
        raise BrokenAnswer(f"it announces {announced:,} papers and holds none")
    # A paper that is there twice counts as its newest version, whichever comes first.
    return {record.arxiv_id: record for record in sorted(records, key=lambda record: record.version or 0)}


def _result(entry: Element) -> Result:
    """An entry of the feed. Raises ValueError where it has no identifier or no date."""
    from arxiv import Result

    identifier = entry.findtext("atom:id", "", _NAMESPACES)
    if not identifier:
        raise ValueError("it has no id")
    primary = entry.find("arxiv:primary_category", _NAMESPACES)
    categories = [category.get("term") for category in entry.iterfind("atom:category", _NAMESPACES)]
    return Result(
        identifier,
        updated=datetime.fromisoformat(entry.findtext("atom:updated", "", _NAMESPACES).strip()).astimezone(UTC),
        published=datetime.fromisoformat(entry.findtext("atom:published", "", _NAMESPACES).strip()).astimezone(UTC),
        title=entry.findtext("atom:title", "", _NAMESPACES),
        authors=[
            Result.Author(author.findtext("atom:name", "", _NAMESPACES))
            for author in entry.iterfind("atom:author", _NAMESPACES)
        ],
        summary=entry.findtext("atom:summary", "", _NAMESPACES),
        comment=entry.findtext("arxiv:comment", "", _NAMESPACES),
        journal_ref=entry.findtext("arxiv:journal_ref", "", _NAMESPACES),
        doi=entry.findtext("arxiv:doi", "", _NAMESPACES),
        primary_category="" if primary is None else primary.get("term", ""),
        categories=[category for category in categories if category],
    )


def _record(result: Result) -> Record:
    arxiv_id, version = split_version(result.get_short_id())
    others = [name for name in result.categories if name != result.primary_category]
    record = Record(
        arxiv_id=arxiv_id,
        version=version,
        title=fold(result.title),
        authors=tuple(name for name in (fold(author.name) for author in result.authors) if name),
        abstract=fold(result.summary),
        categories=(*filter(None, [result.primary_category]), *others),
        primary_category=result.primary_category or None,
        published=result.published.date().isoformat(),
        updated=result.updated.date().isoformat(),
        doi=plain_doi(fold(result.doi)),
        journal_ref=fold(result.journal_ref),
        comment=fold(result.comment),
        source="api",
    )
    return with_status(record)
