"""The collections of one alias on a Qdrant server, and which of them searches ask.

A collection is one of ours where its metadata says so; names tell nothing, since others may take any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.connection import PATIENCE, Connection, is_absent
from pipeline.index.layout import Layout
from pipeline.index.passage_index import none_of_ours
from pipeline.index.server import ServerIndex
from pipeline.index.server_requests import Storage, mark_of

if TYPE_CHECKING:
    from pydantic import SecretStr
    from qdrant_client import QdrantClient

__all__ = ["ServerCollections", "Storage"]


class ServerCollections:
    """Collections on the server at `url`; nothing is connected before the first call.

    patience: seconds that a change is tried for while the server does not take it.
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
        storage: Storage = Storage(),  # noqa: B008  # frozen
        patience: float = PATIENCE,
    ) -> None:
        self.connection = Connection(
            url, api_key, grpc_port=grpc_port, private_network=private_network, patience=patience
        )
        self._alias, self._storage = alias, storage
        self._indexes: dict[str, ServerIndex] = {}

    @property
    def alias(self) -> str:
        return self._alias

    @property
    def retries(self) -> int:
        """How often anything was asked again."""
        return self.connection.retries.count

    def live(self) -> str | None:
        """As the protocol says. Raises PermanentFailure where a collection itself bears the alias's name."""
        found, taken = self.connection.ask(self._target)
        if taken:
            raise PermanentFailure(none_of_ours(self._alias, self.connection.address.url))
        return found

    def names(self) -> list[str]:
        return self.connection.ask(self._ours)

    def collection(self, name: str) -> ServerIndex:
        made = ServerIndex(self.connection, name, self._alias, storage=self._storage)
        return self._indexes.setdefault(name, made)  # one step, for threads may share it

    def make_live(self, name: str) -> None:
        """As the protocol says. Raises PermanentFailure for a collection that is not there, and where the alias leads
        to somebody else's."""
        if self.collection(name).layout() is None:
            raise PermanentFailure(f"{self.connection.address.url} has no collection {name}: run citeloom reindex")
        before = self.live()
        if before is not None:
            self.collection(before).layout()  # raises for somebody else's
        self.connection.change(partial(self._lead, name))

    def drop(self, name: str) -> None:
        """As the protocol says; a collection that is not there is dropped already. Raises PermanentFailure for one
        that is not of this alias."""
        if name == self.live():
            raise SettingError(f"searches ask the collection {name}: make another one live before you drop it")
        if self.collection(name).layout() is not None:
            self.connection.change(lambda client: client.delete_collection(name))

    def close(self) -> None:
        self.connection.close()

    def _target(self, client: QdrantClient) -> tuple[str | None, bool]:
        """The collection that the alias leads to; and whether a collection has its name."""
        for each in client.get_aliases().aliases:
            if each.alias_name == self._alias:
                return each.collection_name, False
        return None, client.collection_exists(self._alias)

    def _ours(self, client: QdrantClient) -> list[str]:
        marks = {each.name: _mark(client, each.name) for each in client.get_collections().collections}
        return sorted(name for name, mark in marks.items() if mark is not None and mark[0] == self._alias)

    def _lead(self, name: str, client: QdrantClient) -> None:
        """Both steps in one call, between which no search comes; an alias that is not there is left without harm."""
        from qdrant_client import models

        leave = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self._alias))
        lead = models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=name, alias_name=self._alias)
        )
        client.update_collection_aliases([leave, lead])


def _mark(client: QdrantClient, name: str) -> tuple[str, Layout] | None:
    """Alias and layout of a collection of ours; None also where somebody dropped it since it was listed."""
    try:
        return mark_of(client.get_collection(name).config.metadata)
    except Exception as error:
        if is_absent(error):
            return None
        raise
