"""A server that refuses or does not answer, and a connection that is closed during a call."""

import socket

import pytest
from pydantic import SecretStr

from pipeline.errors import SettingError
from pipeline.index.server import ServerCollections
from tests.server.conftest import KEY
from tests.unit.index.building import LAYOUT, make_points


@pytest.mark.parametrize("over", ["http", "grpc"])
@pytest.mark.parametrize(
    ("key", "fault"), [(SecretStr("not the key"), "is refused"), (None, "is not set")]
)
def test_a_wrong_or_missing_key_is_named_without_being_shown(qdrant, over, key, fault):
    port = qdrant.grpc_port if over == "grpc" else None
    collections = ServerCollections(qdrant.url, "c", key, grpc_port=port)
    index = collections.collection(LAYOUT.collection("c"))
    for call in (
        lambda: index.create(LAYOUT),
        collections.live,
        collections.names,
    ):
        with pytest.raises(
            SettingError, match=f"{qdrant.url}: CITELOOM_QDRANT_API_KEY {fault}"
        ) as caught:
            call()
        assert "not the key" not in str(caught.value)
    collections.close()


@pytest.mark.parametrize("what", ["nothing", "http"])
def test_where_grpc_cannot_be_reached_points_go_over_http_and_the_log_says_so_once(
    qdrant, what, caplog
):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # without `listen`, so that nobody answers there
        port = bound.getsockname()[1] if what == "nothing" else qdrant.http_port
        collections = ServerCollections(qdrant.url, f"over-{what}", SecretStr(KEY), grpc_port=port)
        index = collections.collection(LAYOUT.collection(collections.alias))
        index.create(LAYOUT)
        index.upsert(make_points([1, 2]))
        index.upsert(make_points([3]))
        assert index.count() == 3
        collections.close()
    told = [record.getMessage() for record in caplog.records]
    assert len([line for line in told if "CITELOOM_QDRANT_GRPC_PORT" in line]) == 1


def test_a_call_whose_connection_is_closed_by_another_thread_is_repeated(collections):
    connection, clients = collections.connection, []

    def closing(client):
        clients.append(client)
        if len(clients) == 1:
            connection.close()
        return client.get_aliases()

    assert connection.read(closing) is not None
    assert len(set(map(id, clients))) == 2
