"""Connection to a Qdrant server or cluster: its address, gRPC or HTTP, retries, and errors that say
what to do.

API: qdrant-client 1.20.
"""

from __future__ import annotations

import contextlib
import socket
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult

from pipeline.errors import PermanentFailure, SettingError, TransientFailure, require_packages
from pipeline.retries import Clock, Retries, read_retry_after
from pipeline.settings.urls import (
    is_loopback,
    refuse_key_over_http,
    refuse_unsendable_key,
    split_url,
)
from pipeline.text import one_line

if TYPE_CHECKING:
    import httpx2
    from pydantic import SecretStr
    from qdrant_client import QdrantClient

T = TypeVar("T")

# Seconds for one call. A request of 4 MB takes well under one; a server that merges segments can
# take many.
TIMEOUT = 60
# Seconds for which a write is retried, and a read: a user who searches does not wait for minutes.
PATIENCE = 120.0
READ_PATIENCE = 10.0
# Seconds for which the first read is retried: a server that has never answered is more likely
# absent than restarting.
FIRST_READ_PATIENCE = 2.0
# The first pause before a retry is at most FIRST_PAUSE seconds, and the bound doubles up to
# LONGEST_PAUSE.
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 15.0

_HTTP_PORT, _GRPC_PORT = 6333, 6334
_PROBE_TIMEOUT = 3.0
_GRPC_OPTIONS = {
    # After a lost connection, gRPC waits up to two minutes before it reconnects, and fails every
    # call meanwhile; our own patience would be over before that.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.min_reconnect_backoff_ms": 1_000,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # A connection that drops every packet and never closes would block each call until its timeout:
    # behind such a proxy a load failed after 70 s. With these options it continues on a new
    # connection after 10 to 30 s.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.http2.ping_timeout_ms": 20_000,
}

# gRPC status to the HTTP status of the same meaning; 0: nobody answered. The rest are 400: only
# another request helps.
_HTTP_STATUS = {
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
}


class NotCompleted(Exception):
    """The server accepted a write and did not confirm that it is completed. Repeating it does no
    harm.
    """


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens. grpc_port: None if gRPC is not to be tried."""

    url: str
    host: str
    port: int
    grpc_port: int | None
    loopback: bool


def parse_address(
    url: str, *, has_key: bool, grpc_port: int | None = None, private_network: bool = False
) -> Address:
    """The address in CITELOOM_QDRANT_URL; port 6333 by default.

    gRPC is tried on `grpc_port`, or on 6334 if the URL's port is 6333: beside any other port, the
    port of gRPC is unknown. Raises SettingError for an invalid URL, for a URL with a password, and,
    unless the network is private, for a server on another host that is used without a key or would
    receive the key unencrypted.
    """
    parts = split_url("CITELOOM_QDRANT_URL", url, "http://localhost:6333")
    if parts.username or parts.password:
        raise SettingError(
            "CITELOOM_QDRANT_URL holds a name or password: put the key into CITELOOM_QDRANT_API_KEY"
        )
    port, host = parts.port or _HTTP_PORT, parts.hostname or ""
    if not private_network and not is_loopback(host):
        _refuse_insecure(parts, has_key=has_key)
    default_grpc_port = _GRPC_PORT if port == _HTTP_PORT else None
    return Address(url.rstrip("/"), host, port, grpc_port or default_grpc_port, is_loopback(host))


def _refuse_insecure(parts: SplitResult, *, has_key: bool) -> None:
    """Raise SettingError for a server on another host that is open to everybody, or whose key could
    be read in transit.
    """
    alternative = "or set CITELOOM_QDRANT_PRIVATE_NETWORK=true if nobody else can reach it"
    if not has_key:
        raise SettingError(
            f"CITELOOM_QDRANT_URL: {parts.hostname} would be used without a key, so that everybody"
            " who reaches it can read, change and delete all that it holds: give the server a key,"
            f" set CITELOOM_QDRANT_API_KEY and use https, {alternative}"
        )
    refuse_key_over_http("CITELOOM_QDRANT_URL", parts, "CITELOOM_QDRANT_API_KEY", alternative)


class Connection:
    """One server. Connects on first use, and again after `close`; thread-safe; every error names
    the URL.
    """

    def __init__(
        self,
        url: str,
        key: SecretStr | None,
        *,
        grpc_port: int | None,
        private_network: bool = False,
        patience: float = PATIENCE,
        clock: Clock = Clock(),  # noqa: B008 - frozen
    ) -> None:
        """Raises SettingError for an invalid address or key."""
        require_packages("CITELOOM_QDRANT_URL", "server", "qdrant_client")
        self.address = parse_address(
            url, has_key=key is not None, grpc_port=grpc_port, private_network=private_network
        )
        refuse_unsendable_key("CITELOOM_QDRANT_API_KEY", key)
        self._key, self._patience, self._clock = key, patience, clock
        self.uses_grpc = False
        """Whether the connection opened last uses gRPC."""
        self._lock = Lock()
        self._client: QdrantClient | None = None
        self._has_answered = False

    def read(self, call: Callable[[QdrantClient], T], *, retry: bool = True) -> T:
        """Make a read-only call. Raises SettingError, TransientFailure or PermanentFailure, which
        name the URL.
        """
        patience = READ_PATIENCE if self._has_answered else FIRST_READ_PATIENCE
        return self._call(call, min(self._patience, patience) if retry else 0.0)

    def write(self, call: Callable[[QdrantClient], T]) -> T:
        """Make an idempotent write; it may run more than once. Raises as `read` does."""
        return self._call(call, self._patience)

    def http_client(self, timeout: float) -> httpx2.Client:
        """A client for requests that qdrant-client does not offer. timeout: seconds."""
        import httpx2

        headers = {} if self._key is None else {"api-key": self._key.get_secret_value()}
        base = httpx2.URL(self.address.url).copy_with(port=self.address.port)
        return httpx2.Client(
            base_url=base, headers=headers, timeout=timeout, trust_env=not self.address.loopback
        )

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None

    @contextlib.contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Replace exceptions of qdrant-client and httpx2 by errors that name the URL and say what
        to do.
        """
        import grpc
        import httpx2
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            yield
        except UnexpectedResponse as error:
            raise self._error(
                error.status_code or 0, error.content.decode(errors="replace")
            ) from error
        except grpc.RpcError as error:
            status = _HTTP_STATUS.get(error.code().name, 400)
            raise self._error(status, error.details() or str(error.code())) from error
        except ResourceExhaustedResponse as error:
            raise self._error(429, str(error)) from error
        except NotCompleted as error:
            raise self._error(504, str(error)) from error
        except httpx2.HTTPStatusError as error:
            raise self._error(error.response.status_code, error.response.text) from error
        except httpx2.TransportError as error:
            raise self._error(0, str(error)) from error
        except ResponseHandlingException as error:
            if isinstance(error.source, ValueError):  # pydantic's, for JSON of another shape
                raise self._not_qdrant(error.source) from error
            raise self._error(0, str(error.source)) from error
        # Broken JSON; qdrant-client asserts that there is a result.
        except (ValueError, AssertionError) as error:
            raise self._not_qdrant(error) from error

    def _call(self, call: Callable[[QdrantClient], T], patience: float) -> T:
        """Call, and repeat the call after transient errors for about `patience` seconds; 0: call
        once.
        """
        retries = Retries(
            _requested_pause,
            FIRST_PAUSE,
            LONGEST_PAUSE,
            jitter=True,
            patience=patience,
            clock=self._clock,
        )
        result = retries.call(lambda: self._call_once(call))
        self._has_answered = True
        return result

    def _call_once(self, call: Callable[[QdrantClient], T]) -> T:
        with self.translate_errors():
            client = self._connect()
            try:
                return call(client)
            except (ValueError, RuntimeError) as error:
                if client is self._client:
                    raise
                # grpc and httpx raise these for a closed client.
                raise NotCompleted(
                    "another thread closed the connection during the call"
                ) from error

    def _connect(self) -> QdrantClient:
        with self._lock:
            if self._client is None:
                client = self._open_grpc()
                self.uses_grpc = client is not None
                self._client = client or self._open_http()
            return self._client

    def _open_grpc(self) -> QdrantClient | None:
        """A client that uses gRPC; None if the server's port is unknown, unreachable or of another
        protocol.
        """
        import grpc
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

        port = self.address.grpc_port
        if port is None or not _accepts_connections(self.address.host, port):
            return None
        client = self._open(grpc_port=port)
        try:
            client.get_aliases()
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED):
                client.close()
                return None
            # Any other refusal is an answer of gRPC; the call that follows meets it too, and
            # reports it.
        except ResourceExhaustedResponse:
            pass
        return client

    def _open_http(self) -> QdrantClient:
        client = self._open(grpc_port=None)
        if self.address.grpc_port is not None:
            # Raises if HTTP does not answer either: the server may be restarting, and gRPC may be
            # back in a moment.
            client.get_aliases()
        return client

    def _open(self, grpc_port: int | None) -> QdrantClient:
        from qdrant_client import QdrantClient

        # HTTP proxies are not used between two processes of one machine.
        loopback = self.address.loopback
        with warnings.catch_warnings():
            # It warns of a key over http, which parse_address allows only on loopback and in a
            # private network.
            warnings.simplefilter("ignore", UserWarning)
            return QdrantClient(
                url=self.address.url,
                port=self.address.port,
                grpc_port=grpc_port or _GRPC_PORT,
                prefer_grpc=grpc_port is not None,
                api_key=None if self._key is None else self._key.get_secret_value(),
                timeout=TIMEOUT,
                check_compatibility=False,  # costs a request; citeloom doctor checks the versions
                grpc_options=_GRPC_OPTIONS | {"grpc.enable_http_proxy": 0 if loopback else 1},
                trust_env=not loopback,
            )

    def _error(self, status: int, detail: str) -> Exception:
        """The error for an answer with this HTTP status; 0: no answer."""
        url, detail = self.address.url, self._without_key(detail).strip()[:300]
        if status in (401, 403):
            fault = (
                "is refused" if self._key is not None else "is not set, and the server asks for one"
            )
            return SettingError(f"{url}: CITELOOM_QDRANT_API_KEY {fault} ({detail})")
        if status == 0:
            return TransientFailure(
                f"{url} does not answer ({detail}): start the Qdrant server, or correct"
                " CITELOOM_QDRANT_URL (empty for Qdrant Edge)"
            )
        # The request arrived incomplete.
        incomplete = status == 400 and "EOF while parsing" in detail
        if status == 429 or status >= 500 or incomplete:
            return TransientFailure(
                f"{url} answered {status}: {detail}; run again when it has recovered"
            )
        return PermanentFailure(
            f"{url} answered {status}: {detail}; is it a Qdrant server, 1.16 or newer?"
        )

    def _not_qdrant(self, error: Exception) -> SettingError:
        detail = one_line(self._without_key(str(error)))[:200]
        return SettingError(
            f"{self.address.url} is not a Qdrant server ({detail}): correct CITELOOM_QDRANT_URL"
            " (empty for Qdrant Edge)"
        )

    def _without_key(self, text: str) -> str:
        """A server's answer without the key, which some proxies repeat."""
        key = "" if self._key is None else self._key.get_secret_value()
        return text.replace(key, "…") if key else text


def is_missing(error: Exception) -> bool:
    """Whether the server says that the resource does not exist."""
    import grpc
    from qdrant_client.http.exceptions import UnexpectedResponse

    if isinstance(error, grpc.RpcError):
        return bool(error.code() == grpc.StatusCode.NOT_FOUND)
    return isinstance(error, UnexpectedResponse) and error.status_code == 404


def check_completed(status: Any) -> None:
    """Raise NotCompleted unless the status of a write, as qdrant-client returns it, is
    completed.
    """
    from qdrant_client import models

    if status != models.UpdateStatus.COMPLETED:
        raise NotCompleted(f"the write is {status}, not completed")


def _requested_pause(error: BaseException) -> float | None:
    """Seconds that the server's header Retry-After asks to wait, 0 without one; None for an error
    that is not transient.
    """
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import UnexpectedResponse

    if not isinstance(error, TransientFailure):
        return None
    cause = error.__cause__
    if isinstance(cause, ResourceExhaustedResponse):
        return max(0.0, float(cause.retry_after_s))
    if isinstance(cause, UnexpectedResponse):
        return read_retry_after(cause.headers.get("retry-after")) or 0.0
    return 0.0


def _accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PROBE_TIMEOUT):
            return True
    except OSError:
        return False
