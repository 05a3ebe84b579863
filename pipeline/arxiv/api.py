"""arXiv's API for lists of identifiers: requests, Atom feeds and what is cached of them.

Entries become `Result`s of the package `arxiv`. docs/contributing/upstream.md says why its `Client`
is not used.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from pipeline.arxiv.rate_limited_client import (
    BrokenAnswer,
    HttpAnswer,
    Pace,
    RateLimitedClient,
    Service,
    parse_xml,
)
from pipeline.arxiv.record import Record, absent, fold, with_status
from pipeline.errors import CiteloomError, PermanentFailure
from pipeline.identity.identifiers import plain_doi, split_version
from pipeline.settings import Settings
from pipeline.storage.sqlite import open_store

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from arxiv import Result

Progress = Callable[[int, int], None]

# A GET with 642 identifiers was answered 414; 100 is the habit of arXiv's clients.
IDS_PER_REQUEST = 100
# https://info.arxiv.org/help/api/user-manual.html#_details_of_atom_results_returned
_NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "arxiv": "http://arxiv.org/schemas/atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
}
_ERROR = "/api/errors#"
_WRONG_ID = b"/api/errors#incorrect_id_format"
_WAY_OUT = (
    "try again later, or set CITELOOM_METADATA_SNAPSHOT to a snapshot that holds these papers, "
    "or CITELOOM_ARXIV_API=false to go on without them"
)

_SCHEMA = (
    "create table if not exists records (arxiv_id text primary key, record text not null) without"
    " rowid"
)


class ApiCache:
    """An SQLite file with a record per identifier; `absent` where arXiv has no such paper.

    Delete the folder to request everything again. Raises PermanentFailure where the file is damaged
    or cannot be written, and TransientFailure where another process keeps it locked.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "answers.sqlite"

    def find(self, ids: Iterable[str]) -> dict[str, Record]:
        """The cached records of those identifiers."""
        if not self._file.exists():
            return {}
        query = "select record from records where arxiv_id = ?"
        with self._open() as store:
            rows = [row for name in ids for row in store.execute(query, (name,))]
        records = [Record.from_row(json.loads(record)) for (record,) in rows]
        return {record.arxiv_id: record for record in records}

    def add(self, records: Iterable[Record]) -> None:
        """Add what an answer says, all or nothing."""
        rows = [
            (record.arxiv_id, json.dumps(record.as_row(), sort_keys=True)) for record in records
        ]
        with self._open() as store:
            store.executemany("insert or replace into records values (?, ?)", rows)

    def _open(self) -> AbstractContextManager[sqlite3.Connection]:
        way_out = "move the file away and run again"
        return open_store(self._file, "the cached answers of arXiv", way_out, _SCHEMA)


class ListRefused(CiteloomError):
    """arXiv refuses a list of identifiers: it is too long, or one of them is malformed."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.wrong_identifier = _WRONG_ID in body


class ArxivApi:
    """Looks up papers by identifier; a context manager with one connection and the cache.

    `cache` is the folder of the cache. A pace other than arXiv's rules is for tests.
    """

    def __init__(self, settings: Settings, cache: Path, *, pace: Pace | None = None) -> None:
        self._url = settings.arxiv_api_url
        service = Service("arXiv's API", self._url, "CITELOOM_ARXIV_API_URL", _WAY_OUT)
        self._client = RateLimitedClient(service, settings, pace=pace)
        self._cache = ApiCache(cache)

    @property
    def requests(self) -> int:
        """How many requests were sent, failed tries and redirects included."""
        return self._client.requests

    def __enter__(self) -> ArxivApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def find(self, ids: Iterable[str], progress: Progress | None = None) -> dict[str, Record]:
        """A record for each identifier (no version), `absent` where arXiv has none.

        Cached answers are not requested again, and each answer is cached before the next request,
        so a kill loses one request at most. An identifier that an answer lacks is requested once
        more. `progress` gets (done, total) after each batch. Raises TransientFailure where the
        server cannot be reached or does not answer well, PermanentFailure where another try cannot
        help, SettingError where the base URL is invalid.
        """
        names = sorted(set(ids))
        cached = self._cache.find(names)
        unknown = [arxiv_id for arxiv_id in names if arxiv_id not in cached]
        lacking = self._request_all(unknown, 0, progress)
        absent_ids = self._request_all(lacking, len(unknown), progress)
        self._cache.add(absent(arxiv_id, "api", _now()) for arxiv_id in absent_ids)
        return self._cache.find(names)

    def _request_all(self, ids: Sequence[str], before: int, progress: Progress | None) -> list[str]:
        """Request and cache these papers; the identifiers that the answers lack."""
        lacking = []
        for start in range(0, len(ids), IDS_PER_REQUEST):
            lacking += self._request(ids[start : start + IDS_PER_REQUEST])
            if progress:
                progress(before + min(start + IDS_PER_REQUEST, len(ids)), before + len(ids))
        return lacking

    def _request(self, ids: Sequence[str]) -> list[str]:
        query = urlencode({"id_list": ",".join(ids), "start": 0, "max_results": len(ids)})
        try:
            records = self._client.get(f"{self._url}?{query}", self._read)
        except ListRefused as refusal:
            # A refused list is halved, down to the malformed identifier, which is absent.
            middle = len(ids) // 2
            if middle > 0:
                return self._request(ids[:middle]) + self._request(ids[middle:])
            if not refusal.wrong_identifier:
                raise PermanentFailure(
                    f"arXiv's API at {self._url} refuses even the single identifier"
                    f" {ids[0]} ({refusal}): check CITELOOM_ARXIV_API_URL"
                ) from refusal
            self._cache.add([absent(ids[0], "api", _now())])
            return []
        now = _now()
        self._cache.add(
            replace(records[arxiv_id], fetched_at=now) for arxiv_id in ids if arxiv_id in records
        )
        return [arxiv_id for arxiv_id in ids if arxiv_id not in records]

    def _read(self, answer: HttpAnswer) -> dict[str, Record]:
        if answer.status in (400, 414):
            raise ListRefused(answer.status, answer.body)
        if answer.status != 200:
            raise PermanentFailure(
                f"arXiv's API at {self._url} answers with status {answer.status}: check"
                " CITELOOM_ARXIV_API_URL and CITELOOM_ARXIV_USER_AGENT"
            )
        try:
            return read_feed(answer.body)
        except PermanentFailure as error:
            raise PermanentFailure(
                f"an answer of {self._url} is refused: {error}; check the address"
            ) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_feed(body: bytes) -> dict[str, Record]:
    """The records of an Atom feed by identifier without version; `fetched_at` is None.

    Raises BrokenAnswer where the body is not a whole Atom feed, or announces papers and holds none,
    ListRefused where it reports an error, PermanentFailure where it declares a document type.
    """
    feed = parse_xml(body, "{http://www.w3.org/2005/Atom}feed")
    entries = feed.findall("atom:entry", _NAMESPACES)
    if any(_ERROR in entry.findtext("atom:id", "", _NAMESPACES) for entry in entries):
        raise ListRefused(200, body)
    try:
        announced = int(feed.findtext("opensearch:totalResults", "0", _NAMESPACES).strip() or 0)
        records = list(map(_read_entry, entries))
    except ValueError as error:
        raise BrokenAnswer(f"an entry of it cannot be read ({error})") from error
    # An empty page where there are papers is how arXiv fails under load: believed twice, it made
    # 100 papers absent.
    if announced > 0 and not records:
        raise BrokenAnswer(f"it announces {announced:,} papers and holds none")
    # Of a paper with several entries the newest version counts, in any order.
    records.sort(key=lambda record: record.version or 0)
    return {record.arxiv_id: record for record in records}


def _read_entry(entry: Element) -> Record:
    """The record of an entry. Raises ValueError where it has no identifier or no date."""
    result = _result_of(entry)
    arxiv_id, version = split_version(result.get_short_id())
    authors = [fold(author.name) for author in result.authors]
    categories = filter(None, [result.primary_category, *result.categories])
    record = Record(
        arxiv_id=arxiv_id,
        version=version,
        title=fold(result.title),
        authors=tuple(filter(None, authors)),
        abstract=fold(result.summary),
        categories=tuple(dict.fromkeys(categories)),
        primary_category=result.primary_category or None,
        published=result.published.date().isoformat(),
        updated=result.updated.date().isoformat(),
        doi=plain_doi(fold(result.doi)),
        journal_ref=fold(result.journal_ref),
        comment=fold(result.comment),
        source="api",
    )
    return with_status(record)


def _result_of(entry: Element) -> Result:
    """An entry as the package `arxiv` represents it. Raises ValueError as `_read_entry`."""
    from arxiv import Result

    def text(path: str) -> str:
        return str(entry.findtext(path, "", _NAMESPACES)).strip()

    address = text("atom:id")
    if not address:
        raise ValueError("it has no id")
    primary = entry.find("arxiv:primary_category", _NAMESPACES)
    names = entry.iterfind("atom:author/atom:name", _NAMESPACES)
    categories = entry.iterfind("atom:category", _NAMESPACES)
    return Result(
        address,
        updated=datetime.fromisoformat(text("atom:updated")).astimezone(UTC),
        published=datetime.fromisoformat(text("atom:published")).astimezone(UTC),
        title=text("atom:title"),
        authors=[Result.Author(name.text or "") for name in names],
        summary=text("atom:summary"),
        comment=text("arxiv:comment"),
        journal_ref=text("arxiv:journal_ref"),
        doi=text("arxiv:doi"),
        primary_category="" if primary is None else primary.get("term", ""),
        categories=[category.get("term", "") for category in categories],
    )
