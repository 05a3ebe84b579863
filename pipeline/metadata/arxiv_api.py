"""The arXiv API for lists of identifiers, asked as arXiv asks to be asked.

The package `arxiv` builds the queries and reads the Atom; the HTTP is ours, since arxiv.py 4.0.2 repeats at once
whatever is not 200 and has no time-out. Not here: which papers are asked for (`stages`), and the pace (`pace`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.metadata.answers import MISSES_OF_ABSENT, Answers
from pipeline.metadata.atom import BrokenAnswer, RefusedList, read_feed, refused
from pipeline.metadata.pace import LONGEST_WAIT_SECONDS, Pace, Patience
from pipeline.metadata.record import Record
from pipeline.settings import Settings

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]

# A GET with 642 identifiers was answered 414; 100 is the habit of arXiv's clients, and arxiv.py's page.
IDS_PER_REQUEST = 100
# 100 entries are 250 KB; one of a collaboration of 3,000 authors is 200 KB.
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
LONGEST_ANSWER_SECONDS = 300.0
_TIMEOUT = httpx.Timeout(60.0, connect=15.0)
_WHAT_ELSE = (
    "try again later, or set CITELOOM_METADATA_SNAPSHOT to a snapshot that holds these papers, "
    "or CITELOOM_ARXIV_API=false to go on without them"
)


class _Trouble(CiteloomError):
    """One try that failed and may be repeated; `rest` is what the server asked for, in seconds."""

    def __init__(self, message: str, rest: float = 0.0) -> None:
        super().__init__(message)
        self.rest = rest


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    retry_after: str
    body: bytes


class ArxivApi:
    """Asks arXiv for papers by identifier: a context manager that holds one connection and the kept answers.

    `cache` is the folder of the answers. `pace` and `patience` other than arXiv's rules are for tests. `requests`
    counts what was sent, failed tries included.
    """

    def __init__(
        self, settings: Settings, cache: Path, *, pace: Pace | None = None, patience: Patience | None = None
    ) -> None:
        self._url = settings.arxiv_api_url
        self._pace, self._patience = pace or Pace(), patience or Patience()
        self._http = httpx.Client(
            headers={"User-Agent": _sendable(settings.arxiv_user_agent)},
            limits=httpx.Limits(max_connections=1),
            timeout=_TIMEOUT,
            follow_redirects=True,
        )
        self._answers = Answers(cache)
        self.requests = 0

    def __enter__(self) -> ArxivApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._answers.close()

    def find(self, ids: Iterable[str], progress: Progress | None = None) -> dict[str, Record]:
        """A record for each identifier (no version; old ones with their slash), `absent` where arXiv has none.

        What was answered before is not asked again, and each answer is kept before the next request, so a kill loses
        one request at most. An identifier that an answer leaves out is asked once more. `progress` gets (asked, to
        ask) after each batch. Raises TransientFailure where the server cannot be reached or does not answer well,
        PermanentFailure where asking again cannot help, SettingError where the base URL is none.
        """
        wanted = sorted(set(ids))
        self._ask_all(self._answers.never_asked(wanted), progress)
        self._ask_all(self._answers.missing_once(wanted), progress)
        return self._answers.known(wanted)

    def _ask_all(self, ids: Sequence[str], progress: Progress | None) -> None:
        for start in range(0, len(ids), IDS_PER_REQUEST):
            self._ask(ids[start : start + IDS_PER_REQUEST])
            if progress:
                progress(min(start + IDS_PER_REQUEST, len(ids)), len(ids))

    def _ask(self, ids: Sequence[str]) -> None:
        try:
            records = self._fetch(self._address(ids))
        except RefusedList as refusal:
            self._ask_less(ids, refusal)
            return
        at = _now()
        self._answers.keep(ids, {name: replace(record, fetched_at=at) for name, record in records.items()}, at)

    def _ask_less(self, ids: Sequence[str], refusal: RefusedList) -> None:
        """Halve a list that was refused, down to the identifier that is at fault: that one is absent."""
        if len(ids) > 1:
            self._ask(ids[: len(ids) // 2])
            self._ask(ids[len(ids) // 2 :])
        elif refusal.wrong_identifier:
            self._answers.keep(ids, {}, _now(), misses=MISSES_OF_ABSENT)
        else:
            raise PermanentFailure(
                f"arXiv's API at {self._url} refuses even the single identifier {ids[0]} ({refusal}): "
                "check CITELOOM_ARXIV_API_URL"
            )

    def _address(self, ids: Sequence[str]) -> str:
        import arxiv

        client = arxiv.Client(page_size=len(ids))
        client.query_url_format = self._url + "?{}"
        return str(client._format_url(arxiv.Search(id_list=list(ids)), 0, len(ids)))

    def _fetch(self, address: str) -> dict[str, Record]:
        """The records of one answer, tried with back-off; every process of the machine rests with this one."""
        tries = 0
        while True:
            tries += 1
            with self._pace.turn():
                try:
                    return self._try(address)
                except _Trouble as trouble:
                    if tries >= self._patience.tries or trouble.rest > LONGEST_WAIT_SECONDS:
                        raise self._given_up(trouble, tries) from trouble
                    self._rest(trouble, tries)

    def _rest(self, trouble: _Trouble, tries: int) -> None:
        seconds = max(trouble.rest, self._patience.back_off(tries))
        log.warning("arXiv's API: %s; resting %.0f s, then trying again", trouble, seconds)
        self._pace.postpone(seconds)

    def _given_up(self, trouble: _Trouble, tries: int) -> TransientFailure:
        rest = f", asking for {trouble.rest:.0f} s of rest" if trouble.rest else ""
        return TransientFailure(
            f"arXiv's API at {self._url} does not answer well after {_times(tries)}: {trouble}{rest}; "
            f"what it answered before is kept: {_WHAT_ELSE}"
        )

    def _try(self, address: str) -> dict[str, Record]:
        answer = self._get(address)
        if answer.status in (400, 414):
            raise refused(answer.status, answer.body)
        if answer.status in (408, 429) or answer.status >= 500:
            raise _Trouble(f"status {answer.status}", _seconds(answer.retry_after))
        if answer.status != 200:
            raise PermanentFailure(
                f"arXiv's API at {self._url} answers with status {answer.status}: check CITELOOM_ARXIV_API_URL and "
                "CITELOOM_ARXIV_USER_AGENT"
            )
        try:
            return read_feed(answer.body)
        except BrokenAnswer as error:
            raise _Trouble(f"its answer is not usable: {error}") from error
        except PermanentFailure as error:
            raise PermanentFailure(f"an answer of {self._url} is refused: {error}; check the address") from error

    def _get(self, address: str) -> _Answer:
        self.requests += 1
        try:
            with self._http.stream("GET", address) as response:
                return _Answer(response.status_code, response.headers.get("Retry-After", ""), _body(response))
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise SettingError(f"CITELOOM_ARXIV_API_URL: {self._url} is no address of a server ({error})") from error
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise TransientFailure(f"arXiv's API at {self._url} cannot be reached ({error}): {_WHAT_ELSE}") from error
        except httpx.RequestError as error:
            raise _Trouble(f"{type(error).__name__} {error}".rstrip()) from error


def _sendable(user_agent: str) -> str:
    if not (user_agent.isascii() and user_agent.isprintable()):
        raise SettingError(f"CITELOOM_ARXIV_USER_AGENT: {user_agent!r} cannot be sent: write it in ASCII, on one line")
    return user_agent


def _body(response: httpx.Response) -> bytes:
    """The body, bounded in size and time: a server may drip bytes for ever within the read time-out."""
    body, until = bytearray(), time.monotonic() + LONGEST_ANSWER_SECONDS
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > LARGEST_ANSWER_BYTES:
            raise _Trouble(f"its answer is longer than {LARGEST_ANSWER_BYTES} bytes")
        if time.monotonic() > until:
            raise _Trouble(f"its answer takes longer than {LONGEST_ANSWER_SECONDS:.0f} s")
    return bytes(body)


def _seconds(retry_after: str) -> float:
    """A Retry-After header in seconds (RFC 9110, 10.2.3: a number or a date); 0 where it is neither."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max((until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _times(tries: int) -> str:
    return "one try" if tries == 1 else f"{tries} tries"
