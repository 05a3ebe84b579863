"""An answer of arXiv's API, from bytes to records.

`arxiv` 4.0.2 parses with `recover=True`, which reads a cut answer as a short one, so `root_of` reads it first and
refuses what is not whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.arxiv.identifiers import split_version
from pipeline.errors import CiteloomError
from pipeline.metadata.dois import plain_doi
from pipeline.metadata.record import Record, fold, with_status
from pipeline.metadata.vet import BrokenAnswer, root_of

if TYPE_CHECKING:
    from arxiv import Result

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
    from arxiv import _feed

    root = root_of(body)
    if root != _FEED:
        raise BrokenAnswer(f"it is no Atom feed: its root is {root}")
    try:
        feed = _feed.parse(body)
        results, announced = feed.results, feed.header.total_results
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
