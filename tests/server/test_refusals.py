"""What a user is told where the server refuses, does not answer, or is no Qdrant server."""

from __future__ import annotations

import socket

import pytest
from pydantic import SecretStr

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.server import ServerIndex
from tests.server.conftest import KEY, Server
from tests.unit.index.building import LAYOUT


@pytest.mark.parametrize("over", ["http", "grpc"])
def test_a_wrong_key_is_named_without_being_shown(qdrant: Server, over: str) -> None:
    port = qdrant.grpc_port if over == "grpc" else None
    index = ServerIndex(qdrant.url, "c", SecretStr("not the key"), grpc_port=port)
    with pytest.raises(SettingError, match=f"{qdrant.url}: CITELOOM_QDRANT_API_KEY is refused") as caught:
        index.ensure_collection(LAYOUT)
    assert "not the key" not in str(caught.value)
    index.close()


@pytest.mark.parametrize("over", ["http", "grpc"])
def test_a_missing_key_is_named(qdrant: Server, over: str) -> None:
    port = qdrant.grpc_port if over == "grpc" else None
    index = ServerIndex(qdrant.url, "c", grpc_port=port)
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY is not set"):
        index.count("2024-03")
    index.close()


def test_a_collection_of_somebody_else_is_refused(qdrant: Server) -> None:
    from qdrant_client import QdrantClient, models

    with pytest.warns(UserWarning, match="insecure"):
        client = QdrantClient(url=qdrant.url, api_key=KEY, check_compatibility=False, trust_env=False)
    client.create_collection("strange", models.VectorParams(size=4, distance=models.Distance.DOT))
    client.close()
    index = ServerIndex(qdrant.url, "strange", SecretStr(KEY))
    with pytest.raises(PermanentFailure, match="none of citeloom's"):
        index.ensure_collection(LAYOUT)
    index.close()


def test_a_grpc_port_that_does_not_listen_falls_back_to_http(qdrant: Server) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        index = ServerIndex(qdrant.url, "fallback", SecretStr(KEY), grpc_port=bound.getsockname()[1])
        index.ensure_collection(LAYOUT)
        assert index.layout() == LAYOUT
        index.close()


def test_a_grpc_port_that_is_none_falls_back_to_http(qdrant: Server) -> None:
    index = ServerIndex(qdrant.url, "no-grpc", SecretStr(KEY), grpc_port=qdrant.http_port)
    index.ensure_collection(LAYOUT)
    assert index.layout() == LAYOUT
    index.close()
