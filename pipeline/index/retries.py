"""Questions to a Qdrant server that are asked again, since what hindered them may pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from qdrant_client.http.exceptions import UnexpectedResponse
    from tenacity import RetryCallState

T = TypeVar("T")

# The first pause is up to so many seconds, each next one up to twice as many, and none is longer than LONGEST_PAUSE.
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 15.0

# Of gRPC. The last two are what is made of a stream that the other end, or a proxy between, broke off.
_PASSING_CODES = {
    "UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "CANCELLED", "UNKNOWN"
}  # fmt: skip


class NotDone(Exception):
    """The server took a change and did not say that it is done. Doing it again does no harm."""


class Retries:
    """Asks again until an answer comes or patience ends, and counts how often it did. Threads may share it.

    Pauses are random between nothing and a bound that doubles (full jitter), so that calls which failed together do
    not come back together; a pause that the server asks for is kept. Where it would outlast the patience, it is not
    begun.
    """

    def __init__(self, pause: Callable[[float], None] = time.sleep) -> None:
        self.count = 0
        self._pause = pause
        self._lock = Lock()

    def ask(self, question: Callable[[], T], patience: float) -> T:
        """What `question` returns, asked again for about `patience` seconds; 0 for once. Raises what it raised last,
        and at once what asking again does not help."""
        import tenacity

        asking = tenacity.Retrying(
            retry=tenacity.retry_if_exception(may_pass),
            wait=_wait,
            stop=_stop(patience),
            sleep=self._pause,
            before_sleep=self._count,
            reraise=True,
        )
        return asking(question)

    def _count(self, _: RetryCallState) -> None:
        with self._lock:
            self.count += 1


def _stop(patience: float) -> Callable[[RetryCallState], bool]:
    """When to end: where the next pause would outlast the patience.

    A line that went silent is noticed after half a minute, when who asked a question has no patience left; that
    deserves one more try, on a new line.
    """

    def over(state: RetryCallState) -> bool:
        tried = state.seconds_since_start or 0.0
        hung = state.attempt_number == 1 and tried >= patience > 0
        return (0.0 if hung else tried) + state.upcoming_sleep >= patience

    return over


def may_pass(error: BaseException) -> bool:
    """Whether an error of qdrant-client may be gone when the same is asked again."""
    import grpc
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, UnexpectedResponse):
        return error.status_code == 429 or (error.status_code or 0) >= 500 or _was_cut(error)
    if isinstance(error, ResponseHandlingException):
        return not isinstance(error.source, ValueError)  # an answer, but no JSON, or JSON of another shape
    if isinstance(error, grpc.RpcError):
        return error.code().name in _PASSING_CODES
    return isinstance(error, ResourceExhaustedResponse | NotDone)


def _was_cut(error: UnexpectedResponse) -> bool:
    """Whether the server saw half a request: it answers 400 where the line ended before the JSON did."""
    return error.status_code == 400 and b"EOF while parsing" in error.content


def asked_for(error: BaseException | None) -> float:
    """Seconds that the server asks to be left alone, by its header Retry-After; 0 where it says nothing.

    The header's other form, a date, is not read: Qdrant sends seconds, and so do proxies in front of it.
    """
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import UnexpectedResponse

    said: Any = 0
    if isinstance(error, ResourceExhaustedResponse):
        said = error.retry_after_s
    elif isinstance(error, UnexpectedResponse):
        said = error.headers.get("retry-after") or 0
    try:
        return max(0.0, float(said))
    except ValueError:
        return 0.0


def _wait(state: RetryCallState) -> float:
    from tenacity import wait_random_exponential

    error = state.outcome.exception() if state.outcome is not None else None
    return max(asked_for(error), wait_random_exponential(FIRST_PAUSE, max=LONGEST_PAUSE)(state))
