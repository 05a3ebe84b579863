"""Harvest changes at arXiv over OAI-PMH, so that a refresh needs no new snapshot.

The package oaipmh-scythe (0.16) is not used: it repeats status 503 alone, reads a Retry-After in
seconds only, shares no rate limit between processes, and takes a truncated answer for a whole one.
What is left to it is a loop over resumption tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from pipeline.arxiv.harvest_store import STORE, Change, HarvestPage, HarvestStore, News
from pipeline.arxiv.rate_limited_client import (
    BrokenAnswer,
    HttpAnswer,
    Pace,
    RateLimitedClient,
    Service,
    parse_xml,
)
from pipeline.arxiv.record import Record, fold, is_day
from pipeline.arxiv.snapshot import Snapshot, parse_record
from pipeline.engine.locks import file_lock
from pipeline.engine.progress import Notice, StageAdvanced, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.identity.months import describe_months

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# Datestamps are days, and more records may come on the day on which a harvest ends.
OVERLAP = timedelta(days=1)
# A token may be refused because the list changed; a server that refuses every token is of no use.
MOST_RESTARTS = 3
_KINDS = ("new", "changed", "withdrawn", "deleted", "unchanged", "broken")
SET = "cs"
# The one of arXiv's formats that the public snapshot is made of: it alone has the versions.
PREFIX = "arXivRaw"

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_IDENTIFIER = "oai:arXiv.org:"


@dataclass(frozen=True, slots=True)
class HarvestReport:
    """Papers by kind of news, and the months that are out of date by them.

    A harvest that continues an interrupted one counts what came since; `citeloom status` shows all
    months that are due. `since` is the first day requested, None for everything; nothing is missing
    up to the day `until`.
    """

    new: int
    changed: int
    withdrawn: int
    deleted: int
    unchanged: int
    broken: int
    months: tuple[str, ...]
    since: str | None
    until: str
    requests: int

    def __str__(self) -> str:
        kinds = {name: getattr(self, name) for name in _KINDS}
        counts = ", ".join(f"{count:,} {name}" for name, count in kinds.items() if count)
        text = f"Harvested up to {self.until} in {self.requests:,} requests: {counts or 'nothing'}"
        if not self.months:
            return text
        return f"{text}; of {describe_months(list(self.months))}: citeloom run does them again"


def harvest(
    workspace: Workspace,
    *,
    since: str | None = None,
    pace: Pace | None = None,
) -> HarvestReport:
    """Request the changed records of set `cs` from arXiv's OAI-PMH, and store them for `metadata`.

    From `since` (`YYYY-MM-DD`), else from where a harvest was interrupted, else from a day before
    the last complete one began, else from a day before the newest change in the snapshot, else
    everything (280 pages). Raises SettingError for an invalid day,
    TransientFailure where the server does not answer well or another harvest runs, PermanentFailure
    where the server refuses. Pages before an error are stored; the next harvest goes on from there.
    """
    if since is not None and not is_day(since):
        raise SettingError(
            f"--from {since!r} is not a day: write it as YYYY-MM-DD, for example 2026-11-03"
        )
    settings, store = workspace.settings, HarvestStore(workspace.cache(STORE))
    service = Service(
        "arXiv's OAI-PMH",
        settings.oai_url,
        "CITELOOM_OAI_URL",
        "run citeloom harvest again to go on from there",
    )
    busy = f"another harvest holds {store.lock}: wait for its end"
    with (
        file_lock(store.lock, "the harvest", if_busy=busy),
        RateLimitedClient(service, settings, pace=pace) as client,
    ):
        return _Harvest(store, client, _first_state(store, workspace, since)).run()


@dataclass(slots=True)
class _HarvestState:
    """The progress of a harvest; stored with every page, as text."""

    url: str
    since: str = ""
    token: str = ""
    expires: str = ""
    begun: str = ""
    """The day of the first page, by the server's clock."""
    reached: str = ""
    """The newest datestamp so far, before which all is stored where pages come oldest first."""
    ordered: str = "yes"
    """Whether pages came oldest first; empty where they did not."""
    whole: str = "yes"
    """Whether nothing is missing at the end; empty where it began after the last one's end."""


def _first_state(store: HarvestStore, workspace: Workspace, since: str | None) -> _HarvestState:
    """Where to begin: where a harvest was interrupted, else at the first day."""
    url = workspace.settings.oai_url
    stored = store.state()
    interrupted = None
    if stored.get("begun"):
        fields = {name: stored.get(name, "") for name in _HarvestState.__slots__}
        interrupted = _HarvestState(**fields)
    if interrupted is not None and since is None and interrupted.url == url:
        if interrupted.expires and interrupted.expires[:19] <= datetime.now(UTC).isoformat()[:19]:
            interrupted.token = ""
        return interrupted
    complete = stored.get("complete")
    snapshot = Snapshot.of(workspace)
    if not complete and snapshot:
        complete = snapshot.newest_update()
    if since is None:
        first = (date.fromisoformat(complete) - OVERLAP).isoformat() if complete else ""
        return _HarvestState(url, since=first)
    whole = since <= complete if complete else interrupted is None
    return _HarvestState(url, since=since, whole="yes" if whole else "")


@dataclass(slots=True)
class _Harvest:
    """One harvest from its first page to its last."""

    store: HarvestStore
    client: RateLimitedClient
    state: _HarvestState
    news: News = field(default_factory=News)

    def run(self) -> HarvestReport:
        oai = OaiClient(self.state.url, self.client)
        restarts = 0
        while True:
            try:
                for page in oai.pages(self._since(), self.state.token):
                    self._add(page)
                return self._finish(oai.answered_at)
            except TokenRefused as refusal:
                restarts += 1
                if restarts > MOST_RESTARTS:
                    raise TransientFailure(
                        f"{self.state.url} refuses its own resumption tokens ({refusal}): try again"
                        " later"
                    ) from refusal
                start = self._since() or "the start"
                message = (
                    f"arXiv's OAI-PMH refuses to go on ({refusal}); beginning again from {start}"
                )
                publish(Notice(message))
                self.state.token = ""

    def _since(self) -> str:
        """The day to begin at without a token: the last one reached, of which more may come."""
        return max(self.state.since, self.state.reached if self.state.ordered else "")

    def _add(self, page: HarvestPage) -> None:
        state = self.state
        if page.token and page.token == state.token:
            raise TransientFailure(
                f"{state.url} gives the same resumption token twice: try again later"
            )
        state.begun = state.begun or page.answered_at[:10]
        state.token, state.expires = page.token or "", page.expires or ""
        days = [state.reached, *(change.datestamp for change in page.changes)]
        if days != sorted(days):
            state.ordered = ""
        state.reached = max(days)
        news = self.store.add(page, asdict(state))
        self.news.counts += news.counts
        self.news.months |= news.months
        done = self.news.counts.total()
        publish(StageAdvanced("harvest", state.reached or "harvest", done, page.total))

    def _finish(self, answered_at: str) -> HarvestReport:
        state = self.state
        # A server whose clock is ahead must not make the next harvest begin in the future.
        until = min(state.begun or answered_at[:10], datetime.now(UTC).date().isoformat())
        before = self.store.state().get("complete", "")
        complete = max(until, before) if state.whole else before
        self.store.set_state(dict.fromkeys(_HarvestState.__slots__, "") | {"complete": complete})
        counts: Counter[str] = self.news.counts
        return HarvestReport(
            **{kind: counts[kind] for kind in _KINDS},
            months=tuple(sorted(self.news.months)),
            since=state.since or None,
            until=until,
            requests=self.client.requests,
        )


class TokenRefused(CiteloomError):
    """The server does not know the resumption token, or no longer."""


class OaiClient:
    """Lists records page by page. `answered_at`: time of the last answer by the server's clock."""

    def __init__(self, url: str, client: RateLimitedClient) -> None:
        self._url, self._client = url, client
        self.answered_at = ""

    def pages(self, since: str, token: str) -> Iterator[HarvestPage]:
        """The pages of what changed since a day (empty for all), or those that follow a token.

        Yields nothing where nothing matches. A page is requested when the one before has been dealt
        with. Raises TokenRefused, what `RateLimitedClient.get` raises, and PermanentFailure where
        the server refuses the request.
        """
        query = {"verb": "ListRecords", "metadataPrefix": PREFIX, "set": SET}
        if since:
            query["from"] = since
        while True:
            if token:
                query = {"verb": "ListRecords", "resumptionToken": token}
            root = self._client.get(f"{self._url}?{urlencode(query)}", self._read)
            self.answered_at = root.findtext(f"{_OAI}responseDate") or ""
            if self._is_empty(root):
                return
            page = _read_page(root, self.answered_at)
            yield page
            if page.token is None:
                return
            token = page.token

    def _read(self, answer: HttpAnswer) -> Element:
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
                raise PermanentFailure(
                    f"an answer of {self._url} is refused: {error}; check the address"
                ) from error
            raise
        if not is_day((root.findtext(f"{_OAI}responseDate") or "")[:10]):
            raise BrokenAnswer("it has no valid date")
        if root.find(f"{_OAI}error") is None and root.find(f"{_OAI}ListRecords") is None:
            raise BrokenAnswer("it holds neither records nor an error")
        return root

    def _is_empty(self, root: Element) -> bool:
        """Whether the server says that nothing matches.

        Raises TokenRefused or PermanentFailure for other errors.
        """
        error = root.find(f"{_OAI}error")
        if error is None:
            return False
        code, message = error.get("code"), fold(error.text) or ""
        if code == "badResumptionToken":
            raise TokenRefused(message)
        if code != "noRecordsMatch":
            raise PermanentFailure(
                f"{self._url} refuses to list records: {code} {message}; check CITELOOM_OAI_URL"
            )
        return True


def _read_page(root: Element, answered_at: str) -> HarvestPage:
    changes: dict[str, Change] = {}
    broken: dict[str, str] = {}
    nameless = 0
    for element in root.iterfind(f"{_OAI}ListRecords/{_OAI}record"):
        identifier = element.findtext(f"{_OAI}header/{_OAI}identifier") or ""
        name = identifier.strip().removeprefix(_IDENTIFIER)
        try:
            change = _read_change(element, name)
        except (ValueError, TypeError, AttributeError) as error:
            if name:
                broken[name] = str(error)
            else:
                nameless += 1
            continue
        earlier = changes.get(name)
        if earlier is None or change.datestamp >= earlier.datestamp:
            changes[name] = change
    token = root.find(f"{_OAI}ListRecords/{_OAI}resumptionToken")
    attributes = {} if token is None else dict(token.attrib)
    token_text = "" if token is None else (token.text or "").strip()
    size = attributes.get("completeListSize", "")
    return HarvestPage(
        tuple(changes.values()),
        broken,
        answered_at,
        token=token_text or None,
        # arXiv's own server writes `expires`.
        expires=attributes.get("expirationDate") or attributes.get("expires"),
        total=int(size) if size.isdecimal() else None,
        nameless=nameless,
    )


def _read_change(element: Element, arxiv_id: str) -> Change:
    """A record of a list. Raises ValueError, TypeError or AttributeError if it is not arXiv's."""
    datestamp = (element.findtext(f"{_OAI}header/{_OAI}datestamp") or "").strip()[:10]
    if not arxiv_id or not is_day(datestamp):
        raise ValueError("its header lacks an identifier or a datestamp")
    header = element.find(f"{_OAI}header")
    if header is not None and header.get("status") == "deleted":
        return Change(arxiv_id, datestamp, None)
    record = _read_record(element.find(f"{_OAI}metadata"))
    if record.arxiv_id != arxiv_id:
        raise ValueError(f"its header says {arxiv_id}, its metadata {record.arxiv_id}")
    return Change(arxiv_id, datestamp, record)


def _read_record(metadata: Element | None) -> Record:
    """The record in an element `metadata`, as of a line of the snapshot; `fetched_at` is None.

    Raises ValueError, TypeError or AttributeError where it has another format or shape.
    """
    element = metadata[0] if metadata is not None and len(metadata) else None
    space, _, form = ("" if element is None else str(element.tag)).rpartition("}")
    if element is None or form != PREFIX:
        raise ValueError(f"it has no metadata in the format {PREFIX}")
    space += "}"
    texts = {str(child.tag).removeprefix(space): child.text for child in element}
    versions = element.findall(f"{space}version")
    history = [
        {"version": version.get("version"), "created": version.findtext(f"{space}date")}
        for version in versions
    ]
    record = parse_record(texts | {"id": fold(texts.get("id")) or "", "versions": history})
    # The newest version of a withdrawn paper has no source.
    withdrawn = versions and "I" in (versions[-1].findtext(f"{space}source_type") or "")
    return replace(record, source="oai", status="withdrawn" if withdrawn else record.status)
