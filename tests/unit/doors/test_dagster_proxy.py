"""The proxy in front of Dagster's webserver, before a server that answers as Dagster's does."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from pipeline.doors.web.dagster_proxy import make_proxy
from tests.cases import cases_beside
from tests.processes import free_port
from tests.unit.doors.conftest import serving

MUTATION = 'mutation { setConcurrencyLimit(concurrencyKey: "gpu", limit: 50) }'
executed = []


async def _graphql(request):
    """As Dagster does, whatever the method and the type of the body."""
    if request.method == "GET" and "query" not in request.query_params:
        return HTMLResponse("the playground")
    is_json = "application/json" in request.headers.get("content-type", "")
    parameters = await request.json() if is_json else request.query_params
    executed.append(parameters["query"])
    return JSONResponse({"data": executed[-1]})


async def _subscription(socket):
    await socket.accept(subprotocol="graphql-ws")
    async for text in socket.iter_text():
        await socket.send_text(text * 2_000_000)


async def _page(request):
    page = HTMLResponse(f"{request.scope['raw_path'].decode()}?{request.url.query}")
    page.raw_headers += [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
    return page


@pytest.fixture(scope="module")
def proxy():
    """The `host:port` of a proxy."""
    dagster = Starlette(
        routes=[
            Route("/graphql", _graphql, methods=["GET", "POST"]),
            WebSocketRoute("/graphql", _subscription),
            Route("/{path:path}", _page),
        ]
    )
    with serving(dagster) as webserver:
        app = make_proxy(f"http://{webserver}", public_host="dagster.example:8443")
        with serving(app) as address:
            yield address


def test_the_page_and_programs_reach_dagster(proxy):
    executed.clear()
    page = {"Origin": f"http://{proxy}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    public = {"Host": "dagster.example:8443", "Origin": "https://dagster.example:8443"}
    rewritten = {"Origin": "https://dagster.example:8443"}
    for headers in (page, public, rewritten, {}):
        answer = httpx2.post(f"http://{proxy}/graphql", json={"query": MUTATION}, headers=headers)
        assert answer.json() == {"data": MUTATION}
    assert executed == [MUTATION] * 4
    assert httpx2.get(f"http://{proxy}/graphql").text == "the playground"


def test_a_link_of_another_site_opens_a_page(proxy):
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    answer = httpx2.get(f"http://{proxy}/runs/a%2Fb?q=1&query=x", headers=link)
    assert answer.text == "/runs/a%2Fb?q=1&query=x"
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]


@cases_beside("headers", "status")
def test_no_post_of_another_site_reaches_dagster(proxy, headers, status):
    executed.clear()
    answer = httpx2.post(
        f"http://{proxy}/graphql",
        params={"query": MUTATION},
        json={"query": MUTATION},
        headers=headers,
    )
    assert (answer.status_code, executed) == (status, [])


@pytest.mark.parametrize("path", ["/graphql", "/%67raphql", "/x/../graphql", "//../graphql"])
def test_no_get_executes_graphql(proxy, path):
    executed.clear()
    host, port = proxy.split(":")
    # In parts, since the client would take the dots out of an address.
    url = httpx2.URL(scheme="http", host=host, port=int(port)).copy_with(
        raw_path=f"{path}?query={MUTATION}".replace(" ", "%20").encode()
    )
    answer = httpx2.get(url)
    assert executed == []
    assert answer.status_code == 405 or MUTATION not in answer.text


def test_other_methods_are_refused(proxy):
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert httpx2.request(method, f"http://{proxy}/graphql").status_code == 405, method


def test_subscriptions_of_the_page_work_and_those_of_other_sites_are_refused(proxy):
    url = f"ws://{proxy}/graphql"
    protocols = [Subprotocol("graphql-ws")]
    with connect(
        url, subprotocols=protocols, origin=Origin(f"http://{proxy}"), proxy=None, max_size=None
    ) as socket:
        assert socket.subprotocol == "graphql-ws"
        socket.send("é")
        assert socket.recv() == "é" * 2_000_000
    link = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    evil = {"Origin": "https://evil.example"}
    for headers in (evil, evil | link, {"Host": "evil.example"}):
        with pytest.raises(InvalidStatus), connect(url, additional_headers=headers, proxy=None):
            pass


def test_until_dagster_is_up_the_page_loads_itself_again():
    with serving(make_proxy(f"http://127.0.0.1:{free_port()}")) as address:
        answer = httpx2.get(f"http://{address}/")
        assert (answer.status_code, answer.headers["refresh"]) == (503, "1")
        with pytest.raises(InvalidStatus), connect(f"ws://{address}/graphql", proxy=None):
            pass
