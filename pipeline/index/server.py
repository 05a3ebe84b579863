"""Passages on a Qdrant server or cluster: one collection, and the collections of an alias.

A collection belongs to citeloom if its metadata says so: names prove nothing, since others may use
any.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.index.connection import PATIENCE, Connection, check_completed, is_missing
from pipeline.index.passage_index import (
    MOST_VALUES,
    Condition,
    Layout,
    PassageIndex,
    QueryVectors,
    Request,
    foreign_collection,
    of_month,
)
from pipeline.index.server_requests import (
    NEWER,
    Storage,
    filter_of,
    mark_of,
    new_collection,
    of_right_type,
    payload_indexes,
    point_structs,
    query_request,
)
from pipeline.retries import Clock

if TYPE_CHECKING:
    from pydantic import SecretStr
    from qdrant_client import QdrantClient, models

    from pipeline.index.batch import PointBatch

_log = logging.getLogger(__name__)

# 1, 2, 4 and 8 upserts at once loaded 7,200, 7,900, 8,100 and 4,800 points a second on two cores.
PARALLEL_UPSERTS = 4

# Kilobytes of vectors from which on a server builds a graph: Qdrant's own default. 0: never.
_INDEXING_THRESHOLD = 10_000
# If a load adds more than this share to a collection, the graph is built once at its end: building
# it again and again during the load costs several times as much.
BULK = 0.25


class ServerIndex(PassageIndex):
    """One collection of an alias."""

    page = 10_000  # an id and a digest each, 1 MB
    most_exact = 8  # one takes about a second of a core per million points

    def __init__(
        self,
        connection: Connection,
        name: str,
        alias: str,
        *,
        storage: Storage,
        in_flight: int = PARALLEL_UPSERTS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.in_flight = in_flight
        self.name, self.place = name, connection.address.url
        self._connection, self._alias, self._storage = connection, alias, storage
        self._sleep = sleep
        self._known_layout: Layout | None = None

    def layout(self) -> Layout | None:
        info = self._info()
        mark = None if info is None else mark_of(info.config.metadata)
        if info is not None and (mark is None or mark[0] != self._alias):
            raise PermanentFailure(foreign_collection(self.name, self.place))
        self._known_layout = None if mark is None else mark[1]
        return self._known_layout

    def create(self, layout: Layout) -> None:
        """As in the base class; adds payload indexes that a killed run did not create."""
        super().create(layout)
        if not self._connection.uses_grpc:
            _log.warning(
                "points go to %s over HTTP; gRPC takes less than half of the time: if the gRPC port"
                " can be reached, set CITELOOM_QDRANT_GRPC_PORT to it",
                self.place,
            )

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        where = filter_of([] if month is None else of_month(month))

        def count(client: QdrantClient) -> int:
            if not client.collection_exists(self.name):
                return 0
            return client.count(self.name, count_filter=where, exact=True).count

        return self._connection.read(count, retry=wait)

    def month_counts(self, *, wait: bool = True) -> dict[str, int]:
        def count(client: QdrantClient) -> dict[str, int]:
            if not client.collection_exists(self.name):
                return {}
            hits = client.facet(self.name, key="month", limit=MOST_VALUES, exact=True).hits
            return {str(hit.value): hit.count for hit in hits if hit.count}

        return self._connection.read(count, retry=wait)

    def values(self, field: str) -> list[str]:
        def values(client: QdrantClient) -> list[str]:
            if not client.collection_exists(self.name):
                return []
            return sorted(
                str(hit.value) for hit in client.facet(self.name, key=field, limit=MOST_VALUES).hits
            )

        return self._connection.read(values)

    def defer_indexing(self, new_points: int | None = None) -> None:
        if new_points is not None and new_points <= BULK * self.count():
            return
        self._configure_optimizer(0, self._storage.segments)

    def build_graph(self, *, wait: bool = False) -> None:
        """As in the base class; a server builds in the background. With `wait`, raises
        TransientFailure if the server reports that it failed.
        """
        info = self._info()
        if info is not None:
            self._start_optimizer(info)
        if wait:
            self._wait_for_graph()

    def close(self) -> None:
        """Close the connection, which the collections of an alias share; the next call opens it
        again.
        """
        self._connection.close()

    def _info(self) -> models.CollectionInfo | None:
        return self._connection.read(
            lambda client: (
                client.get_collection(self.name) if client.collection_exists(self.name) else None
            )
        )

    def _needed_layout(self) -> Layout:
        return self._known_layout or super()._needed_layout()  # the first costs no request

    def _create(self, layout: Layout) -> None:
        self._connection.write(partial(self._create_collection, layout))

    def _create_collection(self, layout: Layout, client: QdrantClient) -> None:
        import grpc
        from qdrant_client.http.exceptions import UnexpectedResponse

        if client.collection_exists(self.name):  # created by an earlier try whose answer was lost
            return
        oldest, version = NEWER.get(layout.quantization), client.info().version
        if oldest is not None and tuple(map(int, version.split(".")[:2])) < oldest:
            raise SettingError(
                f"CITELOOM_QDRANT_QUANTIZATION: {layout.quantization} needs Qdrant"
                f" {'.'.join(map(str, oldest))} or newer, and {self.place} is {version}: set int8"
            )
        try:
            client.create_collection(
                self.name, **new_collection(layout, self._alias, self._storage)
            )
        except (UnexpectedResponse, grpc.RpcError):
            # Otherwise another run created it in the meantime.
            if not client.collection_exists(self.name):
                raise

    def _create_payload_indexes(self) -> None:
        def create(client: QdrantClient) -> None:
            present = of_right_type(client.get_collection(self.name).payload_schema)
            for name, kind in payload_indexes(on_disk=self._storage.on_disk).items():
                if name not in present:
                    client.create_payload_index(
                        self.name, field_name=name, field_schema=kind, wait=True
                    )

        self._connection.write(create)

    def _indexed_fields(self) -> Any:
        return of_right_type(
            self._connection.read(lambda client: client.get_collection(self.name).payload_schema)
        )

    def _upsert(self, points: PointBatch) -> None:
        self._connection.write(
            lambda client: check_completed(
                client.upsert(self.name, point_structs(points), wait=True).status
            )
        )

    def _delete(self, ids: list[Any]) -> None:
        self._connection.write(
            lambda client: check_completed(
                client.delete(self.name, points_selector=ids, wait=True).status
            )
        )

    def _page(
        self, where: Sequence[Condition], fields: list[str], offset: Any
    ) -> tuple[Sequence[Any], Any]:
        return self._connection.read(
            lambda client: client.scroll(
                self.name,
                scroll_filter=filter_of(where),
                limit=self.page,
                offset=offset,
                with_payload=fields or False,
                with_vectors=False,
            )
        )

    def _query(self, searches: Sequence[tuple[QueryVectors, Request]]) -> Sequence[Sequence[Any]]:
        batch = [query_request(query, request) for query, request in searches]
        answers = self._connection.read(lambda client: client.query_batch_points(self.name, batch))
        return [answer.points for answer in answers]

    def _retrieve(self, ids: list[str]) -> Sequence[Any]:
        return self._connection.read(
            lambda client: client.retrieve(self.name, ids, with_payload=True)
        )

    def _configure_optimizer(self, threshold: int, segments: int) -> None:
        """threshold: kilobytes from which on a graph is built, 0: never. segments: 0: as the server
        decides.
        """
        from qdrant_client import models

        config = models.OptimizersConfigDiff(
            indexing_threshold=threshold, default_segment_number=segments
        )
        self._connection.write(
            lambda client: client.update_collection(self.name, optimizers_config=config)
        )

    def _start_optimizer(self, info: models.CollectionInfo) -> None:
        """Start the server's optimizer by setting its threshold to the value that it has: after a
        restart the status stays grey until a setting changes.
        """
        from qdrant_client import models

        optimizer = info.config.optimizer_config
        deferred = optimizer.indexing_threshold == 0 or optimizer.default_segment_number
        if deferred or info.status == models.CollectionStatus.GREY:
            self._configure_optimizer(optimizer.indexing_threshold or _INDEXING_THRESHOLD, 0)

    def _wait_for_graph(self) -> None:
        """Wait until the server has been green three times in a row.

        In three trials it was yellow from the first request to the end; two more looks cost a
        second, and outlast a moment of green between two steps.
        """
        from qdrant_client import models

        times_green = 0
        while times_green < 3 and (info := self._info()) is not None:
            error = getattr(info.optimizer_status, "error", None)
            if error is not None:
                raise TransientFailure(
                    f"the server cannot build the graph of {self.name} ({error}): fix the cause,"
                    " then run again"
                )
            times_green = times_green + 1 if info.status == models.CollectionStatus.GREEN else 0
            self._start_optimizer(info)
            self._sleep(0.5)


class ServerCollections:
    """The collections of an alias on the server at `url`; nothing is connected before the first
    call.

    in_flight: upserts at once. patience: seconds for which a write is retried. clock: for pauses
    between attempts.
    """

    engine: Literal["server"] = "server"

    def __init__(
        self,
        url: str,
        alias: str,
        api_key: SecretStr | None = None,
        *,
        grpc_port: int | None = None,
        private_network: bool = False,
        storage: Storage = Storage(),  # noqa: B008 - frozen
        in_flight: int = PARALLEL_UPSERTS,
        patience: float = PATIENCE,
        clock: Clock = Clock(),  # noqa: B008 - frozen
    ) -> None:
        self.connection = Connection(
            url,
            api_key,
            grpc_port=grpc_port,
            private_network=private_network,
            patience=patience,
            clock=clock,
        )
        self.alias, self._storage, self._in_flight = alias, storage, in_flight
        self.held_back: str | None = None
        self._indexes: dict[str, ServerIndex] = {}

    def live(self) -> str | None:
        """As in the protocol. Raises PermanentFailure if a collection has the alias's name."""
        return self.connection.read(self._alias_target)

    def names(self) -> list[str]:
        return self.connection.read(self._own_collections)

    def collection(self, name: str) -> ServerIndex:
        index = ServerIndex(
            self.connection, name, self.alias, storage=self._storage, in_flight=self._in_flight
        )
        return self._indexes.setdefault(name, index)  # atomic: threads share the indexes

    def make_live(self, name: str) -> None:
        """As in the protocol. Raises PermanentFailure if there is no such collection, or if the
        alias points to one that citeloom did not make.
        """
        if self.collection(name).layout() is None:
            raise PermanentFailure(
                f"{self.connection.address.url} has no collection {name}: run citeloom reindex"
            )
        live = self.live()
        if live is not None:
            self.collection(live).layout()  # raises if citeloom did not make it
        self.connection.write(partial(self._set_alias, name))

    def drop(self, name: str) -> None:
        """As in the protocol; nothing if there is no such collection. Raises PermanentFailure for a
        collection of another alias.
        """
        if name == self.live():
            raise SettingError(
                f"searches use the collection {name}: make another one live before you drop it"
            )
        if self.collection(name).layout() is not None:
            self.connection.write(lambda client: client.delete_collection(name))

    def close(self) -> None:
        self.connection.close()

    def _alias_target(self, client: QdrantClient) -> str | None:
        for alias in client.get_aliases().aliases:
            if alias.alias_name == self.alias:
                return alias.collection_name
        if client.collection_exists(self.alias):
            raise PermanentFailure(foreign_collection(self.alias, self.connection.address.url))
        return None

    def _own_collections(self, client: QdrantClient) -> list[str]:
        names = [collection.name for collection in client.get_collections().collections]
        marks = {name: _mark(client, name) for name in names}
        return sorted(
            name for name, mark in marks.items() if mark is not None and mark[0] == self.alias
        )

    def _set_alias(self, name: str, client: QdrantClient) -> None:
        """Point the alias to a collection, in one request; deleting an alias that does not exist is
        no error.
        """
        from qdrant_client import models

        delete = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.alias))
        create = models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=name, alias_name=self.alias)
        )
        client.update_collection_aliases([delete, create])


def _mark(client: QdrantClient, name: str) -> tuple[str, Layout] | None:
    """Alias and layout of a collection of citeloom's; None also if it was dropped since it was
    listed.
    """
    try:
        return mark_of(client.get_collection(name).config.metadata)
    except Exception as error:
        if is_missing(error):
            return None
        raise
