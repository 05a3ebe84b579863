"""Probes of servers: arXiv, the vector store (Qdrant or Edge), and language models."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.arxiv.rate_limited_client import (
    NOTED_WAIT_SECONDS,
    HttpAnswer,
    Pace,
    RateLimitedClient,
    Service,
)
from pipeline.engine.progress import duration
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.index.connection import Connection
from pipeline.index.edge_folder import holder_of
from pipeline.index.opening import edge_folder, is_layout_of_settings, open_collections
from pipeline.llm.bundled import packaged_model
from pipeline.llm.completion import THINKING_TOKENS
from pipeline.llm.loop import run
from pipeline.llm.messages import LlmAnswerError
from pipeline.llm.models import Model, get_model, judge_model, shown_url
from pipeline.llm.structured import AnswerForm, parse_answer, response_format
from pipeline.llm.transport import Transport
from pipeline.ops.doctor.findings import (
    DoctorFinding,
    FindingState,
    not_checked,
    ok,
    problem,
    warning,
)
from pipeline.settings import Settings
from pipeline.settings.models_file import LEAST_CONTEXT, with_model_values
from pipeline.stages import calls_model
from pipeline.storage.writing import write_whole
from pipeline.text import one_line

if TYPE_CHECKING:
    import httpx2

    from pipeline.index.passage_index import Collections

# The longest answer of a model that is tried.
_TRIAL_TOKENS = 64
# For one answer of a server.
_SECONDS = 4.0
# A paper that will stay: "Attention Is All You Need".
_PAPER = "1706.03762"
# The oldest server that the client supports, and the one that citeloom is tested with.
_OLDEST_QDRANT, _TESTED_QDRANT = (1, 16), "1.16.3"


def arxiv_rate(workspace: Workspace, pace: Pace | None = None) -> Iterator[DoctorFinding]:
    """When arXiv may be asked next."""
    rest = (pace or Pace()).rest()
    if not workspace.settings.arxiv_api:
        yield ok("a run asks arXiv nothing (CITELOOM_ARXIV_API)")
    elif rest > NOTED_WAIT_SECONDS:
        message = f"arXiv asked for a pause: no request for another {duration(rest)}"
        yield warning(message, "wait; runs on this machine wait by themselves")
    else:
        yield ok("arXiv may be asked, once in 3 s by all runs of this machine together")


def arxiv(
    workspace: Workspace, pace: Pace | None = None, *, online: bool
) -> Iterator[DoctorFinding]:
    """Whether arXiv's API and OAI-PMH answer; without `online` nothing is sent."""
    if not online:
        yield not_checked("with --online the doctor asks whether arXiv answers")
    elif (pace or Pace()).rest() > NOTED_WAIT_SECONDS:
        yield not_checked("arXiv asked for a pause and is left alone")
    else:
        settings = workspace.settings
        query = f"?id_list={_PAPER}&max_results=1"
        yield _arxiv_service(
            settings, "CITELOOM_ARXIV_API_URL", settings.arxiv_api_url, query, b"<feed", pace
        )
        yield _arxiv_service(
            settings, "CITELOOM_OAI_URL", settings.oai_url, "?verb=Identify", b"OAI-PMH", pace
        )


def _arxiv_service(
    settings: Settings, setting: str, url: str, query: str, expected: bytes, pace: Pace | None
) -> DoctorFinding:
    """Send one request. expected: bytes that every answer of the service contains."""
    way_out = f"check the network and {setting}; a snapshot and cached answers work without it"
    service = Service("arXiv", url, setting, way_out)

    def read(answer: HttpAnswer) -> DoctorFinding:
        if answer.status == 200 and expected in answer.body:
            return ok(f"{url} answers")
        return problem(f"{url} answers with status {answer.status}, and not as arXiv does", way_out)

    try:
        # One try, without back-off: other runs of the machine wait only as long as arXiv asks.
        pace = replace(pace or Pace(), tries=1, first_back_off=0.0, silence=8.0)
        with RateLimitedClient(service, settings, pace=pace) as client:
            return client.get(url + query, read)
    except (TransientFailure, PermanentFailure) as error:
        return problem(str(error).removesuffix(f": {way_out}"), way_out)


def qdrant(workspace: Workspace) -> Iterator[DoctorFinding]:
    """The vector store that the settings choose: the Qdrant server, or Edge in its folder."""
    url = workspace.settings.qdrant_url
    return _edge(workspace) if url is None else _server(workspace, url)


def _edge(workspace: Workspace) -> Iterator[DoctorFinding]:
    import psutil

    folder = edge_folder(workspace)
    collections = open_collections(workspace)
    live = collections.live()
    holder = None if live is None else holder_of(folder / live)
    if holder is not None and holder[0] != os.getpid() and psutil.pid_exists(holder[0]):
        message = f"Qdrant Edge in {folder}, held by process {holder[0]} ({holder[1]})"
        way_out = (
            "wait for it to end, or set CITELOOM_QDRANT_URL to a server, which serves many"
            " processes"
        )
        yield warning(message, way_out)
    else:
        yield ok(f"Qdrant Edge {version('qdrant-edge-py')} in {folder}, not in use")
    yield _collection(workspace, collections, live)


def _server(workspace: Workspace, url: str) -> Iterator[DoctorFinding]:
    settings = workspace.settings
    connection = Connection(
        url,
        settings.qdrant_api_key,
        grpc_port=settings.qdrant_grpc_port,
        private_network=settings.qdrant_private_network,
    )
    with connection.http_client(_SECONDS) as http:
        server = _server_version(connection, http)
        yield server
        if server.state is FindingState.PROBLEM:
            return
        key = _api_key(connection, http, has_key=settings.qdrant_api_key is not None)
        yield key
        yield from _grpc(connection)
        if key.state is not FindingState.PROBLEM:
            collections = open_collections(workspace)
            yield _collection(workspace, collections, collections.live())


def _server_version(connection: Connection, http: httpx2.Client) -> DoctorFinding:
    """Whether a Qdrant server answers, and whether its version is supported."""
    from httpx2 import HTTPError

    url = connection.address.url
    way_out = "start the Qdrant server, or correct CITELOOM_QDRANT_URL (empty for Qdrant Edge)"
    try:
        root = http.get("/").json()
        number = str(root["version"]) if "qdrant" in str(root["title"]).lower() else ""
    except HTTPError as error:
        return problem(f"{url} does not answer ({error})", way_out)
    except (ValueError, KeyError, TypeError):
        number = ""
    if not number:
        return problem(f"{url} is not a Qdrant server", way_out)
    server, client = _major_minor(number), _major_minor(version("qdrant-client"))
    message = f"{url} is Qdrant {number}"
    if server < _OLDEST_QDRANT:
        oldest = ".".join(map(str, _OLDEST_QDRANT))
        return problem(
            f"{message}; {oldest} is the oldest supported", f"update it; {_TESTED_QDRANT} is tested"
        )
    if server[0] != client[0] or server[1] > client[1] + 1:
        message = f"{message}, newer than the client ({version('qdrant-client')}) supports"
        return warning(
            message, f"update citeloom's qdrant-client, or use a server of {_TESTED_QDRANT}"
        )
    return ok(f"{message}; {_TESTED_QDRANT} is tested")


def _major_minor(number: str) -> tuple[int, int]:
    major, minor, *_ = [*map(int, re.findall(r"\d+", number)), 0, 0]
    return major, minor


def _api_key(connection: Connection, http: httpx2.Client, *, has_key: bool) -> DoctorFinding:
    """Whether the server accepts the key, and whether it answers without one."""
    import httpx2

    loopback = connection.address.loopback
    status = http.get("/collections").status_code
    anonymous = httpx2.get(
        http.base_url.join("/collections"), timeout=_SECONDS, trust_env=not loopback
    ).status_code
    if status in (401, 403):
        fault = "is refused" if has_key else "is not set, and the server asks for one"
        return problem(
            f"CITELOOM_QDRANT_API_KEY {fault}", "set it to the server's key", name="qdrant key"
        )
    if status != 200:
        return problem(
            f"the server answers a listing with status {status}",
            "see the server's log",
            name="qdrant key",
        )
    if anonymous == 200 and (has_key or not loopback):
        way_out = (
            "set the server's key (QDRANT__SERVICE__API_KEY), and CITELOOM_QDRANT_API_KEY to it"
        )
        return warning(
            "the server answers anybody who reaches it, without a key", way_out, name="qdrant key"
        )
    if anonymous == 200:
        return ok("none, on this machine's own address", name="qdrant key")
    return ok("accepted; without it the server refuses", name="qdrant key")


def _grpc(connection: Connection) -> Iterator[DoctorFinding]:
    """Whether points can be sent over gRPC."""
    port = connection.address.grpc_port
    slower = "points are sent over HTTP, which takes more than twice the time"
    way_out = "open the port, or give it as CITELOOM_QDRANT_GRPC_PORT"
    if port is None:
        yield warning(f"no gRPC port is known: {slower}", way_out, name="qdrant grpc")
        return
    try:
        with socket.create_connection((connection.address.host, port), timeout=_SECONDS):
            yield ok(f"port {port} can be reached", name="qdrant grpc")
    except OSError as error:
        yield warning(
            f"port {port} cannot be reached ({error}): {slower}", way_out, name="qdrant grpc"
        )


def _collection(workspace: Workspace, collections: Collections, live: str | None) -> DoctorFinding:
    """Whether there is a collection, with the model and the layout of the settings."""
    if live is None:
        return ok(
            f"there is no {collections.alias} yet: the first run creates it", name="collection"
        )
    layout = collections.collection(live).layout()
    if layout is None:
        return problem(
            f"searches should use {live}, which does not exist",
            "run citeloom reindex",
            name="collection",
        )
    if not is_layout_of_settings(workspace, layout):
        message = f"searches use {live} ({layout.describe()}), which differs from the settings"
        return problem(
            message,
            "run citeloom reindex, or set the embedder and quantization back",
            name="collection",
        )
    return ok(f"searches use {live} ({layout.describe()})", name="collection")


def language_models(workspace: Workspace) -> Iterator[DoctorFinding]:
    """The endpoints of the writer and the judge, each asked once, or the bundled model."""
    roles = {"llm": get_model(workspace.settings), "judge": judge_model(workspace.settings)}
    probed: set[str] = set()
    for role, model in roles.items():
        if model.name in probed:
            continue
        probed.add(model.name)
        if model.url is None:
            yield replace(_bundled(workspace.settings, model), name=role)
        else:
            yield replace(_probe_endpoint(model, model.url), name=role)


def _bundled(settings: Settings, model: Model) -> DoctorFinding:
    """Whether the bundled model is installed, which matters only where a run calls a model."""
    try:
        packaged_model()
    except SettingError as error:
        if calls_model(settings):
            raise
        return not_checked(f"no stage calls a model: {error}")
    return ok(
        f"the bundled {model.name}, which writes poor text; CITELOOM_LLM_URL sets another one"
    )


def _probe_endpoint(model: Model, url: str) -> DoctorFinding:
    """Whether it can be reached, accepts the key, and lists the model, which costs nothing."""
    try:
        model.check()
        names = run(_list_models(replace(model, timeout=_SECONDS), url))
    except CiteloomError as error:
        return problem(str(error), f"correct the settings of {model.name}")
    address = shown_url(url)
    if names is None:
        return warning(
            f"{address} answers, but lists no models: {model.requested} may be there",
            f"check that {model.setting('url')} ends as the service documents, mostly in /v1",
        )
    if model.requested not in names:
        some = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        message = f"{address} does not list {model.requested}, but {some or 'nothing'}"
        return problem(message, f"set {model.setting('model')} to a model that it lists")
    return ok(f"{address} lists {model.requested}")


async def _list_models(model: Model, url: str) -> list[str] | None:
    transport = Transport(model, url)
    try:
        return await transport.list_models()
    finally:
        await transport.aclose()


def models_to_try(settings: Settings) -> list[Model]:
    """The writer and the judge, without the bundled model."""
    models = {model.name: model for model in (get_model(settings), judge_model(settings))}
    return [model for model in models.values() if model.url]


def try_model(model: Model, file: Path) -> Iterator[DoctorFinding]:
    """What an endpoint is, by four requests that may cost money; its table goes into a file of
    models.
    """
    try:
        findings, thinking = run(_try_endpoint(model))
    except CiteloomError as error:
        yield problem(str(error), f"correct the table of {model.name}", name=model.name)
        return
    yield from findings
    context = max(model.context + (model.thinking or 0), thinking + LEAST_CONTEXT)
    values: dict[str, str | int] = {"context": context, "thinking": thinking}
    if not model.table:
        values["url"] = str(model.url)
        if model.api_key:
            values["api_key_env"] = "CITELOOM_LLM_API_KEY"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    write_whole(file, with_model_values(text, model.name, values).encode())
    yield ok(f"written into {file}, for CITELOOM_MODELS: {values}", name=model.name)


class _Colour(AnswerForm):
    colour: str


async def _try_endpoint(model: Model) -> tuple[list[DoctorFinding], int]:
    """What answers to prose, JSON by a schema, two answers at once and a prompt as long as the
    context show, and the tokens to allow for thoughts. Raises as `Transport.send` does.
    """
    findings, thinking = [], 0
    question = {"role": "user", "content": "Which colour has a clear sky by day?"}
    # A word and its space are a token of most models.
    words = model.context - 3 * _TRIAL_TOKENS
    bodies: dict[str, dict[str, Any]] = {
        "prose": {"messages": [{"role": "system", "content": "Answer in one word."}, question]},
        "JSON": {"messages": [question], "response_format": response_format(_Colour)},
        "two answers": {"messages": [question], "n": 2},
        f"a prompt of {words:,} tokens": {
            "messages": [{"role": "user", "content": f"{'sky ' * words}{question['content']}"}]
        },
    }
    transport = Transport(model, str(model.url))
    try:
        for name, body in bodies.items():
            request = {
                "model": model.requested,
                "temperature": 0.0,
                "max_tokens": _TRIAL_TOKENS,
            } | body
            reply = await transport.send(request, _TRIAL_TOKENS + THINKING_TOKENS)
            if reply.thinks:
                used = max(reply.spent.completion_tokens, reply.written)
                thinking = max(thinking, THINKING_TOKENS, 2 * used)
            try:
                for item in reply.completions:
                    if item.failure:
                        raise LlmAnswerError(item.failure, item.detail)
                    if name == "JSON":
                        parse_answer(item.text, _Colour)
                findings.append(ok(f"{name}: answered", name=model.name))
            except (LlmAnswerError, ValueError) as error:
                way_out = "answers of this kind would fail: see the endpoint's settings"
                findings.append(
                    problem(f"{name}: {one_line(str(error))}", way_out, name=model.name)
                )
    finally:
        await transport.aclose()
    refused = ", ".join(sorted(transport.dialect.refused)) or "nothing"
    findings.append(ok(f"it is asked without: {refused}", name=model.name))
    return findings, thinking
