"""A connection to a Qdrant server or cluster: its address, gRPC where that can be reached, else HTTP, and its errors.

API: qdrant-client 1.20.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, quote

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.index.retries import NotDone, Retries
from pipeline.settings.urls import is_loopback, refuse_key_over_http, refuse_unsendable_key, split_url

if TYPE_CHECKING:
    import grpc
    import httpx
    from pydantic import SecretStr
    from qdrant_client import QdrantClient

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Seconds for one call. A request of 4 MB takes well under one; a server that merges segments can take many.
TIMEOUT = 60
# Seconds that a change is tried for, and a question: who waits for the answer to a search does not wait for minutes.
PATIENCE = 120.0
READ_PATIENCE = 10.0
# Seconds that the first question is tried for: a server that never answered is more likely not there than restarting.
FIRST_PATIENCE = 2.0
_PROBE_TIMEOUT = 3.0
# Seconds after which a load over HTTP looks for gRPC again; twice as many each time, since a port that nobody may reach
# holds up a load for _PROBE_TIMEOUT.
_FIRST_GRPC_PAUSE = 60.0

_HTTP_PORT, _GRPC_PORT = 6333, 6334
# After a lost connection, gRPC waits up to two minutes by itself before it tries again, and fails every call
# meanwhile; our own patience would be over before that.
_GRPC_OPTIONS = {
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.min_reconnect_backoff_ms": 1_000,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # A line that swallows everything without ending would hold up every call until its timeout, and each try after it:
    # tried through a proxy, a load was lost after 70 s, and with these it goes on after as long as they say.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.http2.ping_timeout_ms": 20_000,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens. grpc_port is None where gRPC is not to be tried."""

    url: str
    host: str
    port: int
    grpc_port: int | None
    loopback: bool


def parse_address(url: str, *, has_key: bool, grpc_port: int | None = None, private_network: bool = False) -> Address:
    """The address that CITELOOM_QDRANT_URL names; port 6333 where it names none.

    gRPC is tried on `grpc_port`, or on 6334 where the URL's port is 6333: on any other port nobody knows what
    listens beside it. Raises SettingError for a URL that is none or that holds a password, and, unless the network is
    private, for one of another host that would be sent a key in the clear, or asked without any.
    """
    parts = split_url("CITELOOM_QDRANT_URL", url, "http://localhost:6333")
    if parts.username or parts.password:
        raise SettingError("CITELOOM_QDRANT_URL holds a name or password: put the key into CITELOOM_QDRANT_API_KEY")
    port, host = parts.port or _HTTP_PORT, parts.hostname or ""
    if not private_network and not is_loopback(host):
        _refuse_open(parts, has_key=has_key)
    beside = _GRPC_PORT if port == _HTTP_PORT else None
    return Address(url.rstrip("/"), host, port, grpc_port or beside, is_loopback(host))


def _refuse_open(parts: SplitResult, *, has_key: bool) -> None:
    """Raise SettingError for a server on another host that anybody may use, or who listens on the way could."""
    way_out = "or set CITELOOM_QDRANT_PRIVATE_NETWORK=true where nobody else reaches it"
    if not has_key:
        raise SettingError(
            f"CITELOOM_QDRANT_URL: {parts.hostname} would be asked without a key, so that whoever reaches it may read, "
            f"change and delete all that it holds: give the server a key, set CITELOOM_QDRANT_API_KEY and use https, "
            f"{way_out}"
        )
    refuse_key_over_http("CITELOOM_QDRANT_URL", parts, "CITELOOM_QDRANT_API_KEY", way_out)


class Connection:
    """One server. Connects on first use, again after `close`; threads may share it; every error names the URL."""

    def __init__(
        self,
        url: str,
        key: SecretStr | None,
        *,
        grpc_port: int | None,
        private_network: bool = False,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises SettingError for an address or a key that cannot be."""
        self.address = parse_address(url, has_key=key is not None, grpc_port=grpc_port, private_network=private_network)
        refuse_unsendable_key("CITELOOM_QDRANT_API_KEY", key)
        self.retries = Retries()
        self._key, self._patience, self._clock = key, patience, clock
        self._lock = Lock()
        self._client: QdrantClient | None = None
        self._before: QdrantClient | None = None
        self._channel: grpc.Channel | None = None
        self._web: httpx.Client | None = None
        self._warned = self._answered = False
        self._grpc_pause, self._grpc_due = _FIRST_GRPC_PAUSE, 0.0

    def ask(self, question: Callable[[QdrantClient], T], *, patient: bool = True) -> T:
        """What a question that changes nothing is answered; asked once unless `patient`."""
        longest = READ_PATIENCE if self._answered else FIRST_PATIENCE
        return self._ask(question, min(self._patience, longest) if patient else 0.0)

    def change(self, change: Callable[[QdrantClient], T]) -> T:
        """What a change that may be made twice is answered."""
        return self._ask(change, self._patience)

    def send(self, collection: str, message: Callable[[], bytes], body: Callable[[], bytes]) -> None:
        """Put points in, and return when the server says that they are: by an UpsertPoints message, or where gRPC
        cannot be reached, by the JSON of an upsert. Only the one that is needed is made."""
        self.change(lambda _: self._send(collection, message, body))

    def http(self, timeout: float) -> httpx.Client:
        """A client for what qdrant-client does not do, or does slowly."""
        import httpx

        headers = {} if self._key is None else {"api-key": self._key.get_secret_value()}
        base = httpx.URL(self.address.url).copy_with(port=self.address.port)
        return httpx.Client(base_url=base, headers=headers, timeout=timeout, trust_env=not self.address.loopback)

    @contextlib.contextmanager
    def files(self, timeout: float) -> Iterator[httpx.Client]:
        """A client for files, whose failures are explained; nothing is tried twice."""
        import httpx
        from qdrant_client.http.exceptions import ResponseHandlingException

        with self.explained(), self.http(timeout) as client:
            try:
                yield client
            except httpx.TransportError as error:
                raise ResponseHandlingException(error) from error

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            for each in (self._client, self._before, self._channel, self._web):
                if each is not None:
                    each.close()
            self._client = self._before = self._channel = self._web = None

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turns what qdrant-client raises into errors that name the URL and say what to do."""
        import grpc
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            yield
        except UnexpectedResponse as error:
            raise self.refusal(error.status_code or 0, error.content.decode(errors="replace")) from error
        except grpc.RpcError as error:
            raise self.refusal(http_status(error.code()), error.details() or str(error.code())) from error
        except ResourceExhaustedResponse as error:
            raise self.refusal(429, str(error)) from error
        except NotDone as error:
            raise self.refusal(504, str(error)) from error
        except ResponseHandlingException as error:
            if isinstance(error.source, ValueError):  # pydantic's, over JSON of another shape
                raise self._no_qdrant(error.source) from error
            raise self.refusal(0, str(error.source)) from error
        except (ValueError, AssertionError) as error:  # of JSON; qdrant-client asserts that there is a result
            raise self._no_qdrant(error) from error

    def refusal(self, status: int, detail: str) -> Exception:
        """The error for an answer of this HTTP status; 0 where none came."""
        url, detail = self.address.url, self._without_key(detail).strip()[:300]
        if status in (401, 403):
            given = "is refused" if self._key is not None else "is not set, and the server asks for one"
            return SettingError(f"{url}: CITELOOM_QDRANT_API_KEY {given} ({detail})")
        if status == 0:
            return TransientFailure(
                f"{url} does not answer ({detail}): start the Qdrant server, or correct CITELOOM_QDRANT_URL "
                f"(empty for Qdrant Edge)"
            )
        if status == 429 or status >= 500:
            return TransientFailure(f"{url} answered {status}: {detail}; run again when it has recovered")
        return PermanentFailure(f"{url} answered {status}: {detail}; is it a Qdrant server, 1.16 or newer?")

    def _ask(self, question: Callable[[QdrantClient], T], patience: float) -> T:
        with self.explained():
            answer = self.retries.ask(lambda: self._once(question), patience)
        self._answered = True
        return answer

    def _once(self, question: Callable[[QdrantClient], T]) -> T:
        client = self._connected()
        try:
            return question(client)
        except (ValueError, RuntimeError) as error:
            if client is self._client:
                raise
            # So grpc and httpx say that what they were to ask is closed.
            raise NotDone("the connection was closed meanwhile") from error

    def _no_qdrant(self, error: Exception) -> SettingError:
        said = " ".join(self._without_key(str(error)).split())[:200]
        return SettingError(
            f"what answers at {self.address.url} is no Qdrant server ({said}): correct CITELOOM_QDRANT_URL "
            f"(empty for Qdrant Edge)"
        )

    def _without_key(self, said: str) -> str:
        """What a server said, without the key, which some proxies repeat."""
        key = "" if self._key is None else self._key.get_secret_value()
        return said.replace(key, "…") if key else said

    def _connected(self) -> QdrantClient:
        with self._lock:
            if self._client is None:
                self._client = self._over_grpc() or self._over_http()
            return self._client

    def _over_grpc(self) -> QdrantClient | None:
        """A client that speaks gRPC, and a channel for what it does not send itself; None where HTTP must do."""
        port = self.address.grpc_port
        if port is None:
            return None
        if _listens(self.address.host, port):
            client = self._connect(grpc_port=port)
            if _answers(client):
                self._channel = self._open_channel(port)
                return client
            client.close()
        self._grpc_due = self._clock() + self._grpc_pause
        return None

    def _look_for_grpc_again(self) -> None:
        """A contact that was cut, or came while the server was starting, must not leave a long load on HTTP."""
        with self._lock:
            over_http = self._client is not None and self._channel is None and self.address.grpc_port is not None
            if not over_http or self._clock() < self._grpc_due:
                return
            self._grpc_pause *= 2
            client = self._over_grpc()
            if client is not None:  # the one before stays open, for other threads may be asking it
                self._client, self._before = client, self._client

    def _over_http(self) -> QdrantClient:
        client = self._connect(grpc_port=None)
        if self.address.grpc_port is not None:
            # Raises where nobody answers here either: HTTP must not be settled for while a server only restarts.
            client.get_aliases()
        self._web = self.http(TIMEOUT)
        return client

    def _connect(self, grpc_port: int | None) -> QdrantClient:
        from qdrant_client import QdrantClient

        with warnings.catch_warnings():
            # It warns of a key over http; parse_address has let that pass for loopback alone.
            warnings.simplefilter("ignore", UserWarning)
            return QdrantClient(
                url=self.address.url,
                port=self.address.port,
                grpc_port=grpc_port or _GRPC_PORT,
                prefer_grpc=grpc_port is not None,
                api_key=None if self._key is None else self._key.get_secret_value(),
                timeout=TIMEOUT,
                check_compatibility=False,  # it asks and warns; the tests hold 1.16.3 and this client together
                grpc_options=self._grpc_options(),
                trust_env=not self.address.loopback,  # a proxy has no business between two ends of one machine
            )

    def _open_channel(self, port: int) -> grpc.Channel:
        from qdrant_client.connection import get_channel

        metadata = [] if self._key is None else [("api-key", self._key.get_secret_value())]
        secure = self.address.url.startswith("https:")
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return get_channel(host, port, secure, metadata, self._grpc_options())

    def _grpc_options(self) -> dict[str, Any]:
        return _GRPC_OPTIONS | {"grpc.enable_http_proxy": 0 if self.address.loopback else 1}

    def _send(self, collection: str, message: Callable[[], bytes], body: Callable[[], bytes]) -> None:
        self._look_for_grpc_again()
        channel, web = self._channel, self._web  # both None where another thread closes the connection meanwhile
        if channel is not None:
            _send_message(channel, message())
        elif web is not None:
            self._warn_of_http()
            _send_body(web, collection, body())
        else:
            raise NotDone("the points are not sent: the connection was closed meanwhile")

    def _warn_of_http(self) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "points go to %s over HTTP; gRPC would take half of the time: where the server's gRPC port can "
                "be reached, give it as CITELOOM_QDRANT_GRPC_PORT",
                self.address.url,
            )


def _send_message(channel: grpc.Channel, message: bytes) -> None:
    from qdrant_client import grpc as messages

    upsert = channel.unary_unary(
        "/qdrant.Points/Upsert",
        request_serializer=None,  # the message is composed already
        response_deserializer=messages.PointsOperationResponse.FromString,
    )
    status = upsert(message, timeout=TIMEOUT).result.status
    if status != messages.UpdateStatus.Completed:
        raise NotDone(f"the points are {messages.UpdateStatus.Name(status)}, not completed")


def _send_body(web: httpx.Client, collection: str, body: bytes) -> None:
    import httpx
    from qdrant_client.http.exceptions import ResponseHandlingException

    path = f"collections/{quote(collection, safe='')}/points"
    try:
        response = web.put(path, params={"wait": "true"}, content=body, headers={"content-type": "application/json"})
    except httpx.TransportError as error:
        raise ResponseHandlingException(error) from error
    status = result_of(response).get("status")
    if status != "completed":
        raise NotDone(f"the points are {status}, not completed")


def result_of(response: httpx.Response) -> Any:
    """What a server answered over HTTP. Raises UnexpectedResponse, as qdrant-client does, where it refused, and
    ValueError where the answer is none of Qdrant's."""
    from qdrant_client.http.exceptions import UnexpectedResponse

    if response.status_code != 200:
        raise UnexpectedResponse.for_response(response)
    answer = response.json()
    if not isinstance(answer, dict) or "result" not in answer:
        raise ValueError(f"an answer without result: {response.text[:100]}")
    return answer["result"]


def is_absent(error: Exception) -> bool:
    """Whether the server says that what was asked for is not there."""
    import grpc
    from qdrant_client.http.exceptions import UnexpectedResponse

    if isinstance(error, grpc.RpcError):
        return bool(error.code() == grpc.StatusCode.NOT_FOUND)
    return isinstance(error, UnexpectedResponse) and error.status_code == 404


def insist_on_done(status: Any) -> None:
    """Raise NotDone where the result of a change (HTTP's or gRPC's converted) does not say that it is done."""
    from qdrant_client import models

    if status != models.UpdateStatus.COMPLETED:
        raise NotDone(f"the change is {status}, not completed")


def http_status(code: Any) -> int:
    """HTTP's word for a gRPC status; 0 where nobody answered, 400 for what only a change of the request helps."""
    return {
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "UNAVAILABLE": 0,
        "CANCELLED": 0,
        "UNKNOWN": 0,
        "DEADLINE_EXCEEDED": 504,
        "RESOURCE_EXHAUSTED": 429,
        "INTERNAL": 500,
        "ABORTED": 500,
        "NOT_FOUND": 404,
        "ALREADY_EXISTS": 409,
    }.get(code.name, 400)


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PROBE_TIMEOUT):
            return True
    except OSError:
        return False


def _answers(client: QdrantClient) -> bool:
    """Whether gRPC works there; a refusal is an answer, and comes again where it can be explained."""
    import grpc
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

    try:
        client.get_aliases()
    except ResourceExhaustedResponse:
        return True
    except grpc.RpcError as error:
        return error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED)
    return True
