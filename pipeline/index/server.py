"""One collection on a Qdrant server or cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.errors import MissingInput, PermanentFailure, TransientFailure
from pipeline.index.batch import check_points, check_searches
from pipeline.index.connection import Connection, insist_on_done
from pipeline.index.layout import Layout
from pipeline.index.passage_index import (
    MOST_VALUES,
    Condition,
    Found,
    PointId,
    Query,
    Request,
    another_layout,
    best_first,
    none_of_ours,
    of_month,
)
from pipeline.index.server_requests import (
    Storage,
    filter_of,
    mark_of,
    new_collection,
    payload_indexes,
    query_request,
)
from pipeline.index.wire import upsert_body, upsert_message

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

    from pipeline.index.batch import PointBatch

_log = logging.getLogger(__name__)

# Points of one page of a listing: an id and a digest each, 1 MB.
_PAGE = 10_000
# Points that one call deletes, and queries that one call asks.
_MOST_DELETED, _MOST_QUERIES = 10_000, 64
# Queries that compare with every point: one takes about a second of a core for each million points.
_MOST_EXACT = 8

# Requests under way at once: 1, 2, 4 and 8 of them loaded 7,200, 7,900, 8,100 and 4,800 points a second on two cores.
_IN_FLIGHT = 4

# Kilobytes of vectors from which on a server builds a graph: Qdrant's own default. 0 is for never.
_INDEXING_THRESHOLD = 10_000
# While a graph is built, nothing tells how far it is: vectors count as indexed as soon as the server begins with them.
# 100,000 points of 1,024 dimensions took 143 s on two busy cores, 700 a second; a server is given seven times as long.
_SLOWEST_POINTS_PER_SECOND = 100
_LEAST_PATIENCE = 600.0
_TOLD_EVERY = 30.0


class ServerIndex:
    """One collection of an alias. Threads may share it."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        alias: str,
        *,
        storage: Storage,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection, self._name, self._alias, self._storage = connection, name, alias, storage
        self._pause = pause
        self._known: Layout | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def in_flight(self) -> int:
        return _IN_FLIGHT

    @property
    def retries(self) -> int:
        """How often anything was asked again, over this collection's connection."""
        return self._connection.retries.count

    def layout(self) -> Layout | None:
        info = self._info()
        mark = None if info is None else mark_of(info.config.metadata)
        if info is not None and (mark is None or mark[0] != self._alias):
            raise PermanentFailure(none_of_ours(self._name, self._connection.address.url))
        self._known = None if mark is None else mark[1]
        return self._known

    def create(self, layout: Layout) -> None:
        """As the protocol says; makes up for payload indexes that a killed run did not come to."""
        found = self.layout()
        if found is None:
            self._connection.change(lambda client: self._make(client, layout))
            found = self.layout()
        if found is not None and found != layout:
            raise PermanentFailure(another_layout(self._name, found, layout))
        self._connection.change(self._make_payload_indexes)

    def upsert(self, points: PointBatch) -> None:
        """As the protocol says. Raises PermanentFailure for points that `check_points` refuses; none are sent then."""
        layout = self._known or self.layout()
        if layout is not None:
            check_points(points, layout)
        for part in points.split():
            self._connection.send(self._name, partial(upsert_message, self._name, part), partial(upsert_body, part))

    def delete(self, ids: Sequence[PointId]) -> None:
        for start in range(0, len(ids), _MOST_DELETED):
            self._connection.change(partial(self._delete, ids[start : start + _MOST_DELETED]))

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        for record in self._scroll(filter_of(of_month(month)), ["digest"]):
            digest = (record.payload or {}).get("digest")
            yield _identifier(record), None if digest is None else str(digest)

    def outside(self, months: Sequence[str]) -> Iterator[PointId]:
        where = filter_of([Condition("month", tuple(months), negated=True)] if months else [])
        for record in self._scroll(where, False):
            yield _identifier(record)

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        where = filter_of([] if month is None else of_month(month))

        def counted(client: QdrantClient) -> int:
            if not client.collection_exists(self._name):
                return 0
            return client.count(self._name, count_filter=where, exact=True).count

        return self._connection.ask(counted, patient=wait)

    def values(self, field: str) -> list[str]:
        def listed(client: QdrantClient) -> list[str]:
            if not client.collection_exists(self._name):
                return []
            return sorted(str(hit.value) for hit in client.facet(self._name, key=field, limit=MOST_VALUES).hits)

        return self._connection.ask(listed)

    def search(self, searches: Sequence[tuple[Query, Request]]) -> list[list[Found]]:
        layout = self._known or self.layout()
        if layout is None:
            raise MissingInput(
                f"{self._connection.address.url} has no collection {self._name}: "
                f"run citeloom run --months all --until index_receipts"
            )
        check_searches(searches, layout)
        found: list[list[Found]] = []
        most = _MOST_EXACT if any(request.exact for _, request in searches) else _MOST_QUERIES
        for start in range(0, len(searches), most):
            part = searches[start : start + most]
            batch = [query_request(query, request, layout) for query, request in part]
            answers = self._connection.ask(partial(self._query, batch))
            for (_, request), answer in zip(part, answers, strict=True):
                found.append(best_first([_found(point) for point in answer.points], request.limit))
        return found

    def defer_indexing(self) -> None:
        self._set_optimizer(0, self._storage.segments)

    def settle(self, *, wait: bool = False) -> None:
        """As the protocol says; a server builds behind the loads, once it may. Raises TransientFailure where it says
        that it failed, or shows no progress for long."""
        info = self._info()
        if info is not None:
            self._wake(info)
        if wait:
            self._wait_until_built()

    def close(self) -> None:
        """Let go of the connection, which the collections of an alias share; the next call opens it again."""
        self._connection.close()

    def _info(self) -> models.CollectionInfo | None:
        def asked(client: QdrantClient) -> models.CollectionInfo | None:
            return client.get_collection(self._name) if client.collection_exists(self._name) else None

        return self._connection.ask(asked)

    def _make(self, client: QdrantClient, layout: Layout) -> None:
        import grpc
        from qdrant_client.http.exceptions import UnexpectedResponse

        if client.collection_exists(self._name):  # made by the try before this one, whose answer was lost
            return
        try:
            client.create_collection(self._name, **new_collection(layout, self._alias, self._storage))
        except (UnexpectedResponse, grpc.RpcError):
            if not client.collection_exists(self._name):  # else another run made it meanwhile
                raise

    def _make_payload_indexes(self, client: QdrantClient) -> None:
        present = client.get_collection(self._name).payload_schema
        for name, kind in payload_indexes().items():
            if name not in present:
                client.create_payload_index(self._name, field_name=name, field_schema=kind, wait=True)

    def _delete(self, ids: Sequence[PointId], client: QdrantClient) -> None:
        insist_on_done(client.delete(self._name, points_selector=list(ids), wait=True).status)

    def _query(self, queries: Sequence[models.QueryRequest], client: QdrantClient) -> list[models.QueryResponse]:
        return client.query_batch_points(self._name, queries)

    def _scroll(self, where: models.Filter | None, fields: list[str] | bool) -> Iterator[models.Record]:
        """Records page by page; none where there is no collection."""
        if not self._connection.ask(lambda client: client.collection_exists(self._name)):
            return
        page = partial(self._page, where, fields)
        records, after = self._connection.ask(partial(page, None))
        yield from records
        while after is not None:
            records, after = self._connection.ask(partial(page, after))
            yield from records

    def _page(
        self, where: models.Filter | None, fields: list[str] | bool, after: Any, client: QdrantClient
    ) -> tuple[list[models.Record], Any]:
        return client.scroll(
            self._name, scroll_filter=where, limit=_PAGE, offset=after, with_payload=fields, with_vectors=False
        )

    def _set_optimizer(self, threshold: int, segments: int) -> None:
        """threshold: kilobytes from which on a graph is built, 0 for never. segments: 0 for what the server likes."""
        from qdrant_client import models

        config = models.OptimizersConfigDiff(indexing_threshold=threshold, default_segment_number=segments)
        self._connection.change(lambda client: client.update_collection(self._name, optimizers_config=config))

    def _wake(self, info: models.CollectionInfo) -> None:
        """Let the server build what it was told to defer. After a restart it is grey until something changes, hence
        its threshold is set to what it is."""
        from qdrant_client import models

        optimizer = info.config.optimizer_config
        loading = optimizer.indexing_threshold == 0 or optimizer.default_segment_number
        if loading or info.status == models.CollectionStatus.GREY:
            self._set_optimizer(optimizer.indexing_threshold or _INDEXING_THRESHOLD, 0)

    def _wait_until_built(self) -> None:
        building = Building(self._name)
        while (info := self._info()) is not None and not building.over(info):
            self._pause(0.5)
            self._wake(info)


class Building:
    """Whether a collection is built, from what the server says of it time after time."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._begun = self._moved = self._told = clock()
        self._seen: tuple[object, ...] = ()
        self._green = 0

    def over(self, info: models.CollectionInfo) -> bool:
        """True when it is built. Raises TransientFailure where that failed, or nothing has moved for long."""
        from qdrant_client import models

        self._insist_on_success(info)
        self._insist_on_progress(info)
        # In three trials a server was yellow from its being told to begin until it was done; two looks more cost a
        # second, and would outlast a moment of green between two steps.
        self._green = self._green + 1 if info.status == models.CollectionStatus.GREEN else 0
        return self._green >= 3

    def _insist_on_success(self, info: models.CollectionInfo) -> None:
        error = getattr(info.optimizer_status, "error", None)
        if error is not None:
            raise TransientFailure(
                f"the server cannot build the graph of {self._name} ({error}): mend that, then run again"
            )

    def _insist_on_progress(self, info: models.CollectionInfo) -> None:
        now = self._clock()
        seen = (info.status, info.indexed_vectors_count, info.segments_count, info.points_count)
        if seen != self._seen:
            self._seen, self._moved = seen, now
        patience = _LEAST_PATIENCE + (info.points_count or 0) / _SLOWEST_POINTS_PER_SECOND
        if now - self._moved > patience:
            raise TransientFailure(
                f"the server has shown no progress in building {self._name} for {patience:.0f} s: see its log"
            )
        if now - self._told >= _TOLD_EVERY:
            self._told = now
            self._tell(info)

    def _tell(self, info: models.CollectionInfo) -> None:
        _log.info(
            "the server has been building the graph of %s for %.0f s (%s points, %s segments)",
            self._name,
            self._clock() - self._begun,
            info.points_count,
            info.segments_count,
        )


def _identifier(record: models.Record) -> PointId:
    return record.id if isinstance(record.id, int) else str(record.id)


def _found(point: models.ScoredPoint) -> Found:
    return Found(str(point.id), point.score, point.payload or {})
