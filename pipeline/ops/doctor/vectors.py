"""The vector store: who holds Edge's folder; or the Qdrant server's reach, version, key, and the collection on it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pipeline.engine.stage import Workspace
from pipeline.index import close_indexes
from pipeline.index.connection import Connection
from pipeline.index.edge_folder import holder_of
from pipeline.index.opening import edge_folder, is_layout_of_settings, open_collections
from pipeline.ops.doctor.findings import Finding, State, ok, problem, warning

if TYPE_CHECKING:
    import httpx

    from pipeline.index.passage_index import Collections

# The oldest server whose answers the client is written for, and the one that the tests ask.
_OLDEST, _TRIED = (1, 16), "1.16.3"
_SECONDS = 4.0
_START = "start the Qdrant server, or correct CITELOOM_QDRANT_URL (empty for Qdrant Edge)"
_COLORS = {
    "yellow": "the server is still building its graphs; searches are slower until it has",
    "grey": "the server has graphs to build and waits for a change to begin",
}


def index(workspace: Workspace) -> Iterator[Finding]:
    """Edge or the server, whichever the settings choose."""
    try:
        if workspace.settings.qdrant_url is None:
            yield from _edge(workspace)
        else:
            yield from _server(workspace)
    finally:
        close_indexes()


def _edge(workspace: Workspace) -> Iterator[Finding]:
    folder = edge_folder(workspace)
    collections = open_collections(workspace)
    live = collections.live()
    holder = None if live is None else holder_of(folder / live)
    if holder is not None and _lives(holder[0]):
        seen = f"Qdrant Edge in {folder}, held by process {holder[0]} ({holder[1]})"
        way_out = "wait for it to end, or set CITELOOM_QDRANT_URL to a server, which many processes may ask"
        yield warning("qdrant", seen, way_out)
    else:
        yield ok("qdrant", f"Qdrant Edge {version('qdrant-edge-py')} in {folder}, held by nobody")
    yield _collection(workspace, collections, live)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return process != os.getpid()


def _server(workspace: Workspace) -> Iterator[Finding]:
    settings = workspace.settings
    connection = Connection(
        settings.qdrant_url or "",
        settings.qdrant_api_key,
        grpc_port=settings.qdrant_grpc_port,
        private_network=settings.qdrant_private_network,
    )
    with connection.http(_SECONDS) as web:
        found = _reach(connection, web)
        yield found
        if found.state is State.PROBLEM:
            return
        key = _key(connection, web, has_key=settings.qdrant_api_key is not None)
        yield key
        yield from _grpc(connection)
        if key.state is not State.PROBLEM:
            yield from _server_collection(workspace, web)


def _reach(connection: Connection, web: httpx.Client) -> Finding:
    """Whether a Qdrant server answers, and of which version."""
    import httpx

    url = connection.address.url
    try:
        answer = web.get("/")
        told = answer.json()
        said = str(told["version"]) if "qdrant" in str(told["title"]).lower() else ""
    except httpx.HTTPError as error:
        return problem("qdrant", f"{url} does not answer ({error})", _START)
    except (ValueError, KeyError, TypeError):
        said = ""
    if not said:
        return problem("qdrant", f"what answers at {url} is no Qdrant server", _START)
    return _version(url, said)


def _version(url: str, said: str) -> Finding:
    server, client = _numbers(said), _numbers(version("qdrant-client"))
    seen = f"{url} is Qdrant {said}"
    oldest = ".".join(map(str, _OLDEST))
    if server < _OLDEST:
        return problem("qdrant", f"{seen}, and {oldest} is the oldest that does", f"update it; {_TRIED} is tried")
    if server[0] != client[0] or server[1] > client[1] + 1:
        seen = f"{seen}, newer than the client ({version('qdrant-client')}) knows"
        return warning("qdrant", seen, f"update citeloom's qdrant-client, or take a server of {_TRIED}")
    return ok("qdrant", f"{seen}; {_TRIED} is tried")


def _numbers(said: str) -> tuple[int, int]:
    major, minor, *_ = [*map(int, re.findall(r"\d+", said)), 0, 0]
    return major, minor


def _key(connection: Connection, web: httpx.Client, *, has_key: bool) -> Finding:
    """Whether the key is accepted, and whether the server asks anybody for one."""
    import httpx

    status = web.get("/collections").status_code
    anonymous = httpx.get(
        web.base_url.join("/collections"), timeout=_SECONDS, trust_env=not connection.address.loopback
    ).status_code
    if status in (401, 403):
        fault = "is refused" if has_key else "is not set, and the server asks for one"
        return problem("qdrant key", f"CITELOOM_QDRANT_API_KEY {fault}", "set it to the server's key")
    if status != 200:
        return problem("qdrant key", f"the server answers a listing with status {status}", "see the server's log")
    if anonymous == 200 and (has_key or not connection.address.loopback):
        way_out = "set the server's key (QDRANT__SERVICE__API_KEY), and CITELOOM_QDRANT_API_KEY to it"
        return warning("qdrant key", "the server lets in anybody who reaches it, without a key", way_out)
    if anonymous == 200:
        return ok("qdrant key", "none, on this machine's own address")
    return ok("qdrant key", "accepted; without it the server refuses")


def _grpc(connection: Connection) -> Iterator[Finding]:
    """Whether points go the faster way."""
    port = connection.address.grpc_port
    way_out = "open the port, or give it as CITELOOM_QDRANT_GRPC_PORT"
    if port is None:
        yield warning("qdrant grpc", "no gRPC port is known: points go over HTTP, in twice the time", way_out)
        return
    try:
        with socket.create_connection((connection.address.host, port), timeout=_SECONDS):
            yield ok("qdrant grpc", f"port {port} can be reached")
    except OSError as error:
        seen = f"port {port} cannot be reached ({error}): points go over HTTP, in twice the time"
        yield warning("qdrant grpc", seen, way_out)


def _server_collection(workspace: Workspace, web: httpx.Client) -> Iterator[Finding]:
    collections = open_collections(workspace)
    live = collections.live()
    found = _collection(workspace, collections, live)
    yield found
    if live is None or found.state is State.PROBLEM:
        return
    told: dict[str, Any] = web.get(f"/collections/{live}").json().get("result") or {}
    color, points = str(told.get("status")), told.get("points_count")
    if color == "green":
        yield ok("collection state", f"green, {points:,} points")
    elif color in _COLORS:
        yield warning("collection state", f"{color}: {_COLORS[color]}", "wait; the next load of a month sets it going")
    else:
        fault = str(told.get("optimizer_status"))[:200]
        yield problem("collection state", f"{color} ({fault})", "see the server's log and disk, then citeloom reindex")


def _collection(workspace: Workspace, collections: Collections, live: str | None) -> Finding:
    """Whether there is a collection, and it is one of the settings' model."""
    if live is None:
        return ok("collection", f"there is no {collections.alias} yet: the first run makes it")
    layout = collections.collection(live).layout()
    if layout is None:
        return problem("collection", f"searches are to ask {live}, which is not there", "run citeloom reindex")
    if not is_layout_of_settings(workspace, layout):
        seen = f"searches ask {live} ({layout.describe()}), which the settings do not"
        return problem("collection", seen, "run citeloom reindex, or set the embedder and quantization back")
    return ok("collection", f"searches ask {live} ({layout.describe()})")
