"""The arXiv API for lists of identifiers, asked as arXiv asks to be asked.

HTTP is our own (`asking`): arxiv.py 4.0.2 repeats at once whatever is not 200, and has no time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from pipeline.errors import PermanentFailure
from pipeline.metadata.answers import MISSES_OF_ABSENT, Answers
from pipeline.metadata.asking import Answer, Asker, Service
from pipeline.metadata.atom import RefusedList, read_feed, refused
from pipeline.metadata.pace import Pace, Patience
from pipeline.metadata.record import Record
from pipeline.settings import Settings

Progress = Callable[[int, int], None]

# A GET with 642 identifiers was answered 414; 100 is the habit of arXiv's clients, and arxiv.py's page.
IDS_PER_REQUEST = 100
_WHAT_ELSE = (
    "try again later, or set CITELOOM_METADATA_SNAPSHOT to a snapshot that holds these papers, "
    "or CITELOOM_ARXIV_API=false to go on without them"
)


class ArxivApi:
    """Asks arXiv for papers by identifier: a context manager that holds one connection and the kept answers.

    `cache` is the folder of the answers. `pace` and `patience` other than arXiv's rules are for tests.
    """

    def __init__(
        self, settings: Settings, cache: Path, *, pace: Pace | None = None, patience: Patience | None = None
    ) -> None:
        self._url = settings.arxiv_api_url
        service = Service("arXiv's API", self._url, "CITELOOM_ARXIV_API_URL", _WHAT_ELSE)
        self._asker = Asker(service, settings, pace=pace, patience=patience)
        self._answers = Answers(cache)

    @property
    def requests(self) -> int:
        """How many requests were sent, failed tries and redirections included."""
        return self._asker.requests

    def __enter__(self) -> ArxivApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._asker.close()
        self._answers.close()

    def find(self, ids: Iterable[str], progress: Progress | None = None) -> dict[str, Record]:
        """A record for each identifier (no version; old ones with their slash), `absent` where arXiv has none.

        What was answered before is not asked again, and each answer is kept before the next request, so a kill loses
        one request at most. An identifier that an answer leaves out is asked once more. `progress` gets (asked, to
        ask) after each batch. Raises TransientFailure where the server cannot be reached or does not answer well,
        PermanentFailure where asking again cannot help, SettingError where the base URL is none.
        """
        wanted = sorted(set(ids))
        first = self._answers.never_asked(wanted)
        self._ask_all(first, 0, progress)
        self._ask_all(self._answers.missing_once(wanted), len(first), progress)
        return self._answers.known(wanted)

    def _ask_all(self, ids: Sequence[str], before: int, progress: Progress | None) -> None:
        for start in range(0, len(ids), IDS_PER_REQUEST):
            self._ask(ids[start : start + IDS_PER_REQUEST])
            if progress:
                progress(before + min(start + IDS_PER_REQUEST, len(ids)), before + len(ids))

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
        query = urlencode({"id_list": ",".join(ids), "start": 0, "max_results": len(ids)})
        return f"{self._url}?{query}"

    def _fetch(self, address: str) -> dict[str, Record]:
        return self._asker.ask(address, self._read)

    def _read(self, answer: Answer) -> dict[str, Record]:
        if answer.status in (400, 414):
            raise refused(answer.status, answer.body)
        if answer.status != 200:
            raise PermanentFailure(
                f"arXiv's API at {self._url} answers with status {answer.status}: check CITELOOM_ARXIV_API_URL and "
                "CITELOOM_ARXIV_USER_AGENT"
            )
        try:
            return read_feed(answer.body)
        except PermanentFailure as error:
            raise PermanentFailure(f"an answer of {self._url} is refused: {error}; check the address") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
