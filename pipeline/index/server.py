"""A Qdrant server or cluster, through qdrant-client: gRPC where it can be reached, else HTTP.

Needs Qdrant 1.16 or newer (reciprocal rank fusion with a constant of one's own). API: qdrant-client 1.20.
Not here: which collection and URL (settings), and when a connection is opened and let go (`opening`).
"""

from __future__ import annotations

import contextlib
import socket
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pipeline.addresses import is_loopback, refuse_key_in_the_clear, split_url
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.index.passage_index import (
    DENSE,
    INTEGERS,
    KEYWORDS,
    MOST_VALUES,
    RRF_K,
    SPARSE,
    Condition,
    Found,
    Layout,
    Point,
    Restriction,
    batched,
    best_first,
    candidates,
    collection_differs,
    of_month,
)

if TYPE_CHECKING:
    from pydantic import SecretStr
    from qdrant_client import QdrantClient, models

# Seconds for one call. A batch of 256 points takes well under one; a server that merges segments can take many.
_TIMEOUT = 60
_PROBE_TIMEOUT = 3.0
_PAGE = 5_000

_HTTP_PORT, _GRPC_PORT = 6333, 6334


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens. grpc_port is None where gRPC is not to be tried."""

    url: str
    host: str
    port: int
    grpc_port: int | None
    loopback: bool


def parse_address(url: str, *, has_key: bool, grpc_port: int | None = None) -> Address:
    """The address that CITELOOM_QDRANT_URL names; port 6333 where it names none.

    gRPC is tried on `grpc_port`, or on 6334 where the URL's port is 6333: on any other port nobody knows what
    listens beside it. Raises SettingError for a URL that is none, that holds a password, or that would send a key in
    the clear to another host.
    """
    parts = split_url("CITELOOM_QDRANT_URL", url, "http://localhost:6333")
    if parts.username or parts.password:
        raise SettingError("CITELOOM_QDRANT_URL holds a name or password: put the key into CITELOOM_QDRANT_API_KEY")
    port, host = parts.port or _HTTP_PORT, parts.hostname or ""
    if has_key:
        refuse_key_in_the_clear("CITELOOM_QDRANT_URL", parts, "CITELOOM_QDRANT_API_KEY")
    beside = _GRPC_PORT if port == _HTTP_PORT else None
    return Address(url.rstrip("/"), host, port, grpc_port or beside, is_loopback(host))


class ServerIndex:
    """The collection on a server. Connects on first use; every error names the URL."""

    engine: Literal["server"] = "server"

    def __init__(
        self, url: str, collection: str, api_key: SecretStr | None = None, *, grpc_port: int | None = None
    ) -> None:
        self._address = parse_address(url, has_key=api_key is not None, grpc_port=grpc_port)
        self._name, self._key = collection, api_key

    def layout(self) -> Layout | None:
        with self._explained():
            if not self._client.collection_exists(self._name):
                return None
            return self._layout_of(self._client.get_collection(self._name).config.params)

    def ensure_collection(self, layout: Layout) -> None:
        """As the protocol says; makes up for payload indexes that a killed run did not come to."""
        found = self.layout()
        if found is None:
            self._create(layout)
            found = self.layout()
        if found is not None and found != layout:
            raise PermanentFailure(collection_differs(self._name, found, layout))
        self._ensure_payload_indexes()

    def upsert(self, points: Sequence[Point]) -> None:
        with self._explained():
            for batch in batched(points):
                self._client.upsert(self._name, points=_columns(batch), wait=True)

    def delete(self, passage_ids: Sequence[str]) -> None:
        with self._explained():
            for batch in batched(passage_ids):
                self._client.delete(self._name, points_selector=list(batch), wait=True)

    def ids_of_month(self, month: str) -> dict[str, str]:
        with self._explained():
            return {str(record.id): record.payload["digest"] for record in self._scroll(of_month(month), ["digest"])}

    def count(self, month: str, *, wait: bool = True) -> int:
        with self._explained():
            if not self._client.collection_exists(self._name):
                return 0
            return self._client.count(self._name, count_filter=_filter(of_month(month)), exact=True).count

    def models(self) -> list[str]:
        return self.values("model")

    def values(self, field: str) -> list[str]:
        with self._explained():
            if not self._client.collection_exists(self._name):
                return []
            return sorted(str(hit.value) for hit in self._client.facet(self._name, key=field, limit=MOST_VALUES).hits)

    def search(
        self,
        dense: Sequence[float],
        sparse_ids: Sequence[int],
        sparse_weights: Sequence[float],
        *,
        limit: int,
        restriction: Restriction,
    ) -> list[Found]:
        from qdrant_client import models

        where, most = _filter(restriction.conditions()), candidates(limit)
        sparse = models.SparseVector(indices=list(sparse_ids), values=list(sparse_weights))
        prefetch = [
            models.Prefetch(query=list(dense), using=DENSE, filter=where, limit=most),
            models.Prefetch(query=sparse, using=SPARSE, filter=where, limit=most),
        ]
        fusion = models.RrfQuery(rrf=models.Rrf(k=RRF_K))
        with self._explained():
            points = self._client.query_points(self._name, prefetch=prefetch, query=fusion, limit=most).points
        return best_first([Found(str(point.id), point.score, point.payload or {}) for point in points], limit)

    def settle(self) -> None:
        """Nothing: a server optimizes by itself, behind the loads."""

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()
            del self._client

    def _layout_of(self, params: Any) -> Layout:
        from qdrant_client import models

        dense = params.vectors.get(DENSE) if isinstance(params.vectors, dict) else None
        sparse = (params.sparse_vectors or {}).get(SPARSE)
        if dense is None or sparse is None:
            raise PermanentFailure(
                f"the collection {self._name} of {self._address.url} has no vectors {DENSE} and {SPARSE}: it is none "
                f"of citeloom's; set CITELOOM_QDRANT_COLLECTION to another name"
            )
        return Layout(dense.size, sparse.modifier == models.Modifier.IDF)

    def _create(self, layout: Layout) -> None:
        import grpc
        from qdrant_client import models
        from qdrant_client.http.exceptions import UnexpectedResponse

        dense = models.VectorParams(size=layout.dimensions, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF if layout.sparse_idf else None)
        vectors, sparse_vectors = {DENSE: dense}, {SPARSE: sparse}
        with self._explained():
            try:
                self._client.create_collection(self._name, vectors, sparse_vectors_config=sparse_vectors)
            except (UnexpectedResponse, grpc.RpcError):
                if not self._client.collection_exists(self._name):  # else another run made it meanwhile
                    raise

    def _ensure_payload_indexes(self) -> None:
        from qdrant_client import models

        wanted = dict.fromkeys(KEYWORDS, models.PayloadSchemaType.KEYWORD)
        wanted |= dict.fromkeys(INTEGERS, models.PayloadSchemaType.INTEGER)
        with self._explained():
            present = self._client.get_collection(self._name).payload_schema
            for name, kind in wanted.items():
                if name not in present:
                    self._client.create_payload_index(self._name, field_name=name, field_schema=kind, wait=True)

    def _scroll(self, conditions: list[Condition], fields: list[str]) -> Iterator[Any]:
        offset = None
        while True:
            records, offset = self._client.scroll(
                self._name,
                scroll_filter=_filter(conditions),
                limit=_PAGE,
                offset=offset,
                with_payload=fields,
                with_vectors=False,
            )
            yield from records
            if offset is None:
                return

    @cached_property
    def _client(self) -> QdrantClient:
        port = self._address.grpc_port
        if port is not None and _listens(self._address.host, port):
            client = self._connect(grpc_port=port)
            if _answers(client, self._name):
                return client
            client.close()
        return self._connect(grpc_port=None)

    def _connect(self, grpc_port: int | None) -> QdrantClient:
        from qdrant_client import QdrantClient

        key = None if self._key is None else self._key.get_secret_value()
        with warnings.catch_warnings():
            # It warns of a key over http; parse_address has let that pass for loopback alone.
            warnings.simplefilter("ignore", UserWarning)
            return QdrantClient(
                url=self._address.url,
                port=self._address.port,
                grpc_port=grpc_port or _GRPC_PORT,
                prefer_grpc=grpc_port is not None,
                api_key=key,
                timeout=_TIMEOUT,
                check_compatibility=False,  # it asks and warns; the tests hold 1.16.3 and this client together
                grpc_options={"grpc.enable_http_proxy": 0 if self._address.loopback else 1},
                trust_env=not self._address.loopback,  # a proxy has no business between two ends of one machine
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what qdrant-client raises into errors that name the URL and say what to do."""
        import grpc
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            yield
        except UnexpectedResponse as error:
            raise self._refusal(error.status_code or 0, error.content.decode(errors="replace")) from error
        except grpc.RpcError as error:
            raise self._refusal(_http_status(error.code()), error.details() or str(error.code())) from error
        except ResourceExhaustedResponse as error:
            raise self._refusal(429, str(error)) from error
        except ResponseHandlingException as error:
            if isinstance(error.source, ValueError):  # pydantic's, over JSON of another shape
                raise self._no_qdrant(error.source) from error
            raise self._refusal(0, str(error.source)) from error
        except (ValueError, AssertionError) as error:  # of JSON; qdrant-client asserts that there is a result
            raise self._no_qdrant(error) from error

    def _no_qdrant(self, error: Exception) -> SettingError:
        said = " ".join(str(error).split())[:200]
        return SettingError(
            f"what answers at {self._address.url} is no Qdrant server ({said}): correct CITELOOM_QDRANT_URL "
            f"(empty for Qdrant Edge)"
        )

    def _refusal(self, status: int, detail: str) -> Exception:
        url, detail = self._address.url, detail.strip()[:300]
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


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PROBE_TIMEOUT):
            return True
    except OSError:
        return False


def _answers(client: QdrantClient, collection: str) -> bool:
    """Whether gRPC works there; a refusal is an answer, and comes again where it can be explained."""
    import grpc

    try:
        client.collection_exists(collection)
    except grpc.RpcError as error:
        return error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED)
    return True


def _http_status(code: Any) -> int:
    """HTTP's word for a gRPC status; 0 where nobody answered, 400 for what only a change of the request helps."""
    return {
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "UNAVAILABLE": 0,
        "DEADLINE_EXCEEDED": 504,
        "RESOURCE_EXHAUSTED": 429,
        "INTERNAL": 500,
        "ABORTED": 500,
        "NOT_FOUND": 404,
        "ALREADY_EXISTS": 409,
    }.get(code.name, 400)


def _columns(points: Sequence[Point]) -> models.Batch:
    from qdrant_client import models

    return models.Batch(
        ids=[point.passage_id for point in points],
        vectors={
            DENSE: [point.dense for point in points],
            SPARSE: [models.SparseVector(indices=point.sparse_ids, values=point.sparse_weights) for point in points],
        },
        payloads=[dict(point.payload) for point in points],
    )


def _filter(conditions: list[Condition]) -> models.Filter:
    from qdrant_client import models

    return models.Filter(must=[_condition(condition) for condition in conditions])


def _condition(condition: Condition) -> models.FieldCondition:
    from qdrant_client import models

    if condition.values:
        return models.FieldCondition(key=condition.field, match=models.MatchAny(any=list(condition.values)))
    return models.FieldCondition(key=condition.field, range=models.Range(gte=condition.low, lte=condition.high))
