"""Harvesting what changed at arXiv since the last time, so that a refresh needs no new snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from filelock import FileLock, Timeout

from pipeline.arxiv.months import describe_months
from pipeline.engine import progress
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError, TransientFailure
from pipeline.metadata.asking import Asker, Service
from pipeline.metadata.harvested import STORE, HarvestStore, News, Page
from pipeline.metadata.oai import Harvester, TokenRefused
from pipeline.metadata.pace import Pace, Patience
from pipeline.metadata.snapshot import Snapshot, is_day
from pipeline.settings import Settings

# Datestamps are days, and the day on which a harvest ends may bring more.
OVERLAP = timedelta(days=1)
# A token may be refused because the list changed under it; a server that refuses every token is no use.
MOST_RESTARTS = 3
_KINDS = ("new", "changed", "withdrawn", "deleted", "unchanged", "broken")


@dataclass(frozen=True, slots=True)
class HarvestReport:
    """What a harvest brought: papers by what is new about them, and the months that are out of date by it.

    Of one that goes on where another broke off, what came since; `citeloom status` shows all months that are due.
    `since` is the first day asked for, None for all that there is; `until` the day up to which nothing is missing.
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
        told = ", ".join(f"{count:,} {name}" for name, count in kinds.items() if count) or "nothing"
        months = f"; of {describe_months(list(self.months))}: citeloom run does them again" if self.months else ""
        return f"Harvested up to {self.until} in {self.requests:,} requests: {told}{months}"


def harvest(
    settings: Settings,
    workspace: Workspace,
    until: str | None = None,
    *,
    since: str | None = None,
    pace: Pace | None = None,
    patience: Patience | None = None,
) -> HarvestReport:
    """Ask arXiv's OAI-PMH interface for the records of set `cs` that changed, and keep them for stage `metadata`.

    From `since` (`YYYY-MM-DD`), else from where a harvest broke off, else from a day before the last whole one began,
    else from a day before the newest change in the snapshot, else everything (280 pages); to `until`, included. Raises
    SettingError for a day that is none, TransientFailure where the server does not answer well or another harvest
    runs, PermanentFailure where it refuses. What came before an error is kept, and the next harvest goes on from there.
    """
    for name, day in (("--from", since), ("until", until)):
        _check_day(name, day)
    store = HarvestStore(workspace.cache(STORE))
    service = Service(
        "arXiv's OAI-PMH", settings.oai_url, "CITELOOM_OAI_URL", "run citeloom harvest again to go on from there"
    )
    try:
        with FileLock(store.lock, timeout=0):
            asker = Asker(service, settings, pace=pace, patience=patience)
            try:
                return _Harvest(
                    store, asker, settings.oai_url, _begin(store, workspace, since, until, settings.oai_url)
                ).run()
            finally:
                asker.close()
    except Timeout as error:
        raise TransientFailure(f"another harvest holds {store.lock}: wait for its end") from error


def _check_day(name: str, day: str | None) -> None:
    if day is not None and not is_day(day):
        raise SettingError(f"{name} {day!r} is not a day: write it as YYYY-MM-DD, for example 2026-11-03")


@dataclass(slots=True)
class _State:
    """How far a harvest is. All of it is kept with every page, as text."""

    url: str
    since: str = ""
    until: str = ""
    token: str = ""
    expires: str = ""
    begun: str = ""
    """The day, by the server's clock, on which the first page came."""
    reached: str = ""
    """The newest datestamp so far, while pages come oldest first: everything before it is here."""
    ordered: str = "yes"
    whole: str = "yes"
    """Whether nothing is missing once this one is at its end; empty where it began later than the last one ended."""

    def as_text(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}


def _begin(store: HarvestStore, workspace: Workspace, since: str | None, until: str | None, url: str) -> _State:
    kept = store.state()
    left = _State(**{name: kept.get(name, "") for name in _State.__slots__}) if kept.get("begun") else None
    if left and left.url == url and since is None and left.until == (until or ""):
        if left.expires and left.expires[:19] <= datetime.now(UTC).isoformat()[:19]:
            left.token = ""
        return left
    known = kept.get("complete") or _newest_of_snapshot(workspace)
    if since is None:
        return _State(url, since=_day_before(known) or "", until=until or "")
    whole = since <= known if known else left is None
    return _State(url, since=since, until=until or "", whole="yes" if whole else "")


def _day_before(day: str | None) -> str | None:
    return (date.fromisoformat(day) - OVERLAP).isoformat() if day else None


def _newest_of_snapshot(workspace: Workspace) -> str | None:
    file = workspace.settings.metadata_snapshot
    return Snapshot(file, workspace.cache("snapshot")).newest() if file else None


@dataclass(slots=True)
class _Harvest:
    """One harvest from where it begins to its end."""

    store: HarvestStore
    asker: Asker
    url: str
    state: _State
    counts: Counter[str] = field(default_factory=Counter)
    months: set[str] = field(default_factory=set)

    def run(self) -> HarvestReport:
        harvester = Harvester(self.url, self.asker)
        restarts = 0
        while True:
            try:
                for page in harvester.pages(self._since() or None, self.state.until or None, self.state.token or None):
                    self._take(page)
                break
            except TokenRefused as refusal:
                restarts += 1
                if restarts > MOST_RESTARTS:
                    raise TransientFailure(
                        f"{self.url} refuses its own resumption tokens ({refusal}): try again later"
                    ) from refusal
                progress.noted(
                    f"arXiv's OAI-PMH refuses to go on ({refusal}); beginning again from {self._since() or 'the start'}"
                )
                self.state.token = ""
        return self._finish(harvester.answered_at)

    def _since(self) -> str:
        """The day to begin at where there is no token: the last one reached, whose records may not all be here."""
        return max(self.state.since, self.state.reached if self.state.ordered else "")

    def _take(self, page: Page) -> None:
        state = self.state
        if page.token and page.token == state.token:
            raise TransientFailure(f"{self.url} gives the same resumption token twice: try again later")
        state.begun = state.begun or page.answered_at[:10]
        state.token, state.expires = page.token or "", page.expires or ""
        days = [state.reached, *(change.datestamp for change in page.changes)]
        if days != sorted(days):
            state.ordered = ""
        state.reached = max(days)
        self._count(self.store.keep(page, state.as_text()))
        done = self.counts.total()
        progress.advanced("harvest", state.reached or "harvest", done, page.total)

    def _count(self, news: News) -> None:
        self.counts += news.counts
        self.months |= news.months

    def _finish(self, answered_at: str) -> HarvestReport:
        state = self.state
        # A server whose clock is ahead must not make the next harvest begin in the future.
        day = min(state.begun or answered_at[:10], datetime.now(UTC).date().isoformat())
        complete = min(day, state.until) if state.until else day
        before = self.store.state().get("complete", "")
        self.store.note(
            dict.fromkeys(_State.__slots__, "") | {"complete": max(complete, before) if state.whole else before}
        )
        return HarvestReport(
            **{kind: self.counts[kind] for kind in _KINDS},
            months=tuple(sorted(self.months)),
            since=state.since or None,
            until=complete,
            requests=self.asker.requests,
        )
